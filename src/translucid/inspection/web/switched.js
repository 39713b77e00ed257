// Which heads are off, and what the model writes without them.
//
// showSwitched(root, without, { text: the translation with all heads, lang, reset(): switch all on }): without is { heads: names, text },
//   or nothing if all are on.

import { element } from "./elements.js";

export function showSwitched(root, without, { text, lang, reset }) {
  root.ariaLive = "polite";
  if (!without) {
    root.replaceChildren(element("p", { className: "about", textContent: "All heads are on. Switch one off to see how the translation changes." }));
    return;
  }
  const { heads } = without;
  const count = heads.length === 1 ? "1 head is off" : `${heads.length} heads are off`;
  const same = without.text === text;
  const state = element("p", {}, element("strong", { textContent: `${count}. ` }), same ? "The translation stays the same." : "The model writes:");
  const button = element("button", { type: "button", textContent: "Switch all on" });
  button.addEventListener("click", reset);
  const texts = [[without.text, "without them"], ...(same ? [] : [[text, "with all heads"]])].map(([words, name]) => element("tr", {},
    element("th", { textContent: name, scope: "row" }), element("td", { textContent: words || "(empty)", lang, dir: "auto" })));
  const table = element("table", { className: "translations" }, element("tbody", {}, ...texts));
  root.replaceChildren(state, table, element("p", { className: "about names", textContent: heads.join(", ") }), button);
}
