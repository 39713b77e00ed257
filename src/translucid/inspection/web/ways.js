// The likeliest ways to go on from a place of the translation; one that is chosen becomes the translation.
//
// showWays(root, found, { title, lang, choose(text) }): found as /continue answers.

import { direction, element, percent } from "./elements.js";
import { roving } from "./roving.js";

export function showWays(root, found, { title, lang = "", choose }) {
  const buttons = found.map((way) => {
    const likely = Math.exp(way.probability);
    const button = element("button", { type: "button", disabled: !way.text.trim() });
    const bar = element("span", { className: "room" }, element("span", { className: "fill own" }));
    bar.firstChild.style.setProperty("--part", likely);
    button.append(
      element("span", { className: "probability", textContent: percent(likely), dir: "ltr" }), bar,
      element("span", { className: "next", textContent: way.next || "(the end)", dir: "auto", lang }),
      element("span", { className: "rest", textContent: way.text, dir: "auto", lang }),
    );
    button.addEventListener("click", () => choose(way.text));
    return button;
  });
  roving([buttons.filter((one) => !one.disabled)], () => true);
  const list = element("ul", { dir: direction(found.map((way) => way.text)) }, ...buttons.map((button) => element("li", {}, button)));
  root.replaceChildren(element("p", { className: "title", textContent: title }), list);
}
