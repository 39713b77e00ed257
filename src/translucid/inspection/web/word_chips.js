// The words of a text as a line of buttons, each with a bar for the model's probability of the word.

import { element, textDirection } from "./elements.js";
import { gettext } from "./messages.js";

export const LOW_PROBABILITY = 0.3; // words with a lower probability are underlined
export const UNKNOWN_LABEL = gettext("unknown characters");
export const SPECIAL_TOKEN_LABELS = {
  "</s>": gettext("end of text"),
  "<s>": gettext("start of text"),
  "<unk>": UNKNOWN_LABEL,
};
const CONTEXT_LABEL = gettext("previous sentence");

// Create the buttons of one line of words.
//
// side: the CSS class of the line, "above", "below" or "prefix".
// options: {
//   lang: the language code of the text,
//   probabilities: the model's probability of each word,
//   marked: a Set of the indices of words with a frame,
//   unknown: indices of words with characters that the model does not know,
//   contextCount: how many of the first words belong to previous sentences,
//   onHighlight(index or null): the pointer or the focus enters or leaves a word,
//   onChoose(index): a word is clicked or activated with Enter }
// Returns { line: the container, words: the buttons, shares: an element beside each word for a percentage, showStep }.
export function createWordChips(side, texts, options) {
  const words = texts.map((text, i) => createChip(text, i, options));
  const shares = words.map(() => element("small", { className: "share", ariaHidden: true }));
  const cells = words.map((word, i) => element("span", { className: "cell" }, word, shares[i]));
  const line = element(
    "div",
    { className: `line ${side}`, dir: textDirection(texts), lang: options.lang ?? "" },
    ...cells,
  );
  return { line, words, shares, showStep: (index) => showStep(words, index) };
}

function createChip(text, i, { probabilities, marked, unknown = [], contextCount = 0, onHighlight, onChoose }) {
  const button = element("button", { type: "button", className: "word", textContent: text });
  if (SPECIAL_TOKEN_LABELS[text]) {
    const label = SPECIAL_TOKEN_LABELS[text];
    Object.assign(button, { title: label, ariaLabel: label, dir: "ltr" });
    button.classList.add("special-token");
  }
  if (unknown.includes(i)) {
    Object.assign(button, { title: UNKNOWN_LABEL, ariaLabel: `${text}: ${UNKNOWN_LABEL}` });
    button.classList.add("special-token");
  }
  if (i < contextCount) {
    Object.assign(button, { title: CONTEXT_LABEL, ariaLabel: `${text}: ${CONTEXT_LABEL}` });
    button.classList.add("context");
  }
  if (marked?.has(i)) button.classList.add("differs");
  if (probabilities?.[i] !== undefined) showProbability(button, probabilities[i]);
  for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => onHighlight(i));
  for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => onHighlight(null));
  button.addEventListener("click", () => {
    onHighlight(i);
    onChoose?.(i);
  });
  return button;
}

function showProbability(button, probability) {
  button.style.setProperty("--probability", probability);
  button.classList.add("has-probability");
  button.classList.toggle("low-probability", probability < LOW_PROBABILITY);
}

// Show the words as they are when the model has just written the word at `index`; null shows all words as written.
function showStep(words, index) {
  words.forEach((word, i) => {
    word.classList.toggle("upcoming", index !== null && i > index);
    word.classList.toggle("current", i === index);
  });
}

// Return what the user does to see more about a word, for mouse or touch screen.
export function pointingHint() {
  return matchMedia("(hover: none)").matches
    ? gettext("Tap a word")
    : gettext("Point at a word, or move to it with Tab and the arrow keys");
}

// Show a hint, and reserve its height. The hint is longer than the description of a word that replaces it: without the reserved
// height, the page would move under the pointer.
export function showHint(container, text) {
  container.textContent = text;
  container.style.minHeight = "";
  if (container.offsetHeight) container.style.minHeight = `${container.offsetHeight}px`;
}
