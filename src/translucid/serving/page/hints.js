// Hints for the focused segment: matches from the memory, and terms. They are requested on focus.

import { element } from "./elements.js";

const known = new Map(); // hints of segments, by request

// Show the hints of a segment in an element. `ask` fetches them, once; `insert` inserts a text into the translation.
export async function showHints(place, path, ask, insert) {
  if (!known.has(path)) known.set(path, ask(path));
  let hints;
  try { hints = await known.get(path); } catch { known.delete(path); return; } // hints are optional
  const matches = hints.matches.map((one) => match(one, insert));
  const terms = hints.terms.map(({ source, target }) => button(`${source} → ${target}`, "a term and its translation", () => insert(target, false)));
  place.replaceChildren(...matches, ...terms);
}

export function forgetHints() {
  known.clear();
}

function match({ percent, source, target, differing, who }, insert) {
  const words = differing.map(([mine, theirs]) => `${mine || "∅"} here, ${theirs || "∅"} there`).join("; ");
  const title = [`“${source}”`, words, who && `from ${who}`].filter(Boolean).join(" · ");
  return button(target, title, () => insert(target, true), `${percent}\u00a0%`);
}

function button(text, title, does, before = "") {
  const one = element("button", { type: "button", className: "quiet", title });
  if (before) one.append(element("b", { textContent: before }), " ");
  one.append(element("span", { textContent: text, dir: "auto" }));
  one.addEventListener("click", does);
  return one;
}
