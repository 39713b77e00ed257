// Lesson 6: every head as a small picture; one of them large, and what the model does without it.
import { el, svg, number, percent, shown } from "./dom.js";
import { choice, hint, said } from "./parts.js";

const KINDS = [
  { label: "translation looks at source", value: ["decoder", "cross"] },
  { label: "source looks at itself", value: ["encoder", "self"] },
  { label: "translation looks at itself", value: ["decoder", "self"] },
];

export function heads(root) {
  let [sentence, chosen, word] = [null, 0, null];
  const kinds = choice("attention", KINDS, () => { chosen = 0; word = null; begin(); });
  const all = el("div", {});
  const one = el("div", { class: "ribbons" });
  const lost = el("div", {});
  const told = said();
  root.append(kinds.node, all, one, told, el("h3", {}, "Without this head"), lost);
  one.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") point(null); });
  return (given) => { sentence = given; word = null; begin(); };

  function point(row) {
    if (word === row) return;
    word = row;
    draw();
  }

  function listed() {
    const [side, kind] = kinds.value;
    const names = Object.keys(sentence.maps).filter((name) => name.startsWith(`${side}.`) && name.endsWith(`.${kind}`));
    return names.flatMap((name) => sentence.maps[name].map((weights, head) => ({ name, head, weights, layer: name.split(".")[1] })));
  }

  function begin() {
    const found = listed();
    const small = choice("all heads", found.map((each, i) => ({ label: thumbnail(each.weights), value: i, title: `layer ${each.layer}, head ${each.head}` })), (i) => { chosen = i; word = null; draw(); }, { chosen, kind: "thumbnails" });
    small.node.querySelectorAll("label").forEach((label, i) => label.append(el("small", {}, `${found[i].layer}.${found[i].head}`)));
    small.node.style.setProperty("--heads", found.filter((each) => each.name === found[0].name).length);
    all.replaceChildren(small.node);
    draw();
  }

  function draw() {
    const { name, head, weights, layer } = listed()[chosen];
    const [side, kind] = kinds.value;
    const rows = side === "encoder" ? sentence.source : sentence.target;
    const columns = kind === "cross" || side === "encoder" ? sentence.source : sentence.fed;
    one.replaceChildren(...ribbons(rows, columns, weights));
    told.textContent = word === null ? `Layer ${layer}, head ${head}. Point at a word on the left to see its row alone.`
      : `“${shown(rows[word])}” looks at ${weights[word].map((w, i) => [w, i]).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([w, i]) => `“${shown(columns[i])}” ${percent(w)}`).join(", ")}.`;
    const without = sentence.without[name][head];
    const cost = sentence.probabilities.reduce((sum, p, t) => sum + Math.log(Math.max(p, 1e-4)) - Math.log(Math.max(without[t], 1e-4)), 0);
    lost.replaceChildren(el("div", { class: "lost", role: "table", "aria-label": "probabilities without this head" },
      el("div", { role: "row", class: "head" }, ...["writes", "with all heads", "without this one"].map((text) => el("span", { role: "columnheader" }, text))),
      ...sentence.target.map((piece, t) => el("div", { role: "row", class: without[t] < sentence.probabilities[t] / 2 ? "hurt" : "" }, el("span", { role: "rowheader", class: "name" }, shown(piece)),
        el("span", { role: "cell", class: "amount" }, percent(sentence.probabilities[t], 1)), el("span", { role: "cell", class: "amount" }, percent(without[t], 1))))),
      hint(`The model is made to write the same translation while this head's context is 0. It costs ${number(cost)} nats of log-probability in all.`));
  }

  function ribbons(rows, columns, weights) {
    const lines = Math.max(rows.length, columns.length);
    const high = 100 / lines;
    const middle = (i) => (i + 0.5) * high;
    const paths = weights.flatMap((row, r) => row.map((w, c) => (w < 0.02 || (word !== null && word !== r) ? null
      : svg("path", { d: `M 0 ${middle(r)} C 50 ${middle(r)}, 50 ${middle(c)}, 100 ${middle(c)}`, "stroke-width": 12 * w, "stroke-opacity": 0.25 + 0.65 * w }, svg("title", {}, `${shown(rows[r])} → ${shown(columns[c])}: ${number(w)}`))))).filter(Boolean);
    const left = el("div", { class: "column", style: { "--lines": lines } }, ...rows.map((piece, r) => el("button", { type: "button", class: r === word ? "chosen" : "", "aria-pressed": r === word, on: { pointerenter: (event) => { if (event.pointerType === "mouse") point(r); }, click: (event) => { if (event.pointerType === "mouse") return; point(word === r ? null : r); one.querySelectorAll("button")[r].focus(); } } }, shown(piece))));
    const right = el("div", { class: "column", style: { "--lines": lines } }, ...columns.map((piece, c) => el("span", { style: { "--w": word === null ? 0 : weights[word][c] } }, shown(piece), word === null ? "" : el("small", {}, ` ${number(weights[word][c])}`))));
    return [left, svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": "ribbons as wide as the weights", style: { "--lines": lines } }, ...paths), right];
  }
}

function thumbnail(weights) {
  return svg("svg", { viewBox: `0 0 ${weights[0].length} ${weights.length}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...weights.flatMap((row, r) => row.map((w, c) => svg("rect", { x: c, y: r, width: 1.02, height: 1.02, "fill-opacity": w }))));
}
