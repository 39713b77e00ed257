// Documents: upload one, see its segments side by side with their translations, edit and accept them, download it.
//
// The server stores the document and accepted segments; this browser stores edits until they are accepted.

import { acceptTexts, initAcceptDialogs } from "./accept_dialogs.js";
import {
  allSegments,
  forgetSegments,
  knownSegment,
  listedNumbers,
  refreshLater,
  storeSegments,
} from "./all_segments.js";
import { withApiKey } from "./api_key.js";
import { beginStep, endTyping, noteTyping, openHistory, recordStep, statesOf } from "./editor_history.js";
import { element } from "./elements.js";
import { formalityField } from "./languages.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { onOtherTabs, tellOtherTabs } from "./other_tabs.js";
import { $, progressIndicator } from "./page_elements.js";
import { RETRY_DELAY, readResponse } from "./requests.js";
import {
  clearHints,
  entryOf,
  fitHeight,
  isDoubtful,
  segmentItem,
  serverText,
  showHints,
  showState,
} from "./segment_item.js";
import { translatedError, translatedKind } from "./server_messages.js";
import {
  addRecentDocument,
  onDraftsOfOtherTabs,
  readDrafts,
  readPlace,
  recentDocuments,
  removeRecentDocument,
  writeDrafts,
  writePlace,
} from "./storage.js";

const FIRST_POLL_DELAY = 100; // milliseconds between requests for the progress, at first
const LONGEST_POLL_DELAY = 1000;
const SEGMENTS_PER_PAGE = 50;
const WITHDRAWN_PER_REQUEST = 500;
const ACTIVE_STATES = ["waiting", "translating"];
/** @type {{ first: number, previous: number[] }} */
const FIRST_PAGE = { first: 0, previous: [] };
// The functions for the dialogs and tools.
const editor = {
  getDocument: () => openDocument,
  readDrafts: () => readDrafts(openDocument.id),
  writeDrafts: (drafts) => writeDrafts(openDocument.id, drafts),
  request,
  refreshProgress,
  reloadSegments() {
    refreshLater();
    tellOtherTabs(openDocument.id, null);
    return reloadSegments();
  },
  showProblem,
  showSegment,
  segmentOf,
  getList: () => list,
  showList,
  setTexts,
  restore,
  enqueue,
  accept,
  undo,
  moveFocus,
  moveDown,
  hintsShown: () => hintsShown,
  returnToPlace: () => returnToPlace(openDocument.id),
};
let selectedModel; // a function that returns the model and the languages
/** @type {any} */
let openDocument = null; // the server's record of the open document
let segments = []; // those on the current page
/** @type {number[] | null} */
let list = null; // the numbers of the segments to show, if these are not all in the order of the document
let page = FIRST_PAGE; // the position at which it begins, and those of the previous pages
let requestedPage = FIRST_PAGE; // the page that was requested last
let latestPageRequest = 0;
let latestRequest = 0; // for another document; responses to earlier requests are ignored
let pollTimer;
let retrieves = false; // whether corrections change the next translations
let canChangeMemory = false;
/** @type {any} */
let tools = null; // of editor_tools.js, loaded with the first document
let hintsShown = Promise.resolve(); // for the focused segment
/** @type {Promise<any>} */
let running = Promise.resolve(); // of all changes on their way to the server
let memoryChanges = 0; // the number of times that the memory was changed here
const progress = progressIndicator($("documents"), $("document-problem"));

// Set up. `getSelectedModel()` returns the model and the languages to translate with.
export function initDocuments(settings, getSelectedModel) {
  selectedModel = getSelectedModel;
  [retrieves, canChangeMemory] = [settings.retrieval, settings.suggestions];
  $("document-file").accept = settings.supportedFilesFormat.join();
  $("document-kinds").append(
    ...settings.documentKinds.map(({ name, endings }) =>
      element(
        "li",
        {},
        element("span", { textContent: translatedKind(name) }),
        element("span", { textContent: endings.join(" ") }),
      ),
    ),
  );
  const input = $("document-file");
  input.addEventListener("change", () => {
    if (input.files?.length) uploadDocument(input.files[0]);
    input.value = ""; // so that choosing the same file again is a change
  });
  $("delete-document").addEventListener("click", deleteDocument);
  for (const id of /** @type {const} */ (["segment-filter", "segment-order"]))
    $(id).addEventListener("change", () => showList());
  $("next-segments").addEventListener("click", () => turnPage(1));
  $("previous-segments").addEventListener("click", () => turnPage(-1));
  initAcceptDialogs(editor);
  onOtherTabs(followServer);
  onDraftsOfOtherTabs(followDrafts);
  $("segments").addEventListener("focusin", ({ target }) => {
    if (!isTextarea(target)) return;
    writePlace(openDocument.id, segmentOf(target).number);
    endTyping();
    showHintsFor(target);
    translateAgain(target);
  });
  $("segments").addEventListener("mousedown", (event) => {
    if (actionOf(event)) event.preventDefault();
  }); // the focus stays in the text
  $("segments").addEventListener("click", onAction);
  $("segments").addEventListener("input", ({ target }) => {
    if (!isTextarea(target)) return; // a menu with senses
    const textarea = /** @type {HTMLTextAreaElement} */ (target);
    noteTyping(segmentOf(textarea).number);
    storeDraft(segmentOf(textarea), textarea.value);
    fitHeight(textarea);
  });
  window.addEventListener("pagehide", endTyping);
  const [latest] = recentDocuments();
  if (latest) open(latest.id);
  renderRecentDocuments();
}

function isTextarea(target) {
  return target.tagName === "TEXTAREA";
}

// Send a request about documents; `path` begins with a document's id.
function request(path, method = "GET", fields) {
  /** @type {RequestInit} */
  const options = { method };
  if (fields) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(withApiKey(fields));
  }
  return readResponse(fetch(`documents/${path}`, options));
}

function renderRecentDocuments() {
  $("document-list").replaceChildren(
    ...recentDocuments().map(({ id, name }) => {
      const button = element("button", { type: "button", textContent: name });
      button.setAttribute("aria-pressed", String(id === openDocument?.id));
      button.addEventListener("click", () => open(id));
      return element("li", {}, button);
    }),
  );
}

function forgetDocument(id) {
  removeRecentDocument(id);
  renderRecentDocuments();
}

// Upload a document, and open it.
export async function uploadDocument(file) {
  const requestId = ++latestRequest;
  clear();
  const { name, source, target } = selectedModel();
  const form = new FormData();
  const fields = withApiKey({ model: name, source, target, ...formalityField(name, target) });
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append("file", file, file.name);
  progress.start();
  try {
    const uploaded = await readResponse(fetch("documents", { method: "POST", body: form }));
    addRecentDocument(uploaded);
    renderRecentDocuments();
    if (requestId === latestRequest) await open(uploaded.id);
  } catch (error) {
    if (requestId === latestRequest) showProblem(error);
  } finally {
    progress.stop();
  }
}

function clear() {
  clearTimeout(pollTimer);
  openDocument = null;
  segments = [];
  list = null;
  $("segment-filter").value = $("segment-order").value = "";
  page = requestedPage = FIRST_PAGE;
  forgetSegments();
  tools?.clear();
  clearHints();
  $("segments").replaceChildren();
  $("previous-segments").disabled = $("next-segments").disabled = true;
  $("document").hidden = true;
  showProblem(null);
}

async function open(id) {
  const requestId = ++latestRequest;
  clear();
  try {
    const [record] = await Promise.all([request(id), loadTools()]);
    if (requestId !== latestRequest) return;
    openHistory(id);
    showProgress(record);
    renderRecentDocuments();
    await pollProgress(requestId);
    if (requestId === latestRequest) await returnToPlace(id);
  } catch (error) {
    if (requestId !== latestRequest) return;
    showProblem(error);
    if (error.retryable) pollTimer = setTimeout(() => open(id), RETRY_DELAY);
    else forgetDocument(id); // the server does not have it
  }
}

// Show what another tab has changed on the server; `numbers` are null for many segments.
async function followServer({ id, numbers }) {
  if (openDocument?.id !== id) return;
  await refreshProgress();
  refreshLater();
  if (openDocument?.id !== id) return;
  if (segments.some(({ number }) => !numbers || numbers.includes(number))) await reloadSegments();
  if (openDocument?.id === id) noticeOtherTab(numbers ?? []);
}

// Show the edits of another tab.
function followDrafts(id, numbers) {
  if (openDocument?.id !== id) return;
  const drafts = readDrafts(id);
  for (const segment of segments.filter(({ number }) => numbers.includes(number))) {
    const item = itemOf(segment);
    const textarea = item.querySelector("textarea");
    const text = drafts[segment.number] ?? serverText(segment);
    if (textarea.value !== text) Object.assign(textarea, { value: text });
    showState(item, segment, drafts[segment.number]);
    fitHeight(textarea);
  }
  noticeOtherTab(numbers);
}

function noticeOtherTab(numbers) {
  tools?.showNotice(gettext("Changed in another tab:"), { numbers });
}

async function loadTools() {
  try {
    const { initTools } = await import("./editor_tools.js");
    tools ??= initTools(editor);
  } catch {
    const message = gettext("The server does not respond. The page tries again automatically.");
    throw Object.assign(new Error(message), { retryable: true });
  }
}

// Show the progress until the document is done, and its segments as they arrive. Short documents are done at once, so the first
// requests follow each other quickly.
async function pollProgress(requestId, delay = FIRST_POLL_DELAY) {
  const isIncomplete = !segments.length || segments.some(({ target }) => target === null);
  if (openDocument.segments && isIncomplete) await reloadSegments();
  if (requestId !== latestRequest || !ACTIVE_STATES.includes(openDocument.state)) return;
  pollTimer = setTimeout(async () => {
    try {
      const record = await request(openDocument.id);
      if (requestId !== latestRequest) return;
      showProgress(record);
      await pollProgress(requestId, Math.min(1.5 * delay, LONGEST_POLL_DELAY));
    } catch (error) {
      if (requestId !== latestRequest) return;
      showProblem(error);
      if (error.retryable) pollTimer = setTimeout(() => continuePolling(requestId), RETRY_DELAY);
    }
  }, delay);
}

function continuePolling(requestId) {
  showProblem(null);
  pollProgress(requestId);
}

// Show a document's record from the server: its state, and what can be done with it.
function showProgress(record) {
  openDocument = record;
  const { id, name, kind, state, done, accepted, segments: total } = record;
  const message = stateMessage(record);
  const hasFailed = message === undefined;
  const isActive = ACTIVE_STATES.includes(state);
  const finished = isActive ? done : accepted;
  $("document").hidden = false;
  $("document-name").textContent = `${name} (${translatedKind(kind)})`;
  $("document-status").textContent = message ?? translatedError(record.error);
  $("document-status").classList.toggle("problem", hasFailed);
  $("document-progress").hidden = !(isActive || (state === "done" && total));
  $("document-progress").value = total ? finished / total : 0;
  $("editor").hidden = !total || hasFailed; // an unreadable file has nothing to edit
  $("accept-all").hidden = state !== "done" || accepted >= total;
  if (hasFailed) forgetDocument(id); // it cannot be opened again
  $("document-download").hidden = state !== "done";
  Object.assign($("document-download"), { href: `documents/${id}/result`, download: "" });
  $("delete-document").textContent = isActive ? gettext("Cancel") : gettext("Delete");
}

// Return the text about a document's state; undefined if the translation has failed.
function stateMessage({ state, done, accepted, segments: total, seconds_left: secondsLeft }) {
  if (state === "waiting") return gettext("Waiting for other documents.");
  const counts = { done: formatNumber(done), accepted: formatNumber(accepted) };
  if (state === "translating")
    return ngettext("{done} of {count} segment", "{done} of {count} segments", total, counts) + timeLeft(secondsLeft);
  if (state !== "done") return undefined;
  return total
    ? ngettext("{accepted} of {count} segment accepted", "{accepted} of {count} segments accepted", total, counts)
    : gettext("It contains no text to translate.");
}

function timeLeft(seconds) {
  if (!seconds) return "";
  return seconds < 90
    ? ngettext(", {count} second left", ", {count} seconds left", Math.ceil(seconds))
    : ngettext(", {count} minute left", ", {count} minutes left", Math.ceil(seconds / 60));
}

// Fetch the document's record again, with the numbers of accepted and doubtful segments; return whether that worked.
async function refreshProgress() {
  const requestId = latestRequest;
  try {
    const record = await request(openDocument.id);
    if (requestId !== latestRequest) return false;
    showProgress(record);
    return true;
  } catch (error) {
    if (requestId === latestRequest) showProblem(error);
    return false;
  }
}

async function deleteDocument() {
  const { id } = openDocument;
  latestRequest += 1;
  clearTimeout(pollTimer); // the progress of a deleted document cannot be requested
  try {
    await request(id, "DELETE");
  } catch (error) {
    if (error.retryable) {
      showProblem(error);
      return;
    }
  }
  removeRecentDocument(id);
  clear();
  renderRecentDocuments();
  $("document-file").focus();
}

function reloadSegments() {
  return showPage(requestedPage.first, requestedPage.previous);
}

// Show the segments of the filter in the chosen order: a list that stays as it is while segments are accepted. `numbers` are
// those of another list.
async function showList(numbers = null) {
  const requestId = latestRequest;
  const [filter, order] = [$("segment-filter").value, $("segment-order").value];
  try {
    list = numbers;
    if (!numbers && (filter || order)) {
      const all = await allSegments(request, openDocument);
      if (requestId !== latestRequest) return;
      list = listedNumbers(all, readDrafts(openDocument.id), filter, order);
    }
    await showPage(0, []);
  } catch (error) {
    if (requestId === latestRequest) showProblem(error);
  }
}

// Return the segments of the page that begins at a position.
async function segmentsFrom(first) {
  if (!list)
    return storeSegments(await request(`${openDocument.id}/segments?first=${first}&count=${SEGMENTS_PER_PAGE}`));
  const numbers = list.slice(first, first + SEGMENTS_PER_PAGE);
  const all = await allSegments(request, openDocument);
  return numbers.map((number) => all[number]);
}

// Show the page that begins at position `first`; `previous` are the positions of the pages before it.
async function showPage(first, previous) {
  const requestId = latestRequest;
  const pageRequestId = ++latestPageRequest;
  requestedPage = { first, previous };
  try {
    const received = await segmentsFrom(first);
    if (requestId !== latestRequest || pageRequestId !== latestPageRequest) return;
    const isOtherPage = first !== page.first || received.length !== segments.length;
    page = { first, previous };
    segments = received;
    renderPage(isOtherPage);
  } catch (error) {
    if (requestId === latestRequest) showProblem(error);
  }
}

// Show the next (1) or previous (-1) page.
function turnPage(step) {
  if (step > 0) return showPage(page.first + segments.length, [...page.previous, page.first]);
  return showPage(page.previous.at(-1) ?? 0, page.previous.slice(0, -1));
}

// Go to the segment that had the focus last, such as before a reload.
async function returnToPlace(id) {
  const number = readPlace(id);
  if (number !== null && number < openDocument.segments) await showSegment(number);
}

// Go to the segment of a number, and show a message at it.
async function showSegment(number, message = "") {
  const isShown = () => segments.some((segment) => segment.number === number);
  if (!isShown()) {
    if (list && !list.includes(number)) {
      list = null;
      $("segment-filter").value = $("segment-order").value = "";
    }
    const position = list ? list.indexOf(number) : number;
    const previous = /** @type {number[]} */ ([]);
    for (let first = 0; first + SEGMENTS_PER_PAGE <= position; first += SEGMENTS_PER_PAGE) previous.push(first);
    await showPage(SEGMENTS_PER_PAGE * previous.length, previous);
    if (openDocument && !isShown()) await showPage(position, [...previous, page.first]); // long segments come on shorter pages
  }
  const item = itemOf({ number });
  if (!item) return;
  item.querySelector(".problem").textContent = message;
  item.querySelector("textarea").focus();
  item.scrollIntoView({ block: "center" });
}

function renderPage(isOtherPage) {
  const focused = /** @type {HTMLTextAreaElement?} */ (document.activeElement);
  const focusedNumber = focused?.closest("#segments li")?.getAttribute("data-number");
  const cursor = focused?.selectionStart ?? 0;
  const drafts = readDrafts(openDocument.id);
  $("segments").replaceChildren(
    ...segments.map((segment) => segmentItem(segment, drafts[segment.number], openDocument)),
  );
  for (const textarea of $("segments").querySelectorAll("textarea")) fitHeight(textarea);
  renderPageNavigation();
  if (!focusedNumber) return;
  const textarea = itemOf({ number: focusedNumber })?.querySelector("textarea");
  if (!textarea) return focusEnd(1); // it is not in the list any more
  textarea.focus();
  if (!isOtherPage) textarea.setSelectionRange(cursor, cursor);
}

function renderPageNavigation() {
  const end = page.first + segments.length;
  const total = list?.length ?? openDocument.segments;
  const [previous, next] = [$("previous-segments"), $("next-segments")];
  previous.disabled = !page.previous.length;
  const focused = /** @type {HTMLButtonElement?} */ (document.activeElement);
  next.disabled = !segments.length || end >= total;
  if (focused?.disabled) (focused === next ? previous : next).focus(); // a disabled button loses the focus
  const numbers = { first: formatNumber(page.first + 1), last: formatNumber(end), total: formatNumber(total) };
  $("segment-range").textContent = segments.length
    ? gettext("{first} to {last} of {total}", numbers)
    : gettext("none of {total}", numbers);
}

function segmentOf(textarea) {
  const { number } = textarea.closest("li").dataset;
  return segments.find((segment) => segment.number === Number(number));
}

/** @returns {any} */
function itemOf(segment) {
  return $("segments").querySelector(`[data-number="${segment.number}"]`);
}

// Show hints for the focused segment only.
function showHintsFor(textarea) {
  const item = textarea.closest("li");
  for (const hints of $("segments").querySelectorAll(".hints")) {
    if (!item.contains(hints)) hints.replaceChildren();
  }
  const insert = (text, replaceAll) => {
    const before = beginStep([segmentOf(textarea).number]);
    textarea.focus();
    if (replaceAll) textarea.select();
    textarea.setRangeText(text, textarea.selectionStart, textarea.selectionEnd, "end");
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
    recordStep(gettext("insertion"), before);
  };
  hintsShown = showHints(
    item.querySelector(".hints"),
    `${openDocument.id}/segments/${item.dataset.number}/hints`,
    request,
    insert,
    (targets, menu) => enqueue(() => tools.chooseSense(textarea, targets, menu)),
  );
}

// Store an edit in this browser until it is accepted; without a text, remove it.
function storeDraft(segment, text = serverText(segment)) {
  storeDrafts(new Map([[segment.number, text]]));
}

// Store edits in this browser by segment number, until they are accepted; the text of the server is none.
function storeDrafts(texts) {
  const drafts = readDrafts(openDocument.id);
  for (const [number, text] of texts) {
    if (text === serverText(knownSegment(number))) delete drafts[number];
    else drafts[number] = text;
  }
  writeDrafts(openDocument.id, drafts);
  for (const segment of segments) {
    if (texts.has(segment.number)) showState(itemOf(segment), segment, drafts[segment.number]);
  }
}

// Store texts by segment number as edits, and show those on the page.
function setTexts(texts) {
  storeDrafts(texts);
  for (const segment of segments) {
    if (!texts.has(segment.number)) continue;
    const textarea = itemOf(segment).querySelector("textarea");
    textarea.value = texts.get(segment.number);
    fitHeight(textarea);
  }
}

// Move to the next (1) or previous (-1) segment, perhaps on another page; return whether there is one.
function moveFocus(textarea, step) {
  const textareas = [...$("segments").querySelectorAll("textarea")].filter(({ disabled }) => !disabled);
  const next = textareas[textareas.indexOf(textarea) + step];
  if (next) {
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }
  const hasPage = !$(step > 0 ? "next-segments" : "previous-segments").disabled;
  if (hasPage) turnPage(step).then(() => focusEnd(step));
  return hasPage;
}

function moveDown(textarea) {
  moveFocus(textarea, 1);
}

// Focus the first segment of a page after turning forward, the last one after turning back.
function focusEnd(step) {
  const textareas = [...$("segments").querySelectorAll("textarea:enabled")];
  const textarea = /** @type {HTMLTextAreaElement} */ (textareas.at(step > 0 ? 0 : -1));
  textarea?.focus();
  textarea?.scrollIntoView({ block: "center" });
}

// Return the button of a segment that an event is about, if any.
function actionOf({ target }) {
  return target.closest(".actions button");
}

function onAction(event) {
  const entry = entryOf(event.target.closest("button"));
  if (entry) showEntry(event.target.closest("li").querySelector("textarea"), entry);
  const button = actionOf(event);
  if (!button) return;
  const textarea = button.closest("li").querySelector("textarea");
  if (button.matches(".undo")) undo(textarea);
  else accept(textarea, document.activeElement === textarea ? moveDown : null); // else an on-screen keyboard would open
}

function undo(textarea) {
  const segment = segmentOf(textarea);
  const before = beginStep([segment.number]);
  setTexts(new Map([[segment.number, serverText(segment)]]));
  recordStep(gettext("undoing of an edit"), before);
}

// Call a function when all changes that are on their way have reached the server.
function enqueue(action) {
  running = running.then(action);
  return running;
}

// Accept the translation in a textarea; `moveOn(textarea)` is called at once.
function accept(textarea, moveOn) {
  running = Promise.allSettled([running, acceptSegment(textarea, moveOn)]);
}

async function acceptSegment(textarea, moveOn) {
  const requestId = latestRequest;
  const segment = segmentOf(textarea);
  const text = textarea.value;
  const before = beginStep([segment.number]);
  const item = textarea.closest("li");
  item.querySelector(".problem").textContent = "";
  moveOn?.(textarea);
  try {
    await putText(segment, text);
    if (requestId !== latestRequest) return;
    if (textarea.value === text) storeDraft(segment); // else it was edited again
    recordStep(gettext("acceptance of segment {number}", { number: segment.number + 1 }), before);
    if (textarea.value === text && itemOf(segment)) replaceItem(segment);
    await tools?.fillRepetitions(segment);
  } catch (error) {
    if (requestId !== latestRequest) return;
    item.querySelector(".problem").textContent = error.message;
    if (item.isConnected) textarea.focus();
    else showProblem(error);
  }
}

// Store an accepted translation on the server.
async function putText(segment, text) {
  const requestId = latestRequest;
  const [wasAccepted, wasDoubtful] = [segment.accepted, isDoubtful(segment)];
  const updated = await request(`${openDocument.id}/segments/${segment.number}`, "PUT", { text });
  if (requestId !== latestRequest) return;
  openDocument.accepted += wasAccepted ? 0 : 1;
  openDocument.doubtful -= wasDoubtful ? 1 : 0;
  storeSegments([updated]);
  tellOtherTabs(openDocument.id, [segment.number]);
  showProgress(openDocument);
  if (updated.remembered) onMemoryChanged();
}

// Bring segments into states of the history, by number; return how many entries of the memory could not be taken back.
async function restore(states) {
  const requestId = latestRequest;
  const { id } = openDocument;
  const current = statesOf(states.keys());
  const [withdrawn, accepted] = /** @type {[number[], [number, string][]]} */ ([[], []]);
  for (const [number, state] of states) {
    if (state.accepted === current.get(number).accepted) continue;
    if (state.accepted === null) withdrawn.push(number);
    else accepted.push([number, state.accepted]);
  }
  let staying = 0;
  for (let i = 0; i < withdrawn.length; i += WITHDRAWN_PER_REQUEST) {
    const numbers = withdrawn.slice(i, i + WITHDRAWN_PER_REQUEST);
    const answer = await request(`${id}/withdraw`, "POST", { numbers });
    if (requestId !== latestRequest) return 0;
    storeSegments(answer.segments);
    staying += answer.staying;
    tellOtherTabs(id, numbers);
  }
  if (accepted.length === 1) await putText(knownSegment(accepted[0][0]), accepted[0][1]);
  else if (accepted.length) await acceptTexts(id, accepted);
  if (requestId !== latestRequest) return 0;
  const textIn = (number, state) => state.draft ?? state.accepted ?? serverText(knownSegment(number));
  setTexts(new Map([...states].map(([number, state]) => [number, textIn(number, state)])));
  if (withdrawn.length) {
    onMemoryChanged();
    await refreshProgress();
  }
  for (const segment of segments) if (states.has(segment.number)) replaceItem(segment);
  const [number] = states.keys();
  if (states.size === 1 && (!list || list.includes(number))) await showSegment(number);
  return staying;
}

// The memory has changed: hints may be others, and the segment with the focus is translated again, as are those that get it later.
function onMemoryChanged() {
  memoryChanges += 1;
  clearHints();
  const focused = document.activeElement;
  if (!focused || !isTextarea(focused) || !$("segments").contains(focused)) return;
  showHintsFor(focused);
  translateAgain(focused);
}

// Translate a segment again, if the memory has changed since its last translation and the user has neither accepted nor edited it.
async function translateAgain(textarea) {
  const requestId = latestRequest;
  const segment = segmentOf(textarea);
  const isUntouched = () => textarea.isConnected && !segment.accepted && textarea.value === serverText(segment);
  const isCurrent = segment.origin !== "model" || (segment.memoryChanges ?? 0) === memoryChanges;
  if (!retrieves || isCurrent || !isUntouched()) return;
  segment.memoryChanges = memoryChanges;
  try {
    const updated = await request(`${openDocument.id}/segments/${segment.number}/translate`, "POST", {});
    if (requestId !== latestRequest || !isUntouched() || updated.target === segment.target) return;
    storeSegments([updated]);
    replaceItem(segment);
  } catch {
    segment.memoryChanges = -1; // the next focus tries again
  }
}

// Show the entry of the memory that has decided words of a segment.
async function showEntry(textarea, entry) {
  const { showMemoryEntry } = await import("./memory_entry.js");
  const { source, target } = openDocument;
  showMemoryEntry(entry, { source, target }, canChangeMemory, () => {
    textarea.focus();
    onMemoryChanged();
  });
}

function replaceItem(segment) {
  const oldItem = itemOf(segment);
  const newItem = segmentItem(segment, readDrafts(openDocument.id)[segment.number], openDocument);
  const textarea = newItem.querySelector("textarea");
  const hadFocus = oldItem.contains(document.activeElement);
  oldItem.replaceWith(newItem);
  fitHeight(textarea);
  if (hadFocus) textarea.focus();
}

function showProblem(error) {
  $("document-problem").textContent = error ? error.message : "";
}
