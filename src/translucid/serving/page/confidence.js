// Marks in the translation: words with low probability or from an earlier sentence, sentences with low confidence, and text from the
// translation memory.

import { element } from "./elements.js";
import { formatNumber, gettext } from "./messages.js";
import { translatedWarning } from "./server_messages.js";
import { LOW_PROBABILITY } from "./word_chips.js";

const retrievedWords = new WeakMap(); // the words of the memory by their elements
export const LOW_CONFIDENCE = 0.5; // translations with a lower confidence are marked
export const formatShare = (share) => `${formatNumber(Math.round(100 * share))} %`;

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
  const warnings = sentences.flatMap(warningsOf);
  sentences.forEach((sentence, i) => {
    if (!hasLowConfidence(sentence)) return;
    const confidence = formatShare(sentence.confidence);
    warnings.push(
      sentences.length > 1
        ? gettext("sentence {number} has a confidence of only {confidence}", { number: i + 1, confidence })
        : gettext("the translation has a confidence of only {confidence}", { confidence }),
    );
  });
  return [...new Set(warnings)];
}

// Return whether a response has words to mark, so that the page must explain the mark.
export function hasLowProbabilityWords({ sentences }) {
  return sentences.some((sentence) => marksOf(sentence).some(({ retrieved }) => !retrieved));
}

// Return whether a response has words that the memory has decided.
export function hasRetrievedWords({ sentences }) {
  return sentences.some(({ retrieved }) => retrieved?.length > 0);
}

// Return the word that the memory has decided at an element of a translation: word, share, changed, source, target; or undefined.
export function retrievedWordOf(node) {
  return retrievedWords.get(node);
}

function warningsOf({ warnings = [] }) {
  return warnings.map(translatedWarning);
}

function hasLowConfidence({ confidence }) {
  return confidence !== null && confidence !== undefined && confidence < LOW_CONFIDENCE;
}

function sentenceElement(sentence) {
  const nodes = sentenceNodes(sentence);
  if (sentence.origin === "memory")
    return element("span", { className: "from-memory", title: gettext("from the translation memory") }, ...nodes);
  const reasons = warningsOf(sentence);
  if (hasLowConfidence(sentence))
    reasons.push(gettext("confidence {share}", { share: formatShare(sentence.confidence) }));
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

// Return the marks of a sentence in order, { start, end, title }; those of words that the memory has decided have it as `retrieved`.
// Such a word is not marked for its probability, which is that of the model without the memory.
function marksOf(sentence) {
  const { text } = sentence;
  const spaced = [...text.matchAll(/\S+/g)];
  const marks = [];
  for (const retrieved of sentence.retrieved ?? []) {
    const { 0: word, index: start } = spaced[retrieved.position] ?? [""];
    if (word !== retrieved.word) continue;
    const title = gettext("{share} from “{source}” → “{target}”", {
      ...retrieved,
      share: formatShare(retrieved.share),
    });
    marks.push({ start, end: start + word.length, title, retrieved });
  }
  const isRetrieved = (start, end) => marks.some((mark) => mark.retrieved && start < mark.end && mark.start < end);
  let searchStart = 0;
  for (const word of wordsOf(sentence)) {
    const start = word.word ? text.indexOf(word.word, searchStart) : -1;
    if (start < 0) continue;
    searchStart = start + word.word.length;
    if (!isMarked(word) || isRetrieved(start, searchStart)) continue;
    marks.push({
      start,
      end: searchStart,
      title: gettext("probability {share}", { share: formatShare(word.probability) }),
    });
  }
  return marks.sort((a, b) => a.start - b.start);
}

// Return the nodes of a sentence: texts, and elements around the marked words.
function sentenceNodes(sentence) {
  const { text } = sentence;
  const nodes = [];
  let endOfNodes = 0; // the text up to here is in `nodes`
  for (const mark of marksOf(sentence)) {
    nodes.push(text.slice(endOfNodes, mark.start), markElement(text.slice(mark.start, mark.end), mark));
    endOfNodes = mark.end;
  }
  return [...nodes, text.slice(endOfNodes)];
}

function markElement(textContent, { title, retrieved }) {
  if (!retrieved) return element("span", { className: "unsure", textContent, title });
  // Not a button element, whose text browsers do not select.
  const className = retrieved.changed ? "retrieved changed" : "retrieved";
  const marked = element("span", { className, textContent, title, role: "button", tabIndex: 0 });
  marked.setAttribute("aria-haspopup", "dialog");
  retrievedWords.set(marked, retrieved);
  return marked;
}

// Say which sense of a term was chosen, and why. The term is { source, target, sense } of the server.
export function senseText({ source, target, sense }) {
  const meaning = sense.domain ? `${target} (${sense.domain})` : target;
  const values = { term: source, meaning, example: sense.example };
  return sense.why === "example"
    ? gettext("“{term}” as {meaning}, because this example is the most similar: “{example}”", values)
    : gettext("“{term}” as {meaning}, the first in the list", values);
}
