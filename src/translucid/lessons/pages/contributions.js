// Lesson 10: contributions of two vectors by hand, then of the source and the target prefix in the translation model.
import { el, number, percent, shown } from "./dom.js";
import { bar, choice, hint, said, slider } from "./parts.js";
import { showRibbons } from "./ribbons.js";

const RESIDUAL = [1, 1]; // of the sublayer by hand
const DIRECTIONS = [[1, 0], [0, 1]]; // of its two values, whose lengths can be changed
const MEASURES = [
  { label: "weights", value: "weights" },
  { label: "norms", value: "norms" },
  { label: "contributions", value: "contributions" },
];

export function contributions(root) {
  let [sentence, step] = [null, 2];
  const weight = slider("weight α₁", { min: 0, max: 1, step: 0.05, value: 0.8, show: (a) => number(a) }, () => byHand());
  const lengths = [1, 2].map((i) => slider(`length of T(x${"₁₂"[i - 1]})`, { min: 0, max: 4, step: 0.5, value: [0.5, 4][i - 1], show: (x) => number(x, 1) }, () => byHand()));
  const hand = el("div", { class: "byhand" });
  const told = said();
  const measure = choice("measure", MEASURES, () => draw());
  const one = el("div", { class: "seen" });
  const words = el("div", {});
  const table = el("div", {});
  root.append(el("h3", {}, "By hand: one sublayer, two words"), el("div", { class: "knobs" }, weight.node, ...lengths.map((each) => each.node)), hand, told,
    el("h3", {}, "The translation model"), measure.node, one, words, table);
  byHand();
  return (given) => {
    sentence = given;
    step = Math.min(step, sentence.target.length - 1);
    words.replaceChildren(choice("next piece", sentence.target.map((piece, i) => ({ label: shown(piece), value: i })), (t) => { step = t; draw(); }, { chosen: step, kind: "words" }).node);
    draw();
  };

  function byHand() {
    const alphas = [weight.value, 1 - weight.value];
    const terms = DIRECTIONS.map((direction, i) => direction.map((x) => alphas[i] * lengths[i].value * x));
    const shares = contributed([RESIDUAL, ...terms]);
    const names = ["residual", "α₁ T(x₁)", "α₂ T(x₂)"];
    hand.replaceChildren(el("div", { class: "compared", role: "table", "aria-label": "one sublayer by hand" }, header("term", "weight", "length", "contribution"),
      ...[RESIDUAL, ...terms].map((term, i) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, names[i]), el("span", { role: "cell" }, i ? bar(alphas[i - 1]) : "–"),
        el("span", { role: "cell", class: "amount length" }, number(size(term))), el("span", { role: "cell", class: "c" }, bar(shares[i]))))));
    told.textContent = shares[1] < shares[2] && alphas[0] > alphas[1]
      ? "Word 1 has the larger weight, and word 2 contributes more."
      : `Word 1 has ${percent(alphas[0])} of the weight and contributes ${percent(shares[1])}.`;
  }

  function draw() {
    const name = measure.value;
    const both = name === "contributions";
    const weights = sentence[name].map((row, t) => (both ? [...row, ...sentence.prefix[t]] : row));
    const above = [...sentence.source.map(shown), ...(both ? sentence.fed.map((piece) => `‹${shown(piece)}›`) : [])];
    showRibbons(one, { above, below: sentence.target.map(shown), weights, probabilities: null, verbs: both ? ["comes from", "contributes to"] : ["attends to", "is attended to by"] });
    const from = sentence.contributions[step].reduce((a, b) => a + b, 0);
    const rows = sentence.source.map((piece, s) => [shown(piece), ...MEASURES.map(({ value }) => sentence[value][step][s])]);
    for (const [s, piece] of sentence.fed.slice(0, step + 1).entries()) rows.push([`‹${shown(piece)}›`, null, null, sentence.prefix[step][s]]);
    table.replaceChildren(el("div", { class: "compared real", role: "table", "aria-label": "where the piece comes from" }, header("from", "weight", "norm", "contribution"),
      ...rows.map(([from, ...values]) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, from), ...values.map((value, i) => el("span", { role: "cell", class: MEASURES[i].value }, value === null ? "–" : bar(value)))))),
    hint(`“${shown(sentence.target[step])}” comes to ${percent(from)} from the source and to ${percent(1 - from)} from the target prefix, whose pieces stand in ‹›. Weights and norms are of the cross-attention alone, averaged over layers.`));
  }
}

function header(...names) {
  return el("div", { role: "row", class: "head" }, ...names.map((text) => el("span", { role: "columnheader" }, text)));
}

// The sum of absolute values.
function size(vector) {
  return vector.reduce((sum, x) => sum + Math.abs(x), 0);
}

// ALTI: how much closer each term brings the sum to itself, as shares.
function contributed(terms) {
  const sum = terms[0].map((_, k) => terms.reduce((total, term) => total + term[k], 0));
  const closer = terms.map((term) => Math.max(0, size(sum) - size(sum.map((x, k) => x - term[k]))));
  const all = closer.reduce((a, b) => a + b, 0);
  return closer.map((x) => (all ? x / all : 0));
}
