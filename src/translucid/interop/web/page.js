// The page of an exported model: it translates the text that is typed and shows the model's attention and search.
//
// model.js defines MODEL; the scripts in engine/ define WebTranslator and UNKNOWN.

import { showInspector } from "./inspector.js";
import { createLanguageMenu, formatNumber, gettext, LANGUAGE, languageName, translatePage } from "./messages.js";
import { showPass } from "./pass.js";
import { createRecord, createSearchTree } from "./record.js";

const DEBOUNCE_MILLISECONDS = 350; // from the last key to the translation
const SENTENCE_BOUNDARY = /(?<=[.!?…。！？]["'»”)]*)\s+/u;

const $ = (id) => document.getElementById(id);
const translator = new WebTranslator(MODEL);
const linkOptions = new URLSearchParams(location.hash.slice(1)); // such as index.html#text=I+like+soccer&view=heads
const place = { step: Number(linkOptions.get("step")) || 0, points: linkOptions.getAll("point"), onChange: updateLink };
let activeTab = linkOptions.get("view") ?? "attention";
let debounceTimer;
let latestRequestId = 0;

if (window !== parent) document.body.classList.add("embedded"); // a page with a title of its own shows this one in a frame
translatePage();
document.querySelector("footer")?.append(createLanguageMenu() ?? "");
showLanguages();
addListeners();
$("text").value = linkOptions.get("text") ?? "";
if ($("text").value) translateText();

function showLanguages() {
  const [source, target] = MODEL.languages; // standard codes, or empty
  const [sourceName, targetName] = LANGUAGE === "en" ? MODEL.language_names : MODEL.languages.map(nameOrNothing);
  if (sourceName && targetName)
    document.title = gettext("Translate {source} to {target}", { source: sourceName, target: targetName });
  if (sourceName) $("source-language").textContent = sourceName;
  if (targetName) $("target-language").textContent = targetName;
  $("text").lang = source;
  $("translation").lang = target;
}

function nameOrNothing(code) {
  return code && languageName(code);
}

function addListeners() {
  $("text").addEventListener("input", () => {
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
      await new Promise((resolve) => {
        setTimeout(resolve);
      }); // lets the page react between two sentences
      const isOutdated = requestId !== latestRequestId;
      if (isOutdated) return;
      const start = performance.now();
      const sentence = translateIfPossible(text);
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
  $("time").textContent = sentences.length
    ? gettext("{count} ms in this browser", { count: formatNumber(Math.round(milliseconds)) })
    : "";
  showSentences(sentences);
}

function splitSentences(line) {
  return line.trim().split(SENTENCE_BOUNDARY).filter(Boolean);
}

function showSentences(sentences) {
  $("inspector").hidden = !sentences.length;
  if (!sentences.length) return;
  const pass = { name: "pass", label: gettext("Pass"), show: (inspector) => showPass(inspector, translator, place) };
  const content = { run: `runs/${MODEL.name}`, languages: MODEL.languages, sentences, tabs: [pass], tab: activeTab };
  showInspector($("inspector"), content, {
    ablate: async ({ source_text }, heads) => translateSentence(source_text, withoutHeads(heads)),
    onTabChange: (name) => {
      activeTab = name;
      updateLink();
    },
  });
  updateLink();
}

// Make the address of the page a link to what it shows.
function updateLink() {
  const options = new URLSearchParams({ text: $("text").value, view: activeTab });
  if (linkOptions.has("lang")) options.set("lang", LANGUAGE);
  if (activeTab === "pass") {
    options.set("step", String(place.step));
    for (const point of place.points) options.append("point", point);
  }
  history.replaceState(null, "", `#${options}`);
}

// A translated sentence; null if it has no letters or is too long for the model, so that it stays as it is.
function translateIfPossible(text) {
  if (!/\p{L}/u.test(text)) return null;
  const { length } = translator.encode(text);
  if (length <= MODEL.longest) return translateSentence(text);
  $("problem").textContent = gettext("A sentence has {length} word pieces; this model takes at most {longest}.", {
    length,
    longest: MODEL.longest,
  });
  return null;
}

// A sentence with its translation, the record of its attention, and the tree of its beam search.
// at: what changes the model, see engine/layers.js.
function translateSentence(text, at = unchanged) {
  const { source, target, search } = translator;
  const ids = translator.encode(text);
  const output = translator.translate(ids, at);
  const inspected = translator.inspect(ids, output.tokens, at);
  const pieces = ids.map((id) => source.pieces[id].replace("<unk>", "⁇"));
  const unknown = [...ids.keys()].filter((i) => ids[i] === UNKNOWN);
  const targetPieces = output.tokens.map((token) => target.pieces[token]);
  const pieceOf = (token) => target.pieces[token];
  const decode = (tokens) => target.decode(tokens);
  return {
    source_text: text,
    text: output.text,
    tokens: output.tokens,
    record: createRecord({ pieces, unknown }, targetPieces, inspected),
    tree: createSearchTree(output, search.beam, pieceOf, decode),
  };
}
