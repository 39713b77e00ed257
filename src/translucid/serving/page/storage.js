// Data in the browser's storage and in links, and the clipboard. None of it is sent to the server.

const TAB_KEY = "translucid.text";
// the fields of a link
const LINKED = [
  ...["text", "from", "to", "model", "formality"],
  ...["tab", "sentence", "word", "instead_of", "node", "map", "step", "point"], // the place in the inspector
];
const DOCUMENTS_KEY = "translucid.documents";
const DRAFTS_KEY_PREFIX = "translucid.drafts.";
const HISTORY_KEY_PREFIX = "translucid.history.";
const PLACE_KEY_PREFIX = "translucid.place.";
const LOG_KEY_PREFIX = "translucid.edits.";
const MAX_RECENT_DOCUMENTS = 10;
const unstored = new Map(); // values that the browser refused to store, because its storage is disabled or full

// Return the stored value of a key, or `fallback` if there is none.
export function readStorage(key, fallback, storage = localStorage) {
  if (unstored.has(key)) return unstored.get(key);
  try {
    return JSON.parse(storage.getItem(key) ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

// Store a value under a key, at least until the page is closed; an empty value is removed instead.
export function writeStorage(key, value, isEmpty = false, storage = localStorage) {
  unstored.delete(key);
  try {
    if (isEmpty) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(value));
  } catch {
    if (!isEmpty) unstored.set(key, value);
  }
}

// Store the text and languages of this tab, so that a reload restores them.
export function storeTabState(state) {
  writeStorage(TAB_KEY, state, false, sessionStorage);
}

// Return the state from the link that opened the page, or from before a reload; null if there is neither.
export function initialState() {
  return stateFromLink() ?? readStorage(TAB_KEY, null, sessionStorage);
}

// Return the state from the page's address, or null. It follows the #, which browsers do not send to servers.
export function stateFromLink() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("text")) return null;
  return Object.fromEntries(LINKED.map((name) => [name, fields.get(name) ?? undefined]));
}

// Return a link that opens the page with a state.
export function linkTo(state) {
  const fields = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  return `${location.origin}${location.pathname}${location.search}#${fields}`;
}

// Remove the state from the page's address when the text changes.
export function removeLink() {
  if (stateFromLink()) history.replaceState(null, "", location.pathname + location.search);
}

// Return the recent documents [{ id, name }, …], latest first.
export function recentDocuments() {
  return readStorage(DOCUMENTS_KEY, []);
}

// Add a document to the recent ones; the oldest may drop out, with its drafts.
export function addRecentDocument({ id, name }) {
  const others = recentDocuments().filter((recent) => recent.id !== id);
  writeStorage(DOCUMENTS_KEY, [{ id, name }, ...others].slice(0, MAX_RECENT_DOCUMENTS));
  for (const dropped of others.slice(MAX_RECENT_DOCUMENTS - 1)) removeEdits(dropped.id);
}

// Remove a document and its drafts.
export function removeRecentDocument(id) {
  writeStorage(
    DOCUMENTS_KEY,
    recentDocuments().filter((recent) => recent.id !== id),
  );
  removeEdits(id);
}

function removeEdits(id) {
  writeDrafts(id, {});
  writeEditingLog(id, {});
  writeHistory(id, { done: [], undone: [] });
  writePlace(id, null);
}

// Return the history of a document in this tab.
export function readHistory(id) {
  return readStorage(HISTORY_KEY_PREFIX + id, { done: [], undone: [] }, sessionStorage);
}

// Store the history of a document in this tab.
export function writeHistory(id, history) {
  const isEmpty = !history.done.length && !history.undone.length;
  writeStorage(HISTORY_KEY_PREFIX + id, history, isEmpty, sessionStorage);
}

// Return the number of the segment that had the focus last in a document, or null.
export function readPlace(id) {
  return readStorage(PLACE_KEY_PREFIX + id, null);
}

// Store the number of the segment that has the focus in a document.
export function writePlace(id, number) {
  writeStorage(PLACE_KEY_PREFIX + id, number, number === null);
}

// Return the log of a document, by segment number.
export function readEditingLog(id) {
  return readStorage(LOG_KEY_PREFIX + id, {});
}

// Store the log of a document, by segment number.
export function writeEditingLog(id, log) {
  writeStorage(LOG_KEY_PREFIX + id, log, !Object.keys(log).length);
}

// Return the drafts of a document, which are edits that are not accepted yet, by segment number.
export function readDrafts(id) {
  return readStorage(DRAFTS_KEY_PREFIX + id, {});
}

// Store the drafts of a document, by segment number.
export function writeDrafts(id, drafts) {
  writeStorage(DRAFTS_KEY_PREFIX + id, drafts, !Object.keys(drafts).length);
}

// Call a function with a document's id and the numbers of the drafts that another tab has changed. (A message of our own could
// arrive before this tab can read what was stored; this event cannot.) Drafts that went with their document are not reported:
// a tab that still shows it keeps them.
export function onDraftsOfOtherTabs(receive) {
  window.addEventListener("storage", ({ key, oldValue, newValue }) => {
    if (!key?.startsWith(DRAFTS_KEY_PREFIX)) return;
    const id = key.slice(DRAFTS_KEY_PREFIX.length);
    if (!recentDocuments().some((recent) => recent.id === id)) return;
    const [before, after] = [oldValue, newValue].map((value) => JSON.parse(value ?? "{}"));
    const numbers = Object.keys({ ...before, ...after }).filter((number) => before[number] !== after[number]);
    receive(id, numbers.map(Number));
  });
}

// Copy a text to the clipboard; return whether that worked.
export async function copyToClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // without TLS, browsers support only the old method
    const focused = /** @type {HTMLElement?} */ (document.activeElement);
    const textarea = document.createElement("textarea");
    Object.assign(textarea, { value: text, readOnly: true, className: "visually-hidden" });
    document.body.append(textarea);
    textarea.select();
    const copied = document.execCommand("copy");
    textarea.remove();
    focused?.focus();
    return copied;
  }
}
