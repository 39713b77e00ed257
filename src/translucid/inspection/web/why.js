// Why: an explanation's importances as weights between the words that are shown, and its test of faithfulness beside it.

import { element, isolated, percent, signed } from "./elements.js";
import { roving } from "./roving.js";

const SURE = 6; // powers of ten from which on a ratio is not written out
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
  const count = record.target.length - 1;
  const known = contrast ? contrast.word < count : count === target.length;
  if (record.words.length !== source.length || !known) return null;
  const nothing = Array(record.source.length).fill(0);
  const rows = scaled({ importance }).map((row) => {
    const all = [...nothing];
    record.words.forEach((place, i) => { all[place] = row[i]; });
    return all;
  });
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

// Why a word is there and not another: the control that asks for it, and the answer in words.
// words: those that can be contrasted; others(i): a promise of the likely words at that place, [{ next, probability: its logarithm }];
// ask({ word, instead_of } or null): explain a contrast, or all words. The answer's choose(i) chooses a word.
export function contrasting({ words, lang = "", others, ask }) {
  const word = element("select", { ariaLabel: "word to explain" });
  word.append(element("option", { value: "", textContent: "all words" }), ...words.map((textContent, value) => element("option", { value, textContent })));
  const other = element("input", { type: "text", ariaLabel: "another word", maxLength: 100, lang, dir: "auto", autocomplete: "off", spellcheck: false });
  const form = element("form", { className: "bar", hidden: true }, element("label", { textContent: "and not " }, other), element("button", { textContent: "Why not?" }));
  const likely = element("div", { className: "likely", role: "group", ariaLabel: "likely other words" });
  word.addEventListener("change", () => choose(word.value === "" ? null : Number(word.value)));
  form.addEventListener("submit", (event) => { event.preventDefault(); pick(other.value.trim()); });
  return { box: element("div", { className: "contrast" }, element("div", { className: "bar" }, element("label", { textContent: "Why " }, word), form), likely), choose };

  async function choose(i) {
    word.value = i ?? "";
    form.hidden = i === null;
    other.value = "";
    likely.replaceChildren();
    ask(null);
    if (i === null) return;
    const found = (await others(i)) ?? [];
    if (word.value !== `${i}`) return;
    const texts = new Map();
    for (const { next, probability } of found) if (next && next !== words[i] && !texts.has(next)) texts.set(next, probability);
    const buttons = [...texts].map(([text, probability]) => {
      const button = element("button", { type: "button", textContent: text, title: percent(Math.exp(probability)), lang, dir: "auto", ariaPressed: "false" });
      button.addEventListener("click", () => pick(text));
      return button;
    });
    likely.replaceChildren(...buttons);
    roving([buttons]);
  }

  function pick(text) {
    if (!text) { other.focus(); return; }
    other.value = text;
    for (const button of likely.children) button.ariaPressed = `${button.textContent === text}`;
    ask({ word: Number(word.value), instead_of: text });
  }
}

// The answer in words. found: { target: [word], source: if there are ribbons, contrast: { instead_of, log_odds } }
export function odds({ target: [own], source, contrast: { instead_of, log_odds } }) {
  const [first, second] = [own, instead_of].map((text) => `“${isolated(text)}”`);
  const ratio = Math.exp(Math.abs(log_odds));
  const times = ratio < 10 ** SURE ? ratio.toLocaleString("en", { maximumSignificantDigits: 2 }) : "over a million";
  const [more, less] = log_odds < 0 ? [second, first] : [first, second];
  const colours = source ? ` Blue supports ${first}, orange ${second}.` : "";
  return `Here, ${more} is ${times} times as probable as ${less}.${colours}`;
}
