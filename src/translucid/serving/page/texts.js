// Texts: type one and read its translation. attention_view.js shows attention and explanations.

import {
  clearAttentionViews,
  currentPlace,
  ignorePendingResponses,
  initAttentionViews,
  restorePlace,
  showAttentionViews,
} from "./attention_view.js";
import {
  hasLowProbabilityWords,
  hasRetrievedWords,
  retrievedWordOf,
  senseText,
  translationNodes,
  warningTexts,
} from "./confidence.js";
import { element } from "./elements.js";
import { addToHistory } from "./history.js";
import {
  applyDetection,
  canSwap,
  comparedModel,
  DETECT,
  formalityField,
  initLanguages,
  isDetecting,
  renderLanguages,
  restoreSelection,
  selectedModel,
  swapLanguages,
} from "./languages.js";
import { formatNumber, gettext, LANGUAGE, ngettext } from "./messages.js";
import { $, progressIndicator } from "./page_elements.js";
import { showPivotNote, viewsOf, withChosenTranslation } from "./pivot_steps.js";
import { automaticRequestDelay, postJson, readResponse, recordAutomaticRequest } from "./requests.js";
import { copyToClipboard, initialState, linkTo, removeLink, storeTabState } from "./storage.js";
import { initSuggestionForm, leaveSuggestionForm } from "./suggestion_form.js";

const INSPECTED_LENGTH = 500; // characters up to which attention is shown
const TYPING_DELAY = 300; // milliseconds after the last key
const PART_LENGTHS = [500, 1500, 3000]; // characters per request of a long text: the first part is small, to show it soon
const PARAGRAPHS_PER_PART = 100;
const MESSAGE_DURATION = 1500; // milliseconds
const LONG_TEXT = 400; // characters from which on the font is smaller
let maxLength; // of a text, in characters
let canChangeMemory = false;
let adapterNumber; // that of what the model had learned from corrections at the last translation; 0 for nothing
let responses = []; // of /look: the selected model's, and the compared one's
let latestRequest = 0; // responses to earlier requests are ignored
let abortController = new AbortController(); // cancels the requests for the current text
let requestedInput = ""; // that of the last request: if an edit is undone, no new request is needed
let requestTimer;
const examplesByModel = new Map();
const progress = progressIndicator($("texts"), $("status"));

// Set up with the translation models and the server's settings.
export function initTexts(models, settings) {
  maxLength = settings.charLimit;
  canChangeMemory = settings.suggestions;
  initLanguages(models, () => {
    renderExamples();
    translate();
  });
  initAttentionViews(requestFrom, settings);
  $("inspection").addEventListener("choose", (/** @type {any} */ { detail }) => onTranslationChosen(detail));
  $("inspection").addEventListener("problem", (/** @type {any} */ { detail }) => showProblem(detail));
  $("source").addEventListener("input", onTyping);
  initSuggestionForm(settings, currentTranslation, () => {
    translate();
    showActionStatus(gettext("Saved in the memory"));
  });
  $("output").addEventListener("click", ({ target }) => showEntryOf(target));
  $("output").addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && showEntryOf(event.target)) event.preventDefault();
  });
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => setText(""));
  $("copy-translation").addEventListener("click", copyTranslation);
  $("copy-link").addEventListener("click", copyLink);
  addEventListener("resize", updateLayout);
  addEventListener("hashchange", () => {
    if (location.hash.includes("text=")) openState(initialState());
  });
  const state = initialState();
  const typedEarly = $("source").value; // before this script was loaded, or restored by a browser that reloads the page
  if (state && (!typedEarly || typedEarly === state.text)) openState(state);
  else if (typedEarly) translate();
  updateLayout();
  loadExamples();
}

// Set the text, and translate it.
export function setText(text) {
  $("source").value = text;
  leaveLink();
  updateLayout();
  const isTouch = matchMedia("(hover: none)").matches;
  if (isTouch)
    $("output").focus({ preventScroll: true }); // no on-screen keyboard over the translation
  else $("source").focus();
  translate();
}

// Show the text of a link or of the history, with its languages and its model.
export function openState(state) {
  restoreSelection(state);
  restorePlace(state);
  $("source").value = state.text;
  updateLayout();
  translate();
}

// Swap the languages; the translation becomes the text.
export function swap() {
  if (!canSwap()) return;
  const text = $("translation").textContent;
  swapLanguages();
  if (text) {
    setText(text);
  } else {
    updateLayout();
    renderExamples();
  }
}

// Copy the translation, if there is one, to the clipboard.
export async function copyTranslation() {
  const text = $("translation").textContent;
  if (text) await copy(text, gettext("Copied"));
}

// Copy a link that opens the text with its languages, its model and the view of it, in the language of the page.
export async function copyLink() {
  if (!$("source").value.trim()) return;
  await copy(linkTo({ ...currentState(), ...currentPlace(), lang: LANGUAGE }), gettext("Link copied"));
}

async function copy(text, confirmation) {
  const copied = await copyToClipboard(text);
  showActionStatus(copied ? confirmation : gettext("This browser does not allow the page to copy."));
}

// Translate after a pause in typing, unless only spaces at the end have changed.
function onTyping() {
  leaveLink();
  updateLayout();
  if (currentInput() === requestedInput) {
    clearTimeout(requestTimer);
    storeTabState(currentState());
    return;
  }
  translateLater($("source").value.trim() ? automaticRequestDelay(TYPING_DELAY) : TYPING_DELAY);
}

// Forget the place in the inspector that a link led to, as the text differs from that of the link.
function leaveLink() {
  removeLink();
  restorePlace({});
}

// Return the text, languages and models as one string.
function currentInput() {
  const model = selectedModel();
  const choice = formalityField(model.name, model.target);
  return JSON.stringify([$("source").value.trimEnd(), $("from").value, model, choice, comparedModel()]);
}

// Return the text, languages and model for a link or for the history.
function currentState() {
  const { name, source, target } = selectedModel();
  return { text: $("source").value, from: source, to: target, model: name, ...formalityField(name, target) };
}

function currentTranslation() {
  return { ...currentState(), translation: $("translation").textContent };
}

// Translate the text now.
export function translate() {
  clearTimeout(requestTimer);
  recordAutomaticRequest();
  latestRequest += 1;
  ignorePendingResponses();
  leaveSuggestionForm();
  abortController.abort();
  abortController = new AbortController();
  const text = $("source").value;
  requestedInput = currentInput();
  storeTabState(currentState());
  $("comparison").hidden = !comparedModel();
  updateLayout();
  if (!text.trim()) {
    showNoTranslation();
  } else if (text.length > maxLength) {
    showNoTranslation();
    const [excess, limit] = [text.length - maxLength, formatNumber(maxLength)];
    const message = ngettext(
      "The text is {count} character over the limit of {limit}.",
      "The text is {count} characters over the limit of {limit}.",
      excess,
      { limit },
    );
    showProblem(new Error(message));
  } else {
    requestTranslation(latestRequest, text);
  }
}

function translateLater(milliseconds) {
  clearTimeout(requestTimer);
  requestTimer = setTimeout(translate, milliseconds);
}

async function requestTranslation(requestId, text) {
  progress.start();
  try {
    if (text.length > INSPECTED_LENGTH) {
      await translateInParts(requestId, text);
      return;
    }
    const newResponses = await (isDetecting() ? detectAndInspect(requestId, text) : inspectWithModels(text));
    if (requestId !== latestRequest) return;
    showProblem(null);
    showTranslation(text, newResponses);
  } catch (error) {
    if (requestId === latestRequest) onRequestFailed(error);
  } finally {
    if (requestId === latestRequest) progress.stop();
  }
}

function inspectWithModels(text) {
  const models = [selectedModel(), comparedModel()].filter((model) => model !== null);
  return Promise.all(models.map((model) => requestFrom("look", model, { q: text })));
}

// Detect the language with the same request, then use it for the model to compare with.
async function detectAndInspect(requestId, text) {
  const response = await requestFrom("look", { ...selectedModel(), source: DETECT }, { q: text });
  if (requestId !== latestRequest) return [];
  applyDetection([{ language: response.source, confidence: response.detectedLanguage.confidence }]);
  requestedInput = currentInput();
  const compared = comparedModel();
  return compared ? [response, await requestFrom("look", compared, { q: text })] : [response];
}

function requestFrom(path, { source, target, name }, fields) {
  const choice = formalityField(name, target);
  return postJson(path, { source, target, model: name, ...choice, ...fields }, abortController.signal);
}

function onRequestFailed(error) {
  requestedInput = "";
  clearTranslation();
  showProblem(error);
  if (error.retryable) translateLater(error.retryDelay);
}

// Remove everything that belongs to another text.
function clearTranslation() {
  responses = [];
  clearAttentionViews();
  $("warnings").replaceChildren();
  const notes = [$("translation-origin"), $("pivot-note"), $("unsure-note"), $("retrieved-note"), $("adapter-note")];
  for (const note of notes) note.hidden = true;
  for (const part of [$("translation"), $("compared-translation"), $("status"), $("sense-note")]) part.textContent = "";
  showProblem(null);
  updateLayout();
}

function showNoTranslation() {
  progress.stop();
  clearTranslation();
  renderExamples();
}

// Show the responses of /look: the selected model's, and the compared one's.
function showTranslation(text, newResponses) {
  responses = newResponses;
  const [response, compared] = responses;
  $("translation").replaceChildren(...translationNodes(response));
  $("compared-translation").replaceChildren(...(compared ? translationNodes(compared) : []));
  $("status").textContent = "";
  $("warnings").replaceChildren(...warningTexts(response).map((textContent) => element("li", { textContent })));
  $("unsure-note").hidden = !responses.some(hasLowProbabilityWords);
  $("retrieved-note").hidden = !responses.some(hasRetrievedWords);
  const senses = response.sentences.flatMap((sentence) => sentence.senses ?? []);
  $("sense-note").textContent = senses.map(senseText).join("; ");
  showAdapter(response.adapter);
  showOrigin(response.sentences.map((sentence) => sentence.origin));
  $("inspection").hidden = false; // only visible elements can be measured
  showAttentionViews(responses.flatMap((modelResponse, i) => viewsOf(modelResponse, modelAt(i), i)));
  showPivotNote($("pivot-note"), response.pivot, response.steps);
  updateLayout();
  addToHistory({ ...currentState(), text, translation: response.translation });
}

function modelAt(index) {
  return (index && comparedModel()) || selectedModel();
}

// The user has chosen other translations of one model's sentences: update everything that is shown for that model.
async function onTranslationChosen({ translations, modelIndex, step }) {
  latestRequest += 1;
  const requestId = latestRequest;
  const text = $("source").value;
  ignorePendingResponses();
  progress.start();
  try {
    const response = await (step === undefined
      ? requestFrom("look", modelAt(modelIndex), { q: text, translations })
      : withChosenTranslation(requestFrom, responses[modelIndex], step, translations));
    if (requestId !== latestRequest) return;
    showProblem(null);
    showTranslation(text, responses.with(modelIndex, response));
  } catch (error) {
    if (requestId === latestRequest) showProblem(error);
  } finally {
    if (requestId === latestRequest) progress.stop();
  }
}

// Translate a long text without attention, in a few parts, each of which is shown on arrival.
async function translateInParts(requestId, text) {
  clearTranslation();
  if (isDetecting()) {
    const detections = await postJson("detect", { q: text.slice(0, INSPECTED_LENGTH) }, abortController.signal);
    if (requestId !== latestRequest) return;
    applyDetection(detections);
    requestedInput = currentInput();
  }
  const origins = [];
  for (const part of splitIntoParts(text)) {
    const paragraphs = part.filter((paragraph) => paragraph.trim());
    const response = paragraphs.length
      ? await requestFrom("translate", selectedModel(), { q: paragraphs, confidence: true })
      : null;
    if (requestId !== latestRequest) return;
    origins.push(...appendPart(part, response));
    progress.stop(); // the first part is readable
    showPivotNote($("pivot-note"), selectedModel().pivot);
    $("status").textContent = gettext("Attention is shown for texts of up to {count} characters.", {
      count: INSPECTED_LENGTH,
    });
    showOrigin(origins);
    updateLayout();
  }
  addToHistory({ ...currentTranslation(), text });
}

// Append the translations of a part's paragraphs, and the line breaks between them; return the origins of the translations.
function appendPart(part, response) {
  const origins = [];
  for (const paragraph of part) {
    if (!paragraph.trim()) {
      $("translation").append(paragraph);
      continue;
    }
    const i = origins.length;
    const translation = response.translatedText[i];
    const origin = response.origin?.[i] ?? "model";
    const retrieved = response.retrieved?.[i];
    const sentence = { text: translation, pieces: [], origin, confidence: response.confidence?.[i], retrieved };
    if (retrieved?.length) $("retrieved-note").hidden = false;
    $("translation").append(...translationNodes({ translation, sentences: [sentence] }));
    origins.push(origin);
  }
  return origins;
}

// Split a text into parts of increasing size, which are lists of paragraphs and the line breaks between them.
function splitIntoParts(text) {
  /** @type {string[][]} */
  const parts = [[]];
  let length = 0;
  for (const paragraph of text.split(/(\n+)/)) {
    const maxPartLength = PART_LENGTHS[Math.min(parts.length, PART_LENGTHS.length) - 1];
    const isFull =
      length + paragraph.length > maxPartLength || parts[parts.length - 1].length >= 2 * PARAGRAPHS_PER_PART;
    if (length && isFull) {
      parts.push([]);
      length = 0;
    }
    parts[parts.length - 1].push(paragraph);
    length += paragraph.length;
  }
  return parts;
}

// Show whether text comes from the translation memory. `origins` are those of the sentences or paragraphs.
function showOrigin(origins) {
  const isFromMemory = (origin) => origin === "memory";
  $("translation-origin").hidden = !origins.some((origin) => isFromMemory(origin) || origin === "mixed");
  $("translation-origin").textContent = origins.every(isFromMemory)
    ? gettext("From the translation memory")
    : gettext("Partly from the translation memory");
}

// Show the entry of the memory that has decided the word of an element; return whether there is one.
function showEntryOf(node) {
  const word = retrievedWordOf(node);
  if (!word) return false;
  const { source, target } = selectedModel();
  import("./memory_entry.js").then(({ showMemoryEntry }) => {
    showMemoryEntry(word, { source, target }, canChangeMemory, (message) => {
      translate();
      showActionStatus(message);
    });
  });
  return true;
}

// Say what the model has learned from corrections, { number, when }, and whether that has changed since the last translation.
function showAdapter(adapter) {
  const number = adapter?.number ?? 0;
  const hasChanged = adapterNumber !== undefined && adapterNumber !== number;
  adapterNumber = number;
  $("adapter-note").hidden = !adapter && !hasChanged;
  const time = adapter?.when.slice(0, 16).replace("T", " ");
  const state = adapter
    ? gettext("The model has learned from corrections ({time} UTC).", { time })
    : gettext("The model has forgotten what it learned from corrections.");
  $("adapter-note").textContent = hasChanged ? gettext("New: {state}", { state }) : state;
}

function showProblem(error) {
  $("problem").textContent = error ? error.message : "";
}

function showActionStatus(text) {
  $("action-status").textContent = text;
  setTimeout(() => {
    $("action-status").textContent = "";
  }, MESSAGE_DURATION);
}

// Update what depends on the text: counter, buttons, writing directions, and the height of both panes.
function updateLayout() {
  const { value: text } = $("source");
  const hasTranslation = Boolean($("translation").textContent);
  $("character-count").textContent = gettext("{length} of {limit}", {
    length: formatNumber(text.length),
    limit: formatNumber(maxLength),
  });
  $("character-count").classList.toggle("over-limit", text.length > maxLength);
  $("clear").hidden = !text;
  $("inspection").hidden = !responses.length;
  $("copy-translation").disabled = $("improve").disabled = !hasTranslation;
  $("copy-link").disabled = !text.trim();
  $("source").dir = text.trim() ? "auto" : $("source-pane").dir;
  $("translation").dir = hasTranslation ? "auto" : $("target-pane").dir;
  $("texts").classList.toggle("long-text", text.length > LONG_TEXT);
  $("examples").hidden = Boolean(text) || !$("example-list").children.length;
  setPaneHeights();
}

// Both panes are as high as the text needs, with some room for a longer translation.
function setPaneHeights() {
  $("source").style.height = "0"; // scrollHeight is then that of the text
  const textHeight = $("source").scrollHeight;
  $("source").style.height = "";
  const hasTwoTranslations = !$("comparison").hidden;
  const outputHeight = hasTwoTranslations ? 2.2 * textHeight + 80 : 1.2 * textHeight; // 80 pixels for the models' names
  const { style } = /** @type {HTMLElement} */ (document.querySelector(".panes"));
  style.setProperty("--source-height", `${Math.ceil(1.2 * textHeight)}px`);
  style.setProperty("--output-height", `${Math.ceil(outputHeight)}px`);
}

async function loadExamples() {
  try {
    const examples = await readResponse(fetch("examples"));
    for (const [model, texts] of Object.entries(examples)) examplesByModel.set(model, texts);
    renderExamples();
  } catch {
    /* examples are optional */
  }
}

// Show the selected model's example sentences as buttons.
function renderExamples() {
  const { name, source } = selectedModel();
  const items = (examplesByModel.get(name) ?? []).map((text) => {
    const button = element("button", { type: "button", textContent: text, lang: source, dir: "auto" });
    button.addEventListener("click", () => setText(text));
    return element("li", {}, button);
  });
  $("example-list").replaceChildren(...items);
  $("examples").hidden = Boolean($("source").value) || !items.length;
  renderLanguages();
}
