// Why: an explanation's importances as weights between the words that are shown, and its test of faithfulness beside it.

import { element, percent, signed } from "./elements.js";

export const METHODS = { erasure: "erasure: leave out one word at a time", lime: "LIME: a local linear model", gradients: "integrated gradients" };
export const PICTURED = { erasure: "erasure: leave out one cell at a time", lime: "LIME: a local linear model of patches", gradients: METHODS.gradients };

// Explanations that came with the sentences, where no server can be asked for others.
export function kept(sentences) {
  const names = [...new Set(sentences.flatMap((one) => Object.keys(one.explanations ?? {})))];
  if (!names.length) return {};
  const methods = Object.fromEntries(names.map((name) => [name, METHODS[name] ?? name]));
  return { methods, explain: async (sentence, method) => sentence.explanations?.[method] };
}

// The weights of an explanation between the words of a record; null if they are not the same words. A contrast is of one word.
export function importances(record, { source, target, importance, contrast }) {
  const own = [record.source.slice(record.opening, -1), record.target.slice(0, -1)];
  const known = contrast ? contrast.word < own[1].length : own[1].length === target.length;
  if (own[0].length !== source.length || !known) return null;
  const before = Array(record.opening).fill(0);
  const rows = scaled({ importance }).map((row) => [...before, ...row, 0]);
  const nothing = Array(record.source.length).fill(0);
  return contrast ? alone(record.target, contrast.word, rows[0], nothing) : [...rows, nothing];
}

// What belongs to one of many words, and nothing for the others.
export function alone(words, word, own, nothing) {
  return words.map((_, t) => (t === word ? own : nothing));
}

// Importances as parts of the largest.
export function scaled({ importance }) {
  const largest = Math.max(...importance.flat().map(Math.abs), 1e-9);
  return importance.map((row) => row.map((x) => x / largest));
}

// The two measures as bars beside the mean of random choices.
// share: of a picture, what matters most of it; not given, it is one word of the source.
export function showFaithfulness(root, { faithfulness, random, fit, share, contrast }) {
  const most = share ? `the most important ${percent(share)} of the image` : "the most important source word";
  const rows = [
    ["comprehensiveness", `How much ${contrast ? "the log-odds of the two words fall" : "a word's log-probability falls"} without ${most}`, "high is faithful"],
    ["sufficiency", `How much ${contrast ? "they fall" : "it falls"} with only that ${share ? "part" : "word"}`, "low is faithful"],
  ];
  const values = rows.flatMap(([key]) => [faithfulness[key], random[key]]);
  const [least, greatest] = [Math.min(0, ...values), Math.max(0, ...values)];
  const part = (value) => value / Math.max(greatest - least, 1e-9);
  const bar = (name, value) => {
    const fill = element("span", { className: `fill ${name}` });
    fill.style.setProperty("--from", part(Math.min(0, value) - least));
    fill.style.setProperty("--part", part(Math.abs(value)));
    const room = element("span", { className: "room" }, fill);
    if (least < 0) room.append(element("span", { className: "zero" }));
    room.style.setProperty("--zero", part(-least));
    return element("div", { className: "measure" }, element("span", { textContent: name === "own" ? "this" : "random" }), room, element("span", { textContent: `${signed(value)} nats` }));
  };
  const parts = rows.map(([key, text, good]) => element("div", {}, element("p", { textContent: `${text} (${key}; ${good}):` }), bar("own", faithfulness[key]), bar("random", random[key])));
  if (least < 0) parts.push(element("p", { textContent: `Below zero, ${contrast ? "the log-odds rose" : "the word became more probable"}.` }));
  if (fit?.length) {
    const mean = fit.reduce((a, b) => a + b, 0) / fit.length;
    parts.push(element("p", { textContent: `The linear model explains ${Math.round(100 * mean)} % of the variance (R² ${mean.toFixed(2)}).` }));
  }
  root.replaceChildren(...parts);
}
