// The history of translations: stored in this browser only, bounded, and optional.

import { element } from "./elements.js";
import { languageName, translated } from "./messages.js";
import { $ } from "./page_elements.js";
import { readStorage, writeStorage } from "./storage.js";

const STORAGE_KEY = "translucid.history";
const OFF_KEY = "translucid.history.off";
const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 200_000; // of all entries
const STORE_DELAY = 2000; // milliseconds without another translation, after which one counts as intended
let storeTimer;
/** @type {any} */
let pendingEntry = null; // the entry to store next

// Set up. `onOpen` shows the entry that the user has chosen.
export function initHistory(onOpen) {
  $("open-history").addEventListener("click", () => {
    storePendingEntry();
    renderHistory(onOpen);
    $("history-dialog").showModal();
  });
  $("keep-history").checked = !readStorage(OFF_KEY, false);
  $("keep-history").addEventListener("change", () => {
    writeStorage(OFF_KEY, true, $("keep-history").checked);
    if (!$("keep-history").checked) clearHistory(onOpen);
  });
  $("clear-history").addEventListener("click", () => {
    clearHistory(onOpen);
    $("keep-history").focus(); // the button is disabled now
  });
  addEventListener("pagehide", storePendingEntry);
}

// Add a translation { text, translation, from, to, model, formality }, unless another one follows soon.
export function addToHistory(entry) {
  clearTimeout(storeTimer);
  pendingEntry = entry;
  storeTimer = setTimeout(storePendingEntry, STORE_DELAY);
}

function storePendingEntry() {
  clearTimeout(storeTimer);
  if (!pendingEntry || readStorage(OFF_KEY, false)) return;
  const entry = pendingEntry;
  const [latest, ...older] = readStorage(STORAGE_KEY, []);
  const others = latest && isContinuation(latest, entry) ? older : [latest, ...older];
  const distinct = others.filter((other) => other && !(other.text === entry.text && samePair(other, entry)));
  const newest = [entry, ...distinct].slice(0, MAX_ENTRIES);
  let charactersLeft = MAX_CHARACTERS;
  const fitting = newest.filter(({ text, translation }) => {
    charactersLeft -= text.length + translation.length;
    return charactersLeft >= 0;
  });
  writeStorage(STORAGE_KEY, fitting);
  pendingEntry = null;
}

// Return whether the user has continued (or shortened) the latest text: the new entry then replaces it.
function isContinuation(latest, entry) {
  return samePair(latest, entry) && (entry.text.startsWith(latest.text) || latest.text.startsWith(entry.text));
}

function samePair(a, b) {
  return a.from === b.from && a.to === b.to && a.formality === b.formality;
}

function clearHistory(onOpen) {
  pendingEntry = null;
  writeStorage(STORAGE_KEY, [], true);
  renderHistory(onOpen);
}

function renderHistory(onOpen) {
  const entries = readStorage(STORAGE_KEY, []);
  $("history-list").replaceChildren(...entries.map((entry) => historyItem(entry, onOpen)));
  $("history-empty").hidden = entries.length > 0;
  $("clear-history").disabled = !entries.length;
}

function historyItem(entry, onOpen) {
  const { text, translation, from, to, formality } = entry;
  const choice = formality ? ` (${translated(formality)})` : "";
  const button = element(
    "button",
    { type: "button" },
    element("span", { className: "hint", textContent: `${languageName(from)} → ${languageName(to)}${choice}` }),
    element("span", { className: "one-line", textContent: text, lang: from, dir: "auto" }),
    element("span", { className: "one-line muted", textContent: translation, lang: to, dir: "auto" }),
  );
  button.addEventListener("click", () => {
    $("history-dialog").close();
    onOpen(entry);
  });
  return element("li", {}, button);
}
