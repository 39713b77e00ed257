// A translation where people read it: words that the model was not sure of, sentences in doubt, and what is from the memory.

import { element } from "./elements.js";
import { UNSURE } from "./chips.js";

export const SURE = 0.5; // a translation that is less likely to be good is marked
const rounded = (share) => `${Math.round(100 * share)} %`;

// The parts of a translation, an answer of /look: texts, and elements around what is marked; the text of them all is the translation's.
export function markedParts({ translation, sentences }) {
  const parts = [];
  let at = 0;
  for (const sentence of sentences) {
    const start = sentence.text ? translation.indexOf(sentence.text, at) : -1;
    if (start < 0) continue;
    parts.push(translation.slice(at, start), marked(sentence));
    at = start + sentence.text.length;
  }
  return [...parts, translation.slice(at)];
}

// What is to be said of the marks below a translation, a line each.
export function notes({ sentences }) {
  const said = sentences.flatMap((one) => one.warnings ?? []);
  const many = sentences.length > 1;
  sentences.forEach((one, i) => {
    if (inDoubt(one)) said.push(`${many ? `sentence ${i + 1}` : "the translation"} is good with a probability of ${rounded(one.confidence)} only`);
  });
  return [...new Set(said)];
}

// Whether words are marked, so that it has to be said what the mark means.
export function hasUnsureWords({ sentences }) {
  return sentences.some((one) => unsure(one).some(Boolean));
}

function inDoubt({ confidence }) {
  return confidence !== null && confidence !== undefined && confidence < SURE;
}

function marked(sentence) {
  const words = wordParts(sentence);
  const title = [...(sentence.warnings ?? []), ...(inDoubt(sentence) ? [`${rounded(sentence.confidence)} sure`] : [])].join("; ");
  if (sentence.origin === "memory") return element("span", { className: "remembered", title: "from the translation memory" }, ...words);
  return title ? element("span", { className: "doubtful", title }, ...words) : element("span", {}, ...words);
}

// The words of a sentence that are to be marked, each with its probability; of what comes from the memory none: a person wrote it.
function unsure({ pieces, origin }) {
  if (origin === "memory") return [];
  return pieces.flatMap(({ target = [], probabilities = [] }) => target.slice(0, -1).map((word, i) => word && probabilities[i] < UNSURE && [word, probabilities[i]]));
}

function wordParts(sentence) {
  const { text, pieces } = sentence;
  const words = pieces.flatMap(({ target = [] }) => target.slice(0, -1));
  const marks = unsure(sentence);
  const parts = [];
  let [at, from] = [0, 0]; // where the text goes on that is not in `parts` yet, and where the next word is looked for
  words.forEach((word, i) => {
    const start = word ? text.indexOf(word, from) : -1;
    if (start < 0) return;
    from = start + word.length;
    if (!marks[i]) return;
    parts.push(text.slice(at, start), element("span", { className: "unsure", textContent: word, title: `probability ${rounded(marks[i][1])}` }));
    at = from;
  });
  return [...parts, text.slice(at)];
}
