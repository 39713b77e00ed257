// Marks in the translation: words with low probability, sentences with low confidence, and text from the translation memory.

import { element } from "./elements.js";
import { LOW_PROBABILITY } from "./word_chips.js";

export const LOW_CONFIDENCE = 0.5; // translations with a lower confidence are marked
const formatShare = (share) => `${Math.round(100 * share)} %`;

// Return the nodes of a translation from a response of /look: texts, and elements around marked parts. Their text content is the
// translation, including the space between sentences.
export function translationNodes({ translation, sentences }) {
  const nodes = [];
  let position = 0;
  for (const sentence of sentences) {
    const start = sentence.text ? translation.indexOf(sentence.text, position) : -1;
    if (start < 0) continue;
    nodes.push(translation.slice(position, start), sentenceElement(sentence));
    position = start + sentence.text.length;
  }
  return [...nodes, translation.slice(position)];
}

// Return the warnings of a response, without duplicates.
export function warningTexts({ sentences }) {
  const warnings = sentences.flatMap((sentence) => sentence.warnings ?? []);
  sentences.forEach((sentence, i) => {
    if (!hasLowConfidence(sentence)) return;
    const subject = sentences.length > 1 ? `sentence ${i + 1}` : "the translation";
    warnings.push(`${subject} has a confidence of only ${formatShare(sentence.confidence)}`);
  });
  return [...new Set(warnings)];
}

// Return whether a response has words to mark, so that the page must explain the mark.
export function hasLowProbabilityWords({ sentences }) {
  return sentences.some((sentence) => wordsOf(sentence).some(isMarked));
}

function hasLowConfidence({ confidence }) {
  return confidence !== null && confidence !== undefined && confidence < LOW_CONFIDENCE;
}

function sentenceElement(sentence) {
  const nodes = sentenceNodes(sentence);
  if (sentence.origin === "memory")
    return element("span", { className: "from-memory", title: "from the translation memory" }, ...nodes);
  const reasons = [...(sentence.warnings ?? [])];
  if (hasLowConfidence(sentence)) reasons.push(`confidence ${formatShare(sentence.confidence)}`);
  if (!reasons.length) return element("span", {}, ...nodes);
  return element("span", { className: "doubtful", title: reasons.join("; ") }, ...nodes);
}

// Return the words of a sentence with their probabilities, without end tokens. Text from the memory was written by a person; where
// a glossary has changed a translation, the probabilities are those without it.
function wordsOf({ pieces, origin }) {
  return pieces.flatMap(({ target = [], probabilities = [], judged_probabilities: judged }) => {
    const known = origin === "memory" ? [] : (judged ?? probabilities);
    return target.slice(0, -1).map((word, i) => ({ word, probability: known[i] }));
  });
}

function isMarked({ word, probability }) {
  return Boolean(word) && probability < LOW_PROBABILITY;
}

// Return the nodes of a sentence: texts, and elements around the marked words.
function sentenceNodes(sentence) {
  const { text } = sentence;
  const nodes = [];
  let endOfNodes = 0; // the text up to here is in `nodes`
  let searchStart = 0;
  for (const word of wordsOf(sentence)) {
    const start = word.word ? text.indexOf(word.word, searchStart) : -1;
    if (start < 0) continue;
    searchStart = start + word.word.length;
    if (!isMarked(word)) continue;
    const title = `probability ${formatShare(word.probability)}`;
    nodes.push(text.slice(endOfNodes, start), element("span", { className: "unsure", textContent: word.word, title }));
    endOfNodes = searchStart;
  }
  return [...nodes, text.slice(endOfNodes)];
}
