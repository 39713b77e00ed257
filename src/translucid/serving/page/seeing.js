// Attention and explanations of a translation, one view per model.
//
// startSeeing(ask, settings) once; see(text, [{ answer, model, which, step, title }, …]) for the views of the responses of /look
// (steps.js), the first model's first;
// clearSeeing() if there is nothing to show; leaveSeeing() when another text is coming, so that late responses are ignored.
// #seeing emits "choose" with { translations, which: the index of the model, step } when the user chooses others, and "problem"
// with an error or null.

import { $, whileWanted } from "./asking.js";
import { difference } from "./chips.js";
import { element } from "./elements.js";
import { showSpace } from "./space.js";
import { METHODS } from "./why.js";

let ask = null; // (path, model, fields): a request to the server
let methods = {}; // explanation methods of the server
let turn = 0; // late responses are ignored
let mode = "attention"; // the chosen view
let back = null; // the model, sentence and word where the user chose an alternative, to restore the focus

export function startSeeing(question, settings) {
  ask = question;
  methods = Object.fromEntries(Object.entries(METHODS).filter(([name]) => settings.explanations.includes(name)));
}

export function leaveSeeing() {
  turn += 1;
}

export function clearSeeing() {
  turn += 1;
  $("seeing").hidden = true;
  $("seeing").replaceChildren();
}

export function see(text, answers) {
  const returned = back;
  back = null;
  $("seeing").style.minHeight = `${$("seeing").offsetHeight}px`; // keeps the page from jumping
  clearSeeing();
  if (!answers[0]?.answer.sentences.length) { $("seeing").style.minHeight = ""; return; }
  const all = answers.map(({ answer, model }) => ({ model, sentences: pieces(answer) }));
  if (all.length > 1 && answers.every(({ step }) => step === undefined)) mark(all[0].sentences, all[1].sentences);
  const spaces = [];
  const parts = element("div", { className: all.length > 1 ? "side-by-side" : "" });
  $("seeing").hidden = false; // only visible elements can be measured
  $("seeing").append(parts);
  all.forEach(({ model, sentences }, i) => {
    const { which, step, title } = answers[i];
    const place = element("div", { id: ["attention", "compared-attention"][i] ?? `attention-${i}` });
    const part = element("section", { ariaLabel: `attention and explanations of ${title}${which ? " (compared)" : ""}` });
    if (all.length > 1) part.append(element("h3", { textContent: title, className: "of" }));
    part.append(place);
    parts.append(part);
    const seen = { run: `runs/${model.name}`, languages: [model.source, model.target], named: model.many, sentences, mode, number: returned?.number ?? 0 };
    // Both show the same sentence.
    const moved = (number) => spaces.forEach((one, j) => { if (j !== i && number < all[j].sentences.length) one.open(number); });
    const chosen = (sentence, other, word) => {
      back = { which: i, number: sentences.indexOf(sentence), word };
      const translations = answers[i].answer.sentences.map((one) => (one === sentence.of ? other : one.text));
      tell("choose", { translations, which, step });
    };
    spaces.push(showSpace(place, seen, server(model, moved, chosen)));
  });
  if (returned) spaces[returned.which].focus(returned.word);
  $("seeing").style.minHeight = "";
}

function tell(type, detail) {
  $("seeing").dispatchEvent(new CustomEvent(type, { detail }));
}

// The units shown one at a time: sentences, or the parts of one that was split. `of` is the sentence of the response, if it is whole.
function pieces({ sentences }) {
  return sentences.flatMap((one) => one.pieces.map((piece) => {
    const whole = one.pieces.length === 1;
    const words = (side) => piece[side]?.slice(0, -1).join(" ") ?? "";
    return {
      source_text: whole ? one.source_text : words("source"), text: whole ? one.text : words("target"),
      confidence: one.confidence, record: piece.maps ? piece : null, of: whole ? one : null,
    };
  }));
}

// Mark the words in which the translations of two models differ.
function mark(first, second) {
  first.forEach((one, i) => {
    const other = second[i];
    if (!one.record || !other?.record) return;
    const [below, theirs] = difference(one.record.target, other.record.target);
    one.marked = { above: new Set(), below };
    other.marked = { above: new Set(), below: theirs };
  });
}

// Requests of a view. Requests about an old text never resolve.
function server(model, moved, choose) {
  const question = (path, fields) => {
    const mine = turn;
    return whileWanted(ask(path, model, fields), () => mine === turn);
  };
  const looked = async ({ source_text: q, text }, more) => (await question("look", { q, translations: [text], ...more })).sentences[0];
  return {
    methods, moved, choose,
    turned: (name) => { mode = name; },
    problem: (error) => tell("problem", error),
    maps: async (sentence) => ({ ...sentence.record, ...(await looked(sentence, { maps: "all" })).pieces[0] }),
    contributions: async (sentence) => {
      const { fed, prefix, source_contributions, maps } = (await looked(sentence, { maps: "contributions" })).pieces[0];
      return { fed, prefix, source_contributions, maps: maps.filter(({ kind }) => kind === "norms" || kind === "contributions") };
    },
    layers: ({ source_text: q, text }) => question("layers", { q, translation: text }),
    patch: ({ source_text: q, text }, fields) => question("patch", { q, translation: text, ...fields }),
    ablate: async ({ source_text: q }, ablate) => {
      const [{ text, pieces: [record] }] = (await question("look", { q, ablate, maps: "all" })).sentences;
      return { text, record };
    },
    tree: async ({ source_text: q }) => (await question("beam", { q })).trees[0],
    pdf: ({ source_text: q, text }, view) => question("picture", { q, translation: text, ...view }),
    ...(Object.keys(methods).length ? { explain: async (sentence, explain, contrast) => (await looked(sentence, { explain, ...contrast })).explanation } : {}),
    ways: ({ source_text: q }, prefix) => question("continue", { q, prefix }),
  };
}
