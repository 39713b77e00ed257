// Marks in the translation: words with low probability, sentences with low confidence, text from the memory.

import { element } from "./elements.js";
import { UNSURE } from "./chips.js";

export const SURE = 0.5; // translations with a lower confidence are marked
const rounded = (share) => `${Math.round(100 * share)} %`;

// The parts of a translation, from a response of /look: texts, and elements around marked ones. Together they have the text of the translation.
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

// Explanations of the marks, one per line.
export function notes({ sentences }) {
  const said = sentences.flatMap((one) => one.warnings ?? []);
  const many = sentences.length > 1;
  sentences.forEach((one, i) => {
    if (inDoubt(one)) said.push(`${many ? `sentence ${i + 1}` : "the translation"} has a confidence of only ${rounded(one.confidence)}`);
  });
  return [...new Set(said)];
}

// Whether words are underlined and need an explanation.
export function hasUnsureWords({ sentences }) {
  return sentences.some((one) => unsure(one).some(Boolean));
}

function inDoubt({ confidence }) {
  return confidence !== null && confidence !== undefined && confidence < SURE;
}

function marked(sentence) {
  const words = wordParts(sentence);
  const title = [...(sentence.warnings ?? []), ...(inDoubt(sentence) ? [`confidence ${rounded(sentence.confidence)}`] : [])].join("; ");
  if (sentence.origin === "memory") return element("span", { className: "remembered", title: "from the translation memory" }, ...words);
  return title ? element("span", { className: "doubtful", title }, ...words) : element("span", {}, ...words);
}

// The words of a sentence to mark, with their probabilities; none if it comes from the memory, where a person wrote it.
function unsure({ pieces, origin }) {
  if (origin === "memory") return [];
  return pieces.flatMap(({ target = [], probabilities = [] }) => target.slice(0, -1).map((word, i) => word && probabilities[i] < UNSURE && [word, probabilities[i]]));
}

function wordParts(sentence) {
  const { text, pieces } = sentence;
  const words = pieces.flatMap(({ target = [] }) => target.slice(0, -1));
  const marks = unsure(sentence);
  const parts = [];
  let [at, from] = [0, 0]; // the end of the text in `parts`, and the start of the search for the next word
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
