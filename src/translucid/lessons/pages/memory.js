// Lesson 3: a query looks a memory up; how sharply can be changed.
import { el, number, percent, shown } from "./dom.js";
import { dot, largest, mixed, softmax } from "./maths.js";
import { bar, choice, hint, said, slider, strip } from "./parts.js";

export function memory(root) {
  let [sentence, step, head] = [null, 2, 0];
  const words = el("div", {});
  const heads = el("div", {});
  const sharpness = slider("sharpness", { min: 0, max: 8, step: 0.25, value: 1, show: (x) => `× ${number(x)}` }, () => draw());
  const table = el("div", {});
  const told = said();
  root.append(words, el("div", { class: "knobs" }, heads, sharpness.node), table, told);
  return (given) => {
    sentence = given;
    step = Math.min(step, sentence.target.length - 1);
    words.replaceChildren(choice("next piece", sentence.target.map((piece, i) => ({ label: shown(piece), value: i })), (t) => { step = t; draw(); }, { chosen: step, kind: "words" }).node);
    heads.replaceChildren(choice("head", sentence.heads.map((_, i) => ({ label: String(i), value: i })), (h) => { head = h; draw(); }, { chosen: head }).node);
    draw();
  };

  function draw() {
    const { query, key, value } = sentence.heads[head];
    const d = query[step].length;
    const scores = key.map((k) => dot(query[step], k) / Math.sqrt(d));
    const weights = softmax(scores.map((score) => sharpness.value * score));
    const context = mixed(weights, value);
    const top = Math.max(...value.flat().map(Math.abs));
    const best = largest(weights);
    const apart = Math.hypot(...context.map((x, k) => x - value[best][k]));
    const strongest = (vectors) => Math.max(...vectors.flat().map(Math.abs));
    const keys = Math.max(strongest(key), strongest(query));
    const row = (name, ...cells) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, name), ...cells.map((cell) => el("span", { role: "cell" }, cell)));
    table.replaceChildren(el("div", { class: "memory", role: "table", "aria-label": "memory" },
      row("query", strip(query[step], keys, `query of ${d} numbers`)),
      el("div", { role: "row", class: "head" }, ...["piece", "key", "q · k / √d", "weight", "value"].map((text) => el("span", { role: "columnheader" }, text))),
      ...sentence.source.map((piece, s) => row(shown(piece), strip(key[s], keys, `key of ${d} numbers`), el("span", { class: "amount score" }, number(scores[s])), bar(weights[s]),
        el("span", { class: "faded", style: { "--w": weights[s] } }, strip(value[s], top, `value of ${d} numbers`)))),
      row("context", "", "", "", strip(context, top, `context of ${d} numbers`))),
      hint(`${sentence.name}, head ${head}: vectors of ${d} numbers; blue is positive, orange negative. The context is the weighted average of the values.`));
    told.textContent = `The largest weight, ${percent(weights[best])}, is that of “${shown(sentence.source[best])}”; the context is ${number(apart)} away from its value.`;
  }
}
