// Why a word is there and not another: the control that asks for it, and the answer in words.

import { element, isolated, percent } from "./elements.js";
import { roving } from "./roving.js";

const SURE = 6; // powers of ten from which on a ratio is not written out

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
