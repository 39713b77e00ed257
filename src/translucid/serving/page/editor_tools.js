// The tools of the document editor: insertions, undo, repeated segments, and the way to the next unaccepted segment. They are loaded
// with the first document.

import { allSegments, knownSegment } from "./all_segments.js";
import { editingLogCsv, initEditingLog, rememberMachine } from "./editing_log.js";
import { beginStep, recordStep, returnStep, takeStep } from "./editor_history.js";
import { EDITOR_SHORTCUTS, initEditorKeys } from "./editor_keys.js";
import { element } from "./elements.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { $ } from "./page_elements.js";
import { serverText } from "./segment_item.js";
import { addShortcutGroup } from "./shortcuts.js";

const MOST_LINKS = 12; // numbers of segments in a notice
let editor; // the functions of documents.js
let insertion = Promise.resolve(); // the latest one, which may wait for the hints
let isInserting = false;

// Set up; return the tools. `documentEditor` has the functions
//   getDocument(), request(path, method, fields), readDrafts(), showProblem(error or null)
//   segmentOf(textarea), showSegment(number)
//   setTexts(texts): store texts by segment number as unaccepted edits, and show them
//   accept(textarea, moveOn), undo(textarea), moveFocus(textarea, step), moveDown(textarea)
//   restore(states): bring segments into states of the history
//   enqueue(action): call a function when all changes have reached the server
//   hintsShown(): a promise of the hints of the focused segment
export function initTools(documentEditor) {
  editor = documentEditor;
  addShortcutGroup(gettext("In the document editor"), EDITOR_SHORTCUTS);
  const tools = {
    goToUnaccepted,
    goToTools: () => $("segment-filter").focus(),
    insertMatch: (textarea) => insertLater(insertMatch, textarea),
    insertTerm: (textarea) => insertLater(insertTerm, textarea),
    afterInsertion,
    copySource,
    chooseSense,
    undoStep,
    openSearch,
    lookUp,
    fillRepetitions,
    showNotice,
    clear,
  };
  initEditorKeys(editor, tools);
  addButton(gettext("Search"), "Alt R", openSearch);
  addButton(gettext("Look up"), "Alt W", lookUp);
  addButton(gettext("Review"), gettext("Files for a reviewer"), openReviewDialog);
  addButton(gettext("Time and edits"), gettext("Save a CSV file of the time and the edits of each segment"), saveLog);
  initEditingLog($("segments"), editor);
  return tools;
}

// Add a button to the editor; `keys` are its shortcut.
function addButton(label, keys, action) {
  const button = element("button", { type: "button", textContent: label, title: keys });
  button.addEventListener("click", () => action(null));
  $("editor-tools").append(button);
}

function clear() {
  $("editor-notice").replaceChildren();
}

/** @typedef {{ numbers?: number[], canUndo?: boolean }} NoticeOptions */
// Say what was done: a text, the numbers of segments as buttons, and perhaps a button to undo it.
/** @type {(text: string, options?: NoticeOptions) => void} */
function showNotice(text, { numbers = [], canUndo = false } = {}) {
  const links = numbers.slice(0, MOST_LINKS).map((number) => {
    const button = element("button", { type: "button", className: "quiet", textContent: formatNumber(number + 1) });
    button.ariaLabel = gettext("go to segment {number}", { number: number + 1 });
    button.addEventListener("click", () => editor.showSegment(number));
    return button;
  });
  const more =
    numbers.length > MOST_LINKS
      ? [gettext("and {count} more", { count: formatNumber(numbers.length - MOST_LINKS) })]
      : [];
  const undo = element("button", { type: "button", textContent: gettext("Undo"), title: "Ctrl Z" });
  undo.addEventListener("click", () => undoStep());
  $("editor-notice").replaceChildren(
    element("span", { textContent: text }),
    ...links,
    ...more,
    ...(canUndo ? [undo] : []),
  );
}

// Replace the text of segments as one step that can be undone.
function changeTexts(name, texts) {
  const before = beginStep(texts.keys());
  for (const number of texts.keys()) rememberMachine(knownSegment(number));
  editor.setTexts(texts);
  recordStep(name, before);
}

function changeTextsAndSay(name, texts) {
  changeTexts(name, texts);
  showNotice(gettext("Done, to accept: {step}.", { step: name }), { numbers: [...texts.keys()], canUndo: true });
}

// Undo the latest step, or redo the one that was undone last; changes on their way to the server come first.
function undoStep(isRedo = false) {
  return editor.enqueue(async () => {
    const { id } = editor.getDocument() ?? {};
    if (!id) return;
    try {
      await allSegments(editor.request, editor.getDocument()); // after a reload, few are known
    } catch (error) {
      editor.showProblem(error);
      return;
    }
    if (editor.getDocument()?.id === id) await undoKnownStep(isRedo);
  });
}

async function undoKnownStep(isRedo) {
  const step = takeStep(isRedo);
  if (!step) {
    showNotice(isRedo ? gettext("There is nothing to redo.") : gettext("There is nothing to undo."));
    return;
  }
  const { name, states, kept } = step;
  try {
    const staying = await editor.restore(states);
    const notes = [
      isRedo ? gettext("Redone: {step}.", { step: name }) : gettext("Undone: {step}.", { step: name }),
      kept && ngettext("{count} segment changed since then stays.", "{count} segments changed since then stay.", kept),
      staying && ngettext("{count} entry of the memory stays.", "{count} entries of the memory stay.", staying),
    ];
    showNotice(notes.filter(Boolean).join(" "), { numbers: [...states.keys()] });
  } catch (error) {
    returnStep(isRedo);
    editor.showProblem(error);
  }
}

// Go to the next segment that is not accepted, after the last one to the first.
async function goToUnaccepted(textarea) {
  const requestedDocument = editor.getDocument().id;
  const current = textarea ? editor.segmentOf(textarea).number : -1;
  try {
    const segments = await allSegments(editor.request, editor.getDocument());
    if (editor.getDocument()?.id !== requestedDocument) return;
    const drafts = editor.readDrafts();
    const order = editor.getList()?.map((number) => segments[number]) ?? segments;
    const position = order.findIndex(({ number }) => number === current);
    const isOpen = ({ number, accepted }) => number !== current && (!accepted || drafts[number] !== undefined);
    const next = order.slice(position + 1).find(isOpen) ?? order.find(isOpen) ?? segments.find(isOpen);
    if (next) await editor.showSegment(next.number);
    else showNotice(gettext("No other segment is left: all are accepted."));
  } catch (error) {
    editor.showProblem(error);
  }
}

// Return the selected text and its side, or null.
function selectedText(textarea) {
  const inTextarea = textarea && textarea === document.activeElement;
  const text = inTextarea
    ? textarea.value.slice(textarea.selectionStart, textarea.selectionEnd)
    : String(document.getSelection());
  const side = inTextarea ? "target" : "source";
  return text.trim() ? { side, text: text.trim() } : null;
}

async function openSearch(textarea) {
  const selection = selectedText(textarea);
  try {
    const search = await import("./editor_search.js");
    search.openSearch(editor, { changeTexts: changeTextsAndSay }, selection);
  } catch {
    showUnreachable();
  }
}

async function lookUp(textarea) {
  const text = selectedText(textarea)?.text ?? "";
  try {
    const { openConcordance } = await import("./concordance.js");
    openConcordance(text, editor.getDocument());
  } catch {
    showUnreachable();
  }
}

async function openReviewDialog() {
  try {
    const { openReview } = await import("./review_dialog.js");
    openReview(editor, { showNotice });
  } catch {
    showUnreachable();
  }
}

async function saveLog() {
  const openDocument = editor.getDocument();
  try {
    const segments = await allSegments(editor.request, openDocument);
    const csv = editingLogCsv(openDocument, segments, editor.readDrafts());
    const href = URL.createObjectURL(new Blob(["\ufeff", csv], { type: "text/csv" })); // the mark is for spreadsheets
    element("a", { href, download: `${openDocument.name}.edits.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  } catch (error) {
    editor.showProblem(error);
  }
}

function showUnreachable() {
  showNotice(gettext("The server does not respond. Try again."));
}

function insertLater(insert, textarea) {
  if (!textarea) return;
  isInserting = true;
  insertion = insertion.then(() => insert(textarea));
  const latest = insertion;
  latest.finally(() => {
    if (latest === insertion) isInserting = false;
  });
}

// Call a function at once, or after the insertion that waits for the hints.
function afterInsertion(action) {
  if (isInserting) insertion.then(action);
  else action();
}

async function insertMatch(textarea) {
  await editor.hintsShown();
  const button = textarea.closest("li").querySelector(".hints .match");
  if (button) button.click();
  else showNotice(gettext("The memory has no match for this segment."));
}

// Insert the first term of the segment that its translation lacks.
async function insertTerm(textarea) {
  await editor.hintsShown();
  const buttons = [...textarea.closest("li").querySelectorAll(".hints .term")];
  const text = textarea.value.toLowerCase();
  const next = buttons.find(({ dataset }) => !text.includes(dataset.target.toLowerCase()));
  if (next) next.click();
  else
    showNotice(
      buttons.length ? gettext("The translation has all terms.") : gettext("The glossary has no term of this segment."),
    );
}

function copySource(textarea) {
  if (!textarea) return;
  const { number, source } = editor.segmentOf(textarea);
  changeTexts(gettext("copy of the source"), new Map([[number, source]]));
  textarea.focus();
}

// Translate a segment again with senses of its terms, { term: target }; `menu` is the one that the user has changed.
async function chooseSense(textarea, senses, menu) {
  const { id } = editor.getDocument();
  const { number } = editor.segmentOf(textarea);
  try {
    const { target } = await editor.request(`${id}/segments/${number}/translate`, "POST", { senses });
    if (editor.getDocument()?.id !== id) return;
    const step = gettext("{term} as {meaning}", { term: menu.dataset.term, meaning: menu.value });
    changeTextsAndSay(step, new Map([[number, target]]));
  } catch (error) {
    editor.showProblem(error);
  }
}

// Fill the untouched segments with the same source as an accepted one with its translation, unaccepted.
async function fillRepetitions({ number, source, target }) {
  const requestedDocument = editor.getDocument().id;
  try {
    const segments = await allSegments(editor.request, editor.getDocument());
    if (editor.getDocument()?.id !== requestedDocument) return;
    const drafts = editor.readDrafts();
    const isRepetition = (other) =>
      other.source === source && other.number !== number && !other.accepted && drafts[other.number] === undefined;
    const repetitions = segments.filter((other) => isRepetition(other) && serverText(other) !== target);
    if (!repetitions.length) return;
    const numbers = repetitions.map((other) => other.number);
    const name = ngettext("filling of {count} repetition", "filling of {count} repetitions", numbers.length);
    changeTexts(name, new Map(numbers.map((repetition) => [repetition, target])));
    showNotice(gettext("Filled with the same translation, to accept:"), { numbers, canUndo: true });
  } catch (error) {
    if (!error.retryable) editor.showProblem(error); // the next accepted segment tries again
  }
}
