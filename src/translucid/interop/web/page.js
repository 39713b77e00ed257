// The page of an exported model: it translates the text that is typed and shows the model's attention and search.
//
// model.js defines MODEL; the scripts in engine/ compute.

import { nextTask, startEngine } from "./engine_client.js";
import { showInspector } from "./inspector.js";
import { createLanguageMenu, formatNumber, gettext, LANGUAGE, languageName, translatePage } from "./messages.js";
import { showPass, UNCHANGED } from "./pass.js";
import { createRecord, createSearchTree } from "./record.js";
import { TRANSLATION_VIEW } from "./translation_view.js";

const DEBOUNCE_MILLISECONDS = 350; // from the last key to the translation
const SENTENCE_BOUNDARY = /(?<=[.!?…。！？]["'»”)]*)\s+/u;

const VIEW = {
  ...TRANSLATION_VIEW,
  showWords: (root, content, options) => TRANSLATION_VIEW.showWords(root, content, { ...options, layOutLater: true }), // for phones
};

const $ = (id) => document.getElementById(id);
const ask = startEngine(MODEL);
const [sourcePieces, targetPieces = sourcePieces] = MODEL.tokenizers.map(({ pieces }) => pieces);
const linkOptions = new URLSearchParams(location.hash.slice(1)); // such as index.html#text=I+like+soccer&view=heads
const place = { step: Number(linkOptions.get("step")) || 0, points: linkOptions.getAll("point"), onChange: updateLink };
let activeTab = linkOptions.get("view") ?? "attention";
let activeMap = linkOptions.get("map") ?? ""; // the name of an attention map
let activeSentence = Number(linkOptions.get("sentence")) || 0;
let debounceTimer;
let latestRequestId = 0;

if (window !== parent) document.body.classList.add("embedded"); // a page with a title of its own shows this one in a frame
translatePage();
document.querySelector("footer")?.append(createLanguageMenu() ?? "");
addListeners();
$("text").value = linkOptions.get("text") ?? "";
setTimeout(showLanguages); // a task of its own
if ($("text").value) translateText();

function showLanguages() {
  const [source, target] = MODEL.languages; // standard codes, or empty
  const [sourceName, targetName] = MODEL.language_names.map(nameInPageLanguage);
  if (sourceName && targetName)
    document.title = gettext("Translate {source} to {target}", { source: sourceName, target: targetName });
  if (sourceName) $("source-language").textContent = sourceName;
  if (targetName) $("target-language").textContent = targetName;
  $("text").lang = source;
  $("translation").lang = target;
}

// Return the name of a language of the model; its English name if its code is not standard.
function nameInPageLanguage(englishName, i) {
  const code = MODEL.languages[i];
  return code && LANGUAGE !== "en" ? languageName(code) : englishName;
}

function addListeners() {
  $("text").addEventListener("input", () => {
    activeSentence = 0;
    clearTimeout(debounceTimer);
    debounceTimer = setTimeout(translateText, DEBOUNCE_MILLISECONDS);
  });
  $("text").addEventListener("keydown", (event) => {
    const isSubmit = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    if (!isSubmit) return;
    event.preventDefault();
    translateText();
  });
  $("translation-form").addEventListener("submit", (event) => {
    event.preventDefault();
    translateText();
  });
}

// Translate all sentences, and show each translation as soon as it is ready.
async function translateText() {
  clearTimeout(debounceTimer);
  const requestId = ++latestRequestId;
  const lines = $("text").value.split("\n").map(splitSentences);
  const translations = lines.map(() => []);
  const sentences = [];
  let milliseconds = 0;
  $("problem").textContent = "";
  for (const [lineNumber, line] of lines.entries()) {
    for (const text of line) {
      const start = performance.now();
      const sentence = await translateIfPossible(text);
      const isOutdated = requestId !== latestRequestId;
      if (isOutdated) return;
      milliseconds += performance.now() - start;
      if (sentence) sentences.push(sentence);
      translations[lineNumber].push(sentence?.text ?? text);
      $("translation").textContent = translations
        .map((texts) => texts.join(" "))
        .join("\n")
        .trim();
    }
  }
  if (!lines.flat().length) $("translation").textContent = "";
  await nextTask();
  if (requestId !== latestRequestId) return;
  $("time").textContent = sentences.length
    ? gettext("{count} ms in this browser", { count: formatNumber(Math.round(milliseconds)) })
    : "";
  await nextTask();
  if (requestId === latestRequestId) showSentences(sentences);
}

function splitSentences(line) {
  return line.trim().split(SENTENCE_BOUNDARY).filter(Boolean);
}

function showSentences(sentences) {
  $("inspector").hidden = !sentences.length;
  if (!sentences.length) return;
  const engine = { ask, options: MODEL.options, start: MODEL.search.start, sourcePieces, targetPieces };
  const pass = { name: "pass", label: gettext("Pass"), show: (inspector) => showPass(inspector, engine, place) };
  const content = {
    run: `runs/${MODEL.name}`,
    packageVersion: MODEL.package_version,
    languages: MODEL.languages,
    sentences,
    view: VIEW,
    tabs: [pass],
    tab: activeTab,
    sentenceIndex: activeSentence,
    map: activeMap,
    step: place.step,
    isShownLater: true, // for phones
  };
  showInspector($("inspector"), content, {
    ablate: async ({ source_text }, heads) => translateSentence(source_text, { ...UNCHANGED, off: heads }),
    onTabChange: (name) => {
      activeTab = name;
      updateLink();
    },
    onSentenceChange: (index) => {
      activeSentence = index;
      updateLink();
    },
    onMapChange: (name) => {
      if (name === activeMap) return;
      activeMap = name;
      updateLink();
    },
    onStepChange: (index) => {
      place.step = index;
      updateLink();
    },
  });
  setTimeout(updateLink); // a task of its own
}

// Make the address of the page a link to what it shows.
function updateLink() {
  const options = new URLSearchParams({ text: $("text").value, view: activeTab, lang: LANGUAGE });
  if (activeSentence) options.set("sentence", String(activeSentence));
  if (["attention", "heads"].includes(activeTab) && activeMap) options.set("map", activeMap);
  if (["steps", "pass"].includes(activeTab)) options.set("step", String(place.step));
  if (activeTab === "pass") {
    for (const point of place.points) options.append("point", point);
  }
  history.replaceState(null, "", `#${options}`);
}

// A translated sentence; null if it has no letters or is too long for the model, so that it stays as it is.
async function translateIfPossible(text) {
  return /\p{L}/u.test(text) ? translateSentence(text) : null;
}

// A sentence with its translation, the record of its attention, and the tree of its beam search; null if it is too long.
// changes: what changes the model, see engine/translator.js.
async function translateSentence(text, changes = UNCHANGED) {
  const translated = await ask("translate", { text, changes });
  const { ids, tokens } = translated;
  if (!tokens) {
    const lengths = { length: ids.length, longest: MODEL.longest };
    $("problem").textContent = gettext(
      "A sentence has {length} word pieces; this model takes at most {longest}.",
      lengths,
    );
    return null;
  }
  await nextTask();
  const pieces = ids.map((id) => sourcePieces[id].replace("<unk>", "⁇"));
  const unknown = [...ids.keys()].filter((i) => sourcePieces[ids[i]] === "<unk>");
  const pieceOf = (token) => targetPieces[token];
  const record = createRecord({ pieces, unknown }, tokens.map(pieceOf), translated);
  await nextTask();
  const tree = createSearchTree(translated, MODEL.search.beam, pieceOf);
  return { source_text: text, text: translated.text, ids, tokens, record, tree };
}
