// The concordance: entries of the translation memory that contain some words.

import { element } from "./elements.js";
import { formatDay, gettext } from "./messages.js";
import { escapeRegex } from "./page_elements.js";
import { postJson } from "./requests.js";
import { createDialog } from "./shortcuts.js";

const field = element("input", { type: "text", autocomplete: "off", spellcheck: false });
const status = element("p", { className: "hint", role: "status" });
const list = element("ol", { id: "lookup-entries" });
/** @type {any} */
let dialog = null;
let languages; // { source, target } codes
let latestRequest = 0;

// Open the dialog with the entries that contain a text, if there is one. `documentLanguages` are { source, target } codes.
export function openConcordance(text, documentLanguages) {
  languages = documentLanguages;
  dialog ??= createConcordance();
  if (text) field.value = text;
  dialog.showModal();
  field.select();
  lookUp();
}

function createConcordance() {
  const form = element(
    "form",
    { id: "lookup-form" },
    element("label", { textContent: gettext("Words in the source or the translation; Enter looks them up") }, field),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    lookUp();
  });
  return createDialog("lookup-dialog", gettext("In the translation memory"), form, status, list);
}

async function lookUp() {
  const requestId = ++latestRequest;
  const q = field.value.trim();
  list.replaceChildren();
  status.textContent = q ? gettext("Searching…") : "";
  if (!q) return;
  try {
    const { source, target } = languages;
    const { entries, complete } = await postJson("memory/find", { q, source, target });
    if (requestId !== latestRequest) return;
    status.textContent = entries.length ? "" : gettext("The memory has no such entry.");
    if (!complete) status.textContent = gettext("Only a part of the memory was searched, the newest entries first.");
    list.replaceChildren(...entries.map((entry) => entryItem(entry, q)));
  } catch (error) {
    if (requestId === latestRequest) status.textContent = error.message;
  }
}

function entryItem({ source, target, who, when }, q) {
  const origin = [who, formatDay(when)].filter(Boolean).join(" · ");
  return element(
    "li",
    {},
    element("p", { dir: "auto", lang: languages.source ?? "" }, ...marked(source, q)),
    element("p", { dir: "auto", lang: languages.target }, ...marked(target, q)),
    element("p", { className: "hint", textContent: origin }),
  );
}

// Return a text as nodes in which the words that were looked up are marked.
function marked(text, words) {
  const pattern = new RegExp(`(${escapeRegex(words).replace(/\s+/g, "\\s+")})`, "iu");
  return text.split(pattern).map((part, i) => (i % 2 ? element("mark", { textContent: part }) : part));
}
