// The card of a feature: its label, the pieces that it promotes, linked words, and its strongest contexts.

import { element, formatSigned } from "./elements.js";
import { formatNumber, gettext } from "./messages.js";

const AROUND = 6; // words before and after the marked ones
const cards = new WeakMap(); // by server: the promises of cards by the names of features

// Show the card of a feature in `root`.
export async function showCard(inspector, root, feature) {
  const { server, content } = inspector;
  if (!cards.has(server)) cards.set(server, new Map());
  const known = cards.get(server);
  root.dataset.feature = feature;
  root.textContent = "…";
  try {
    if (!known.has(feature)) known.set(feature, server.ask("features/card", { feature }));
    const card = await known.get(feature);
    if (root.dataset.feature === feature) fillCard(root, card, content.languages);
  } catch (error) {
    known.delete(feature);
    if (root.dataset.feature === feature) root.textContent = error.message;
  }
}

// Show a card in `root`.
export function fillCard(root, card, languages = ["", ""]) {
  root.replaceChildren(...cardParts(card, languages));
}

// Return what a card shows, as elements.
export function cardParts(card, languages) {
  const [sourceLanguage, targetLanguage] = languages;
  const effects = (items) => items.map(({ token, effect }) => [token.replaceAll("▁", ""), formatSigned(effect)]);
  const words = card.words.map(({ word, contexts }) => [word, String(contexts)]);
  const parts = [element("p", { className: "note", textContent: card.facts })];
  if (card.label) parts.push(element("p", {}, element("strong", { textContent: card.label })));
  parts.push(
    ...listed(gettext("Promotes"), effects(card.promotes), targetLanguage),
    ...listed(gettext("Suppresses"), effects(card.suppresses), targetLanguage),
    ...listed(card.linked === "comes from" ? gettext("Comes from") : gettext("Translated as"), words, ""),
  );
  if (!card.contexts.length) return parts;
  const isOfEncoder = card.name.startsWith("encoder");
  const items = card.contexts.map(({ value, source, target, source_marked, target_marked }) =>
    element(
      "li",
      {},
      element("span", { className: "value", textContent: formatNumber(value, 2) }),
      sentence(source, source_marked, sourceLanguage, !isOfEncoder),
      sentence(target, target_marked, targetLanguage, isOfEncoder),
    ),
  );
  const heading = element("p", { className: "title", textContent: gettext("Strongest contexts") });
  return [...parts, heading, element("ol", { className: "contexts" }, ...items)];
}

function listed(title, entries, lang) {
  if (!entries.length) return [];
  const items = entries.map(([name, figure]) =>
    element("span", {}, element("bdi", { textContent: name, lang }), " ", element("small", { textContent: figure })),
  );
  return [element("p", { className: "pieces" }, element("strong", { textContent: title }), ...items)];
}

// Return the words around the marked ones; words that are only linked to the feature's token are underlined.
function sentence(words, marked, lang, isLinked) {
  const start = Math.max(0, Math.min(...marked, marked.length ? words.length : 0) - AROUND);
  const end = Math.max(...marked, AROUND) + AROUND + 1;
  const nodes = words.slice(start, end).flatMap((word, i) => {
    const isMarked = marked.includes(start + i);
    const mark = { textContent: word, className: isLinked ? "linked" : "" };
    return [isMarked ? element("mark", mark) : word, " "];
  });
  return element("p", { lang, dir: "auto" }, start > 0 ? "… " : "", ...nodes, end < words.length ? "…" : "");
}
