// A line of words as buttons, each with a bar that says how sure the model was of it; texts, translations and captions are shown so.
//
// chips(side, texts, { lang, probabilities, marked: a Set, unknown: indices, context, light(index or null), choose(index) }): `side` is
//   above or below; of the words at `unknown` the model does not know all characters; the first `context` are of previous sentences.

import { direction, element } from "./elements.js";

export const UNSURE = 0.3; // a word below this probability is underlined
export const UNKNOWN = "unknown characters";
export const CONTEXT = "previous sentence";
export const SIGNS = { "</s>": "end of text", "<s>": "start of text", "<unk>": UNKNOWN };

export function chips(side, texts, { lang = "", probabilities, marked, unknown = [], context = 0, light, choose }) {
  const words = texts.map((text, i) => {
    const button = element("button", { type: "button", className: "word", textContent: text });
    if (SIGNS[text]) Object.assign(button, { title: SIGNS[text], ariaLabel: SIGNS[text], dir: "ltr" }).classList.add("sign");
    if (unknown.includes(i)) Object.assign(button, { title: UNKNOWN, ariaLabel: `${text}: ${UNKNOWN}` }).classList.add("sign");
    if (i < context) Object.assign(button, { title: CONTEXT, ariaLabel: `${text}: ${CONTEXT}` }).classList.add("context");
    if (marked?.has(i)) button.classList.add("differs");
    const p = probabilities?.[i];
    if (p !== undefined) {
      button.style.setProperty("--sure", p);
      button.classList.add("sure");
      button.classList.toggle("unsure", p < UNSURE);
    }
    for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => light(i));
    for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => light(null));
    button.addEventListener("click", () => { light(i); choose?.(i); });
    return button;
  });
  const cells = words.map((one) => element("span", { className: "cell" }, one, element("small", { className: "share", ariaHidden: true })));
  const box = element("div", { className: `line ${side}`, dir: direction(texts), lang }, ...cells);
  return { box, words, shares: cells.map((cell) => cell.lastChild), showStep };

  // The words as they stand when the one with this index is written; null is when all are.
  function showStep(index) {
    words.forEach((one, i) => {
      one.classList.toggle("later", index !== null && i > index);
      one.classList.toggle("now", i === index);
    });
  }
}

// What one does to see more of a word, with the device at hand.
export function pointing() {
  return matchMedia("(hover: none)").matches ? "Tap a word" : "Point at a word, or move to it with Tab and the arrow keys";
}

// Say what one can do. That is longer than what is said of a word, and its room stays: else the page would move under the pointer.
export function invite(place, text) {
  Object.assign(place, { textContent: text }).style.minHeight = "";
  if (place.offsetHeight) place.style.minHeight = `${place.offsetHeight}px`;
}

// The words in which two texts differ: all that are not in a longest common subsequence.
export function difference(first, second) {
  const common = Array.from({ length: first.length + 1 }, () => Array(second.length + 1).fill(0));
  for (let i = first.length - 1; i >= 0; i -= 1) {
    for (let j = second.length - 1; j >= 0; j -= 1) {
      common[i][j] = first[i] === second[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [new Set(first.keys()), new Set(second.keys())];
  for (let i = 0, j = 0; i < first.length && j < second.length;) {
    if (first[i] === second[j]) { found[0].delete(i++); found[1].delete(j++); }
    else if (common[i + 1][j] >= common[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}
