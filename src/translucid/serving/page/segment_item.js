// A segment of a document as a list item: its source, its translation to edit, and hints.

import { formatShare, LOW_CONFIDENCE, senseText } from "./confidence.js";
import { element, svgElement } from "./elements.js";
import { formatNumber, gettext } from "./messages.js";
import { translatedPlace, translatedWarning } from "./server_messages.js";

const hintResponses = new Map(); // promises by request path, so that each segment's hints are requested once
const retrievedWords = new WeakMap(); // by button
const IS_TOUCH = matchMedia("(hover: none)").matches;
const ORIGINS = { memory: gettext("from the memory"), person: gettext("edited by a person") };

// Create the item. `draft` is the unaccepted edit, if any; `languages` are { source, target } codes.
export function segmentItem(segment, draft, languages) {
  const { number, target, existing, doubts } = segment;
  const place = translatedPlace(segment.place);
  const item = element("li", { className: segmentClasses(segment, draft) });
  item.dataset.number = number;
  const source = element(
    "p",
    { className: "output", dir: "auto", lang: languages.source ?? "" },
    ...sourceNodes(segment),
  );
  const textarea = element("textarea", {
    value: draft ?? serverText(segment),
    rows: 1,
    dir: "auto",
    lang: languages.target,
    disabled: target === null && existing === null,
    spellcheck: true,
    enterKeyHint: entersLineBreaks(segment) ? "enter" : "next",
  });
  textarea.setAttribute("aria-label", gettext("translation of {place}", { place }));
  const actions = element(
    "div",
    { className: "actions" },
    actionButton("undo", "i-undo", gettext("undo the edit of {place}", { place }), gettext("Undo your edit (Esc)")),
    actionButton(
      "accept",
      "i-accept",
      gettext("accept the translation of {place}", { place }),
      gettext("Accept (Enter)"),
    ),
  );
  if (segment.longest) showLength(textarea, actions, segment.longest);
  const warnings = element("p", {
    className: "doubts",
    textContent: doubts.map((doubt) => `⚠ ${translatedWarning(doubt)}`).join("\n"),
  });
  const hints = element("div", {
    className: "hints",
    role: "group",
    ariaLabel: gettext("matches from the memory, and terms"),
  });
  const problem = element("p", { className: "problem", role: "alert" });
  item.append(
    segmentInfo(segment, draft),
    source,
    textarea,
    actions,
    hints,
    retrievedEntries(segment),
    warnings,
    problem,
  );
  return item;
}

// Whether Enter inserts a line break into the translation, and does not accept it: an on-screen keyboard has no Shift-Enter.
export function entersLineBreaks({ source }) {
  return IS_TOUCH && source.includes("\n");
}

// Show the length of a translation beside its limit, such as 33 / 30, before its buttons.
function showLength(textarea, actions, longest) {
  const note = element("span", { className: "length" });
  const show = () => {
    const length = countCharacters(textarea.value.replace(/⟨\/?\d+\/?⟩/g, ""));
    const values = { length: formatNumber(length), limit: formatNumber(longest) };
    note.textContent = `${values.length} / ${values.limit}`;
    note.title = gettext("{length} of at most {limit} characters", values);
    note.classList.toggle("too-long", length > longest);
  };
  for (const type of ["input", "keyup"]) textarea.addEventListener(type, show);
  actions.addEventListener("click", () => setTimeout(show)); // after the list has undone an edit
  actions.prepend(note);
  show();
}

// Return the number of characters as people count them, where the browser can.
function countCharacters(text) {
  return [...(globalThis.Intl?.Segmenter ? new Intl.Segmenter().segment(text) : text)].length;
}

// The buttons are for pointers, and no Tab stops of their own: in the text, Enter and Esc do the same.
function actionButton(className, icon, ariaLabel, title) {
  const use = svgElement("use", { href: `#${icon}` });
  return element(
    "button",
    { type: "button", className: `quiet ${className}`, tabIndex: -1, ariaLabel, title },
    svgElement("svg", {}, use),
  );
}

// The entries of the memory that have decided words of the translation, as buttons; `entryOf(button)` returns the word of one.
function retrievedEntries({ retrieved = [] }) {
  const sources = [...new Set(retrieved.map(({ source }) => source))];
  const buttons = sources.map((source) => {
    const words = retrieved.filter((word) => word.source === source);
    const strongest = words.reduce((best, word) => (word.share > best.share ? word : best));
    const title = gettext("up to {share} from “{source}” → “{target}”", {
      ...strongest,
      share: formatShare(strongest.share),
    });
    const button = hintButton(words.map(({ word }) => word).join(" "), title, () => {});
    button.classList.add("retrieved");
    button.setAttribute("aria-haspopup", "dialog");
    retrievedWords.set(button, strongest);
    return button;
  });
  const entries = element("div", { className: "entries", role: "group" }, ...buttons);
  entries.ariaLabel = gettext("words from earlier sentences");
  entries.dataset.label = gettext("From earlier sentences:");
  return entries;
}

// Return the word that the memory has decided at a button, or undefined.
export function entryOf(button) {
  return retrievedWords.get(button);
}

// The line above a segment: its number and place, its confidence, the origin of its translation, and its state.
function segmentInfo(segment, draft) {
  const { number, note, confidence, origin } = segment;
  const textContent = `${number + 1} · ${translatedPlace(segment.place)}`;
  const info = element("p", { className: "hint", textContent, title: note ?? "" });
  if (confidence !== null) {
    const title = gettext("confidence {share}", { share: formatShare(confidence) });
    const thresholds = { min: 0, max: 1, low: LOW_CONFIDENCE, high: LOW_CONFIDENCE, optimum: 1 };
    info.append(" ", element("meter", { value: confidence, ...thresholds, title }));
  }
  if (origin && origin !== "model") info.append(` · ${ORIGINS[origin]}`);
  info.append(element("span", { className: "state", textContent: stateText(segment, draft) }));
  return info;
}

function stateText({ accepted, target, origin }, draft) {
  if (draft !== undefined) return `· ${gettext("edited, not accepted")}`;
  if (accepted) return `· ${gettext("accepted")}`;
  return target !== null && (origin ?? "model") === "model" ? `· ${gettext("machine translation")}` : "";
}

// Show the state of a segment in its item. `draft` is the unaccepted edit, if any.
export function showState(item, segment, draft) {
  item.className = segmentClasses(segment, draft);
  item.querySelector(".state").textContent = stateText(segment, draft);
}

// Return the source as nodes, with its tag placeholders as elements whose titles show the tags.
function sourceNodes({ source, tags }) {
  const tagElement = (text) => element("code", { className: "tag", textContent: text, title: tags[text] });
  return source.split(/(⟨\/?\d+\/?⟩)/).map((part) => (part in tags ? tagElement(part) : part));
}

// Return the translation of a segment on the server; before there is one, that of the document itself, or "".
export function serverText({ target, existing }) {
  return target ?? existing ?? "";
}

// Return the classes of a segment's item. `draft` is the unaccepted edit, if any.
function segmentClasses(segment, draft) {
  return [segment.accepted && "accepted", draft !== undefined && "draft", isDoubtful(segment) && "doubtful"]
    .filter(Boolean)
    .join(" ");
}

// Return whether a person should check a segment.
export function isDoubtful({ accepted, doubts, confidence }) {
  const hasLowConfidence = confidence !== null && confidence < LOW_CONFIDENCE;
  return !accepted && (doubts.length > 0 || hasLowConfidence);
}

// Make a textarea as high as its text.
export function fitHeight(textarea) {
  textarea.style.height = "auto";
  textarea.style.height = `${textarea.scrollHeight + 2}px`; // 2 pixels for the border
}

// Show the hints of a segment in a container: matches from the translation memory, and terms. `request(path)` asks the server;
// `insert(text, replaceAll)` inserts a text into the segment's translation, `chooseSense(targets, menu)` translates it again with the senses of terms.
export async function showHints(container, path, request, insert, chooseSense) {
  if (!hintResponses.has(path)) hintResponses.set(path, request(path));
  let hints;
  try {
    hints = await hintResponses.get(path);
  } catch {
    // hints are optional
    hintResponses.delete(path);
    return;
  }
  const matches = hints.matches.map((match) => matchButton(match, insert));
  const text = container.closest("li").querySelector("textarea").value.toLowerCase();
  const terms = hints.terms.flatMap((term) => [termButton(term, insert), ...senseMenu(term, text, chooseSense)]);
  container.replaceChildren(...matches, ...terms);
}

// Forget the hints of a document's segments.
export function clearHints() {
  hintResponses.clear();
}

function matchButton({ percent, source, target, differing, who }, insert) {
  const differences = differing
    .map(([here, there]) => gettext("{here} here, {there} there", { here: here || "∅", there: there || "∅" }))
    .join("; ");
  const title = [`“${source}”`, differences, who && gettext("from {person}", { person: who })]
    .filter(Boolean)
    .join(" · ");
  const button = hintButton(target, title, () => insert(target, true), `${percent}\u00a0%`);
  button.classList.add("match");
  return button;
}

function termButton({ source, target }, insert) {
  const title = gettext("a term and its translation");
  const button = hintButton(`${source} → ${target}`, title, () => insert(target, false));
  button.classList.add("term");
  button.dataset.target = target;
  return button;
}

// The senses of a term, if there are several: a menu with the one that a text has, and why this one was chosen.
function senseMenu(term, text, chooseSense) {
  if (!term.sense) return [];
  const inText = term.senses.find(({ target }) => text.includes(target.toLowerCase()));
  const options = term.senses.map(({ target, domain }) => {
    const selected = target === (inText ?? term).target;
    return element("option", { value: target, textContent: domain ? `${target} (${domain})` : target, selected });
  });
  const menu = element("select", {}, ...options);
  menu.ariaLabel = gettext("sense of “{term}”", { term: term.source });
  menu.dataset.term = term.source;
  menu.addEventListener("change", () => {
    const menus = [...menu.closest(".hints").querySelectorAll("select")];
    chooseSense(Object.fromEntries(menus.map(({ dataset, value }) => [dataset.term, value])), menu);
  });
  return [menu, element("span", { className: "hint", textContent: senseText(term), dir: "auto" })];
}

function hintButton(text, title, onClick, label = "") {
  const button = element("button", { type: "button", className: "quiet", title });
  if (label) button.append(element("b", { textContent: label }), " ");
  button.append(element("span", { textContent: text, dir: "auto" }));
  button.addEventListener("click", onClick);
  return button;
}
