// Search and replace in all segments of a document, with a preview of what changes.

import { allSegments } from "./all_segments.js";
import { element } from "./elements.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { escapeRegex } from "./page_elements.js";
import { serverText } from "./segment_item.js";
import { createDialog } from "./shortcuts.js";

const LONGEST_SEARCH = 4000; // milliseconds from the start of the worker
const TYPING_DELAY = 200; // milliseconds
const MOST_SHOWN = 100; // hits in the preview
let editor; // the functions of documents.js
let changeTexts; // changeTexts(name, texts) of the tools
/** @type {any} */
let dialog = null;
const fields = {
  source: textField(gettext("The source contains")),
  target: textField(gettext("The translation contains")),
  replacement: textField(gettext("Replace it with")),
  matchesCase: checkbox(gettext("match case")),
  isRegex: checkbox(gettext("regular expressions")),
};
const status = element("p", { className: "hint", role: "status" });
const preview = element("ol", { id: "search-hits" });
const replaceButton = element("button", {
  type: "button",
  className: "button primary",
  textContent: gettext("Replace"),
});
const listButton = element("button", { type: "button", textContent: gettext("List these segments") });
/** @type {{ number: number, before: string, parts: any[][], isChosen: boolean }[]} */
let hits = [];
/** @type {Worker?} */
let worker = null;
let typingTimer;
let searchTimer;

// Open the dialog; a selected text is what to search for. `tools` has changeTexts(name, texts), which can be undone.
export function openSearch(documentEditor, tools, selection) {
  editor = documentEditor;
  changeTexts = tools.changeTexts;
  dialog ??= createSearchDialog();
  if (selection) fields[selection.side].value = selection.text;
  dialog.showModal();
  fields.target.select();
  search();
}

function createSearchDialog() {
  const texts = [fields.source, fields.target, fields.replacement];
  const options = [fields.matchesCase, fields.isRegex];
  const form = element(
    "form",
    { id: "search-form" },
    ...texts.map((field) => field.labelElement),
    element("div", { className: "bar" }, ...options.map((field) => field.labelElement)),
    element("div", { className: "bar" }, replaceButton, listButton),
    status,
    preview,
  );
  for (const field of [...texts, ...options]) {
    field.addEventListener("input", () => {
      endSearch(); // its hits would be those of other words
      typingTimer = setTimeout(search, TYPING_DELAY);
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault(); // Enter in a field must not replace anything
    search();
  });
  replaceButton.addEventListener("click", replace);
  listButton.addEventListener("click", () => {
    dialog.close();
    editor.showList(hits.map(({ number }) => number));
  });
  const created = createDialog("search-dialog", gettext("Search and replace"), form);
  created.addEventListener("close", endSearch);
  return created;
}

function textField(label) {
  const field = element("input", { type: "text", autocomplete: "off", spellcheck: false });
  return Object.assign(field, { labelElement: element("label", { textContent: label }, field) });
}

function checkbox(label) {
  const field = element("input", { type: "checkbox" });
  return Object.assign(field, { labelElement: element("label", {}, field, ` ${label}`) });
}

// Return the pattern of a field, null if it is empty. Throws a SyntaxError if it is no regular expression.
function patternOf({ value }) {
  if (!value) return null;
  const pattern = fields.isRegex.checked ? value : escapeRegex(value);
  const flags = fields.matchesCase.checked ? "u" : "iu";
  new RegExp(pattern, flags);
  return { pattern, flags };
}

function endSearch() {
  clearTimeout(typingTimer);
  clearTimeout(searchTimer);
  worker?.terminate();
  worker = null;
}

// Search in a worker, which is ended if it takes too long or the fields change.
async function search() {
  endSearch();
  showHits([], gettext("Type what to search for."));
  const { id } = editor.getDocument();
  try {
    const [source, target] = [patternOf(fields.source), patternOf(fields.target)];
    if (!source && !target) return;
    const current = new Worker("search_worker.js", { type: "module" });
    worker = current;
    const drafts = editor.readDrafts();
    const segments = (await allSegments(editor.request, editor.getDocument())).map((segment) => ({
      number: segment.number,
      source: segment.source,
      target: drafts[segment.number] ?? serverText(segment),
    }));
    if (worker !== current || editor.getDocument()?.id !== id) return;
    current.addEventListener("message", ({ data }) => {
      if (!data.hits) {
        searchTimer = setTimeout(() => {
          endSearch();
          showHits([], gettext("This regular expression takes too long. Make it simpler."));
        }, LONGEST_SEARCH);
        return;
      }
      endSearch();
      const found = data.hits.map((hit) => ({ ...hit, before: segments[hit.number].target, isChosen: true }));
      showHits(found, ngettext("{count} segment", "{count} segments", found.length));
    });
    current.addEventListener("error", () => {
      endSearch();
      showHits([], gettext("The server does not respond. Change the search to try again."));
    });
    const [replacement, expands] = [fields.replacement.value, fields.isRegex.checked];
    current.postMessage({ segments, source, target, replacement, expands });
  } catch (error) {
    const isSyntax = error instanceof SyntaxError;
    showHits(
      [],
      isSyntax ? gettext("This is no regular expression: {problem}", { problem: error.message }) : error.message,
    );
  }
}

function showHits(found, message) {
  hits = found;
  status.textContent = message;
  const shown = hits.slice(0, MOST_SHOWN);
  if (hits.length > shown.length)
    status.textContent += gettext("; the first {count} are shown", { count: shown.length });
  preview.replaceChildren(...shown.map(hitItem));
  listButton.disabled = !hits.length;
  showChoice();
}

function showChoice() {
  const count = hits.filter(({ parts, isChosen }) => parts.length && isChosen).length;
  replaceButton.disabled = !count;
  replaceButton.textContent = count
    ? ngettext("Replace in {count} segment", "Replace in {count} segments", count)
    : gettext("Replace");
}

// A hit in the preview: a switch, and its translation with what is removed and what is inserted.
function hitItem(hit) {
  const { number, before, parts } = hit;
  const box = element("input", { type: "checkbox", checked: true, hidden: !parts.length });
  box.ariaLabel = gettext("replace in segment {number}", { number: number + 1 });
  box.addEventListener("change", () => {
    hit.isChosen = box.checked;
    showChoice();
  });
  const text = element("span", { dir: "auto", lang: editor.getDocument().target });
  let position = 0;
  for (const [start, end, inserted] of parts) {
    text.append(before.slice(position, start), element("del", { textContent: before.slice(start, end) }));
    if (inserted) text.append(element("ins", { textContent: inserted }));
    position = end;
  }
  text.append(before.slice(position));
  return element("li", {}, element("label", {}, box, ` ${formatNumber(number + 1)} `), text);
}

function replace() {
  const texts = new Map();
  for (const { number, before, parts, isChosen } of hits) {
    if (!isChosen || !parts.length) continue;
    const pieces = parts.map(([start, , inserted], i) => before.slice(parts[i - 1]?.[1] ?? 0, start) + inserted);
    texts.set(number, pieces.join("") + before.slice(parts.at(-1)?.[1]));
  }
  dialog.close();
  changeTexts(ngettext("replacement in {count} segment", "replacement in {count} segments", texts.size), texts);
}
