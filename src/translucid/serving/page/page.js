// The page: its sections, and what they share.

import { initApiKey } from "./api_key.js";
import { initDocuments, uploadDocument } from "./documents.js";
import { element } from "./elements.js";
import { initHistory } from "./history.js";
import { selectedModel } from "./languages.js";
import { createLanguageMenu, gettext, translated, translatePage } from "./messages.js";
import { $ } from "./page_elements.js";
import { RETRY_DELAY, readResponse } from "./requests.js";
import { initShortcuts } from "./shortcuts.js";
import { stateFromLink } from "./storage.js";
import { copyLink, copyTranslation, initTexts, openState, setText, swap, translate } from "./texts.js";

// Sections by their ids. `fragment` stands for a section in the page's address (a contract: users have bookmarks); `heading`
// is the subtitle of the page if the section is the first.
const SECTIONS = {
  texts: { fragment: "texts", heading: gettext("translation you can see through") },
  documents: { fragment: "documents", heading: gettext("translation you can see through") },
  images: { fragment: "images", heading: gettext("captions you can see through") },
  "text-models": { fragment: "judging", heading: gettext("models you can see through") },
};
const WITH_LANGUAGES = ["texts", "documents"]; // sections below the languages
let availableSections = []; // ids of the sections for which the server has models
const unopened = new Map(); // by id, functions that load the module of a section when it is first opened

translatePage();
document.querySelector("footer")?.append(createLanguageMenu() ?? "");
init();

async function init() {
  let models, settings, images, textModels;
  try {
    [models, settings] = await Promise.all(["models", "frontend/settings"].map((path) => readResponse(fetch(path))));
    const hasModels = (...inputs) => models.some((model) => inputs.includes(model.reads));
    images = hasModels("images") ? await import("./images.js") : null; // few servers have models for these
    textModels = hasModels("texts", "prompts") ? await import("./text_models.js") : null;
  } catch (error) {
    $("problem").textContent = error.message;
    setTimeout(init, RETRY_DELAY);
    return;
  }
  $("problem").textContent = "";
  $("lessons-link").hidden = !settings.lessons;
  initSections(groupByInput(models), settings, images, textModels);
  document.body.classList.add("ready");
}

// Return the models by what they read.
function groupByInput(models) {
  const reading = (input) => models.filter((model) => model.reads === input);
  return {
    translators: reading("text"),
    captioners: reading("images"),
    classifiers: reading("texts"),
    languageModels: reading("prompts"),
  };
}

// Set up the sections. `images` and `textModels` are the modules of the optional sections, or null.
function initSections({ translators, captioners, classifiers, languageModels }, settings, images, textModels) {
  const hasTranslators = translators.length > 0;
  for (const section of settings.sections) addSection(section, settings);
  const modelsBySection = {
    texts: translators,
    documents: translators,
    images: captioners,
    "text-models": [...classifiers, ...languageModels],
  };
  availableSections = Object.keys(SECTIONS).filter((section) => (modelsBySection[section] ?? translators).length);
  initNavigation();
  initApiKey(settings, () => {
    if (hasTranslators) translate();
    images?.captionAgain();
  });
  if (hasTranslators) initTexts(translators, settings);
  if (hasTranslators) initDocuments(settings, selectedModel);
  images?.initImages(captioners, settings, () => showSection("images"));
  textModels?.initTextModels(classifiers, languageModels, settings);
  initFiles({
    image: images ? openInSection("images", images.openImage) : null,
    document: hasTranslators ? openInSection("documents", uploadDocument) : null,
    text: hasTranslators ? (file) => openTextFile(file, settings.charLimit) : null,
  });
  initHistory((entry) => {
    showSection("texts");
    openState(entry);
    $("source").focus();
  });
  initShortcuts(availableShortcuts());
  $("open-history").hidden = !hasTranslators;
}

// Add a section for translators that an extension of the server has; its module is loaded when it is first opened.
function addSection({ name, label, module }, settings) {
  SECTIONS[name] = { fragment: name, heading: SECTIONS.texts.heading };
  WITH_LANGUAGES.push(name);
  $("section-nav").append(element("button", { id: `show-${name}`, type: "button", textContent: translated(label) }));
  const root = element("main", { id: name, hidden: true });
  $("texts-and-documents").append(root);
  const open = async () => {
    unopened.delete(name);
    try {
      await (await import(`./${module}`)).initSection(root, settings);
    } catch {
      root.textContent = gettext("The server does not respond. Open this section again.");
      unopened.set(name, open);
    }
  };
  unopened.set(name, open);
}

function initNavigation() {
  for (const section of Object.keys(SECTIONS)) {
    const button = $(`show-${section}`);
    Object.assign(button, { hidden: !availableSections.includes(section), disabled: false });
    button.addEventListener("click", () => showSection(section));
  }
  $("section-nav").hidden = availableSections.length < 2;
  const [defaultSection] = availableSections;
  document.querySelector("h1 span").textContent = SECTIONS[defaultSection].heading;
  const isTouch = matchMedia("(hover: none)").matches;
  if (isTouch) $("source").placeholder = gettext("Type or paste"); // touch screens have no drag and drop
  const linkedSection = availableSections.find((section) => location.hash === `#${SECTIONS[section].fragment}`);
  showSection(linkedSection ?? defaultSection);
}

function showSection(shown) {
  for (const section of Object.keys(SECTIONS)) {
    $(section).hidden = section !== shown;
    $(`show-${section}`).setAttribute("aria-pressed", section === shown);
  }
  $("texts-and-documents").hidden = !WITH_LANGUAGES.includes(shown);
  $("compared-model-label").hidden = shown !== "texts";
  unopened.get(shown)?.();
  if (shown === "texts" && stateFromLink()) return; // the address keeps the link
  const fragment = shown === availableSections[0] ? "" : `#${SECTIONS[shown].fragment}`;
  // replacing the address by itself would undo a link that is just being followed
  if (location.hash !== fragment) history.replaceState(null, "", location.pathname + location.search + fragment);
}

// Open files that are dropped anywhere on the page, or chosen below the text. `handlers` has the functions of a file
// { image, document, text }; those without models are null. `text` returns whether it has used the file.
function initFiles(handlers) {
  const hasFiles = ({ dataTransfer }) => [...dataTransfer.items].some(({ kind }) => kind === "file");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    $("drop-overlay").hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) $("drop-overlay").hidden = true; // the pointer has left the window
  });
  document.addEventListener("drop", (event) => {
    $("drop-overlay").hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    openFile(event.dataTransfer.files[0], handlers);
  });
  const input = $("text-file");
  input.addEventListener("change", () => {
    if (input.files.length) openFile(input.files[0], handlers);
    input.value = ""; // so that choosing the same file again is a change
  });
}

// Open a file in the section of the page for its kind.
async function openFile(file, { image: openImage, document: openDocument, text: openText }) {
  const isImage = file.type.startsWith("image/");
  const onlyImages = !(openDocument || openText);
  if (openImage && (isImage || onlyImages)) return openImage(file);
  const mayBeText = file.type.startsWith("text/plain") || file.type === "";
  if (openText && mayBeText && (await openText(file))) return undefined;
  return openDocument?.(file);
}

// Return the text of a file; null if it is no text, or longer than `maxLength` characters.
async function readText(file, maxLength) {
  if (file.size > 4 * maxLength) return null; // UTF-8 has up to four bytes per character
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.length > maxLength || text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

// Return a function that shows a section and opens a file in it.
function openInSection(section, open) {
  return (file) => {
    showSection(section);
    return open(file);
  };
}

// Put a short text into the text field, unless the documents are shown; return whether that was done.
async function openTextFile(file, maxLength) {
  if (!$("documents").hidden) return false;
  const text = await readText(file, maxLength);
  if (text === null) return false;
  showSection("texts");
  setText(text);
  return true;
}

function availableShortcuts() {
  const inTexts = (action) => () => {
    if (!$("texts").hidden) action();
  };
  const textShortcuts = [
    { keys: "Ctrl Enter", description: gettext("translate now (also while typing)"), action: inTexts(translate) },
    {
      keys: "Ctrl Shift S",
      description: gettext("swap languages and texts (also while typing)"),
      action: inTexts(swap),
    },
    { keys: "S", description: gettext("swap languages and texts"), action: inTexts(swap) },
  ];
  const translationShortcuts = [
    { keys: "C", description: gettext("copy the translation"), action: inTexts(copyTranslation) },
    { keys: "L", description: gettext("copy a link to it"), action: inTexts(copyLink) },
    { keys: "H", description: gettext("open the history"), action: () => $("open-history").click() },
  ];
  const hasTexts = availableSections.includes("texts");
  return [
    ...(hasTexts ? textShortcuts : []),
    { keys: "/", description: gettext("go to the text field"), action: focusTextField },
    ...(hasTexts ? translationShortcuts : []),
    ...availableSections.map(sectionShortcut),
    { keys: "?", description: gettext("show these shortcuts"), action: () => $("open-shortcuts").click() },
  ];
}

function sectionShortcut(section, i) {
  const description = gettext("go to {section}", { section: $(`show-${section}`).textContent });
  return { keys: String(i + 1), description, action: () => showSection(section) };
}

function focusTextField() {
  const isVisible = (field) => field.checkVisibility();
  const [textareas, inputs] = ["main textarea", "main input"].map((fields) => [...document.querySelectorAll(fields)]);
  (textareas.find(isVisible) ?? inputs.find(isVisible))?.focus();
}
