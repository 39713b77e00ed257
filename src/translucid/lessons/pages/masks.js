// Lesson 4: a mask that can be painted, and the weights that are left.
import { el, number, percent, shown } from "./dom.js";
import { dot, softmax } from "./maths.js";
import { choice, hint, matrix, said } from "./parts.js";

const KINDS = [
  { label: "none", value: () => true },
  { label: "padding", value: (row, column, words) => column < words },
  { label: "causal", value: (row, column) => column <= row },
  { label: "both: the target mask", value: (row, column, words) => column < words && column <= row },
];

export function masks(root) {
  let [sentence, head, mask] = [null, 0, []];
  const kinds = choice("mask", KINDS, () => { fill(); draw(); });
  const heads = el("div", {});
  const table = el("div", {});
  const told = said();
  root.append(el("div", { class: "knobs" }, kinds.node, heads), table, told);
  return (given) => {
    sentence = given;
    heads.replaceChildren(choice("head", sentence.heads.map((_, i) => ({ label: String(i), value: i })), (h) => { head = h; draw(); }, { chosen: head }).node);
    fill();
    draw();
  };

  function fill() {
    const words = sentence.tokens.length - sentence.padding;
    mask = sentence.tokens.map((_, r) => sentence.tokens.map((__, c) => kinds.value(r, c, words)));
  }

  function draw(focus = null) {
    const { query, key } = sentence.heads[head];
    const scores = query.map((q) => key.map((k) => dot(q, k) / Math.sqrt(q.length)));
    const weights = scores.map((row, r) => softmax(row, mask[r]));
    const names = sentence.tokens.map(shown);
    const words = names.length - sentence.padding;
    const cell = (r, c) => {
      const button = el("button", { type: "button", "aria-pressed": mask[r][c], title: `score ${number(scores[r][c])}`, tabindex: r === (focus?.[0] ?? 0) && c === (focus?.[1] ?? 0) ? 0 : -1,
        "aria-label": `${names[r]} may attend to ${names[c]}`, on: { click: () => { mask[r][c] = !mask[r][c]; draw([r, c]); }, keydown: (event) => walk(event, r, c) } }, mask[r][c] ? number(weights[r][c]) : "");
      return el("td", { class: mask[r][c] ? "weight" : "weight closed", style: { "--w": weights[r][c] } }, button);
    };
    table.replaceChildren(matrix(names, names, cell, "query ↓ key →"), hint("Each row is a decoder position and its weights over the previous ones. Click a square, or move with the arrow keys and press Space, to unmask or mask it: the other squares of the row share its weight."));
    if (focus) table.querySelectorAll("button")[focus[0] * names.length + focus[1]].focus();
    const future = weights.slice(0, words).flatMap((row, r) => row.filter((_, c) => c > r && c < words)).reduce((a, b) => a + b, 0) / words;
    const padding = weights.slice(0, words).flatMap((row) => row.slice(words)).reduce((a, b) => a + b, 0) / words;
    const blind = weights.filter((row) => row.every((w) => w === 0)).length;
    told.textContent = `Of all weight, ${percent(future)} goes to the future and ${percent(padding)} to padding.${blind ? ` ${blind === 1 ? "One row is" : `${blind} rows are`} fully masked: all weights are 0, and so is the context.` : ""}`;
  }

  function walk(event, r, c) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const size = mask.length;
    const buttons = table.querySelectorAll("button");
    const to = [Math.min(size - 1, Math.max(0, r + step[0])), Math.min(size - 1, Math.max(0, c + step[1]))];
    buttons[r * size + c].tabIndex = -1;
    buttons[to[0] * size + to[1]].tabIndex = 0;
    buttons[to[0] * size + to[1]].focus();
  }
}
