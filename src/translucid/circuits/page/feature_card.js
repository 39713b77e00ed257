// The card of a feature: its label, the pieces that it promotes, linked words, and its strongest contexts.

import { element, formatSigned } from "./elements.js";
import { formatNumber, gettext, pgettext } from "./messages.js";

// The labels of words and their values, as the phrasebook has them, in the language of the page.
const LABELS = {
  "part of speech": pgettext("grammar", "part of speech"),
  gender: pgettext("grammar", "gender"),
  number: pgettext("grammar", "number"),
  person: pgettext("grammar", "person"),
  tense: pgettext("grammar", "tense"),
  sense: pgettext("grammar", "sense"),
  role: pgettext("grammar", "role"),
  antecedent: pgettext("grammar", "antecedent"),
  topic: pgettext("grammar", "topic"),
};
const VALUES = {
  masculine: pgettext("grammar", "masculine"),
  feminine: pgettext("grammar", "feminine"),
  singular: pgettext("grammar", "singular"),
  plural: pgettext("grammar", "plural"),
  first: pgettext("grammar", "first"),
  second: pgettext("grammar", "second"),
  third: pgettext("grammar", "third"),
  present: pgettext("grammar", "present"),
  past: pgettext("grammar", "past"),
  future: pgettext("grammar", "future"),
  conditional: pgettext("grammar", "conditional"),
  noun: pgettext("grammar", "noun"),
  adjective: pgettext("grammar", "adjective"),
  determiner: pgettext("grammar", "determiner"),
  pronoun: pgettext("grammar", "pronoun"),
  preposition: pgettext("grammar", "preposition"),
  conjunction: pgettext("grammar", "conjunction"),
  interjection: pgettext("grammar", "interjection"),
  adverb: pgettext("grammar", "adverb"),
  numeral: pgettext("grammar", "numeral"),
  verb: pgettext("grammar", "verb"),
  auxiliary: pgettext("grammar", "auxiliary"),
  particle: pgettext("grammar", "particle"),
  possessor: pgettext("grammar", "possessor"),
  predicative: pgettext("grammar", "predicative"),
  subject: pgettext("grammar", "subject"),
  object: pgettext("grammar", "object"),
  "proper noun": pgettext("grammar", "proper noun"),
  "indirect object": pgettext("grammar", "indirect object"),
};
const TOPICS = {
  animals: pgettext("topic", "animals"),
  body: pgettext("topic", "body"),
  clothes: pgettext("topic", "clothes"),
  countries: pgettext("topic", "countries"),
  dishes: pgettext("topic", "dishes"),
  drinks: pgettext("topic", "drinks"),
  family: pgettext("topic", "family"),
  food: pgettext("topic", "food"),
  furniture: pgettext("topic", "furniture"),
  house: pgettext("topic", "house"),
  languages: pgettext("topic", "languages"),
  music: pgettext("topic", "music"),
  names: pgettext("topic", "names"),
  people: pgettext("topic", "people"),
  places: pgettext("topic", "places"),
  reading: pgettext("topic", "reading"),
  shows: pgettext("topic", "shows"),
  sports: pgettext("topic", "sports"),
  subjects: pgettext("topic", "subjects"),
  things: pgettext("topic", "things"),
  vehicles: pgettext("topic", "vehicles"),
  time: pgettext("topic", "time"),
};
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

// Return a label with its value, such as "gender feminine", in the language of the page.
export function translatedLabel(text) {
  const label = Object.keys(LABELS).find((name) => text.startsWith(`${name} `));
  if (!label) return text;
  const value = text.slice(label.length + 1);
  const names = label === "topic" ? TOPICS : VALUES;
  return gettext("{label} {value}", { label: LABELS[label], value: names[value] ?? value });
}

function describeMeaning({ label, value, site, f1, always }) {
  const values = {
    label: translatedLabel(`${label} ${value}`),
    f1: formatNumber(f1, 2),
    always: formatNumber(always, 2),
  };
  if (site === "read") return gettext("{label}, of the word read (F1 {f1}, always {always})", values);
  if (site === "written") return gettext("{label}, of the word written (F1 {f1}, always {always})", values);
  return gettext("{label} (F1 {f1}, always {always})", values);
}

function describeActivity({ name, share, largest, contexts }) {
  if (!contexts.length) return gettext("never active in the text");
  const values = { share: `${formatNumber(100 * share, 2)} %`, largest: formatNumber(largest, 2) };
  return name.startsWith("encoder")
    ? gettext("active at {share} of the source tokens, at most {largest}", values)
    : gettext("active at {share} of the target tokens, at most {largest}", values);
}

// Return what a card shows, as elements.
export function cardParts(card, languages) {
  const [sourceLanguage, targetLanguage] = languages;
  const effects = (items) => items.map(({ token, effect }) => [token.replaceAll("▁", ""), formatSigned(effect)]);
  const words = card.words.map(({ word, contexts }) => [word, String(contexts)]);
  const parts = [element("p", { className: "note", textContent: describeActivity(card) })];
  if (card.meaning) parts.push(element("p", {}, element("strong", { textContent: describeMeaning(card.meaning) })));
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
