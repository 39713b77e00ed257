// What helps with a segment that is worked on: what the memory has that is like it, and its terms. Asked for only when somebody gets there.

import { element } from "./elements.js";

const known = new Map(); // the hints of segments, by what was asked

// Show the hints of a segment in a place. `ask` gets them, once; `insert` puts a text where the translation is typed.
export async function showHints(place, path, ask, insert) {
  if (!known.has(path)) known.set(path, ask(path));
  let hints;
  try { hints = await known.get(path); } catch { known.delete(path); return; } // a translation goes on without
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
