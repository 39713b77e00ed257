// Lesson 2: three scores, first of vectors of two numbers, then of a trained translator.
import { el, number, shown } from "./dom.js";
import { dot, mixed, softmax, times } from "./maths.js";
import { bar, choice, hint, strip } from "./parts.js";

const KINDS = [{ label: "dot", value: "dot" }, { label: "general", value: "general" }, { label: "additive", value: "additive" }];
const W = [[0, 1], [1, 0]];
const V = [1, -1];

// What is added up to a score, and how it is written: of the toy, whose additive W h + U y is h + y.
function handTerms(kind, h, y) {
  if (kind === "additive") return [h.map((x, k) => V[k] * Math.tanh(x + y[k])), h.map((x, k) => `${number(V[k], 0)}·tanh(${number(x, 1)} + ${number(y[k], 1)})`)];
  const key = kind === "general" ? times(W, y) : y;
  return [h.map((x, k) => x * key[k]), h.map((x, k) => `${number(x, 1)}·${number(key[k], 1)}`)];
}

export function alignment(root) {
  const hand = el("div", { class: "hand" });
  const real = el("div", {});
  root.parentElement.prepend(el("h3", {}, "By hand"), hand, el("h3", {}, "In a translation model"));
  root.append(real);
  byHand(hand);
  return (sentence) => translator(real, sentence);
}

function byHand(root) {
  const h = [1, 2];
  const ys = [[2, 0], [0, 1], [-1, 1]];
  const kinds = choice("score", KINDS, () => draw());
  const result = el("div", { class: "worked", "aria-live": "polite" });
  const field = (vector, k, name) => el("input", { type: "number", step: 0.5, min: -9, max: 9, value: vector[k], "aria-label": `${name}, number ${k + 1}`,
    on: { input: (event) => { vector[k] = Number(event.target.value); draw(); } } });
  const pair = (vector, name) => el("span", { class: "vector" }, el("i", {}, name), " = (", field(vector, 0, name), ", ", field(vector, 1, name), ")");
  root.append(kinds.node, el("div", { class: "vectors" }, pair(h, "h"), ...ys.map((y, i) => pair(y, `y${"₁₂₃"[i]}`))), result);
  draw();

  function draw() {
    const kind = kinds.value;
    const all = ys.map((y) => handTerms(kind, h, y));
    const scores = all.map(([terms]) => terms[0] + terms[1]);
    const weights = softmax(scores);
    const context = mixed(weights, ys);
    const sum = scores.reduce((total, e) => total + Math.exp(e), 0);
    const note = { dot: "", general: "Here W swaps the two numbers of y.", additive: "Here W h + U y is h + y, and v = (1, −1)." }[kind];
    result.replaceChildren(hint(note),
      el("ol", { class: "lines" }, ...scores.map((e, i) => el("li", {}, el("span", { class: "sum" }, el("i", {}, `e${"₁₂₃"[i]}`), ` = ${all[i][1].join(" + ")} = `, el("b", { class: "e" }, number(e))),
        el("span", { class: "share sum" }, el("span", {}, el("i", {}, `α${"₁₂₃"[i]}`), ` = exp(${number(e)}) / ${number(sum)} = `), bar(weights[i]))))),
      el("p", { class: "sum" }, el("i", {}, "c"), ` = ${weights.map((w, i) => `${number(w)}·(${ys[i].map((x) => number(x, 1)).join(", ")})`).join(" + ")} = `, el("b", { class: "c" }, `(${context.map((x) => number(x)).join(", ")})`)));
  }
}

function translator(root, { scores }) {
  let step = 1;
  const kinds = choice("score", KINDS, () => begin());
  const words = el("div", {});
  const rows = el("div", {});
  root.replaceChildren(kinds.node, words, rows);
  begin();

  function begin() {
    const one = scores[kinds.value];
    step = Math.min(step, one.target.length - 1);
    words.replaceChildren(choice("next piece", one.target.map((piece, i) => ({ label: shown(piece), value: i })), (t) => { step = t; draw(); }, { chosen: step, kind: "words" }).node);
    draw();
  }

  function draw() {
    const { source, query, key, v } = scores[kinds.value];
    const h = query[step];
    const terms = key.map((y) => y.map((x, k) => (v ? v[k] * Math.tanh(h[k] + x) : h[k] * x)));
    const sums = terms.map((row) => row.reduce((a, b) => a + b, 0));
    const weights = softmax(sums);
    const top = Math.max(...terms.flat().map(Math.abs));
    const written = v ? (s, k) => `${number(v[k])} · tanh(${number(h[k])} + ${number(key[s][k])}) = ${number(terms[s][k])}` : (s, k) => `${number(h[k])} · ${number(key[s][k])} = ${number(terms[s][k])}`;
    rows.replaceChildren(
      el("div", { class: "scored", role: "table", "aria-label": "scores" },
        el("div", { role: "row", class: "head" }, ...["source", `the ${h.length} products`, "sum e", "weight α"].map((text) => el("span", { role: "columnheader" }, text))),
        ...source.map((piece, s) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, shown(piece)),
          el("span", { role: "cell" }, strip(terms[s], top, `${h.length} products`, (k) => written(s, k))),
          el("span", { role: "cell", class: "amount e" }, number(sums[s])), el("span", { role: "cell" }, bar(weights[s]))))),
      hint(v ? "Each cell is v · tanh(W h + U y) for one hidden unit: blue raises the score of this word, orange lowers it. " : `Each cell is a product of a number of h and one of ${kinds.value === "general" ? "W y" : "y"}: blue raises the score of this word, orange lowers it. `, "Point at one to see its numbers."));
  }
}
