// The page of an exported model: a text, its translation, and what the model did.
//
// MODEL and WebTranslator come from the scripts before this one.

import { recordOf, treeOf } from "./record.js";
import { showSpace } from "./space.js";

const PAUSE = 350; // milliseconds without a key before a text is translated
const SENTENCE = /(?<=[.!?…。！？]["'»”)]*)\s+/u;

const $ = (id) => document.getElementById(id);
const translator = new WebTranslator(MODEL);
const { source, target, search } = translator;
const link = new URLSearchParams(location.hash.slice(1)); // such as index.html#text=I+like+soccer&view=heads
let [latest, timer, mode] = [0, null, link.get("view") ?? "attention"];

if (window !== parent) document.body.classList.add("embedded"); // in a page that has a title of its own
const names = new Intl.DisplayNames(["en"], { type: "language" });
const [from, into] = MODEL.languages;
if (from) $("source-language").textContent = names.of(from);
if (into) $("target-language").textContent = names.of(into);
$("text").lang = from;
$("translation").lang = into;
$("text").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(translate, PAUSE); });
$("ask").addEventListener("submit", (event) => { event.preventDefault(); translate(); });
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); translate(); }
});
$("text").value = link.get("text") ?? "";
if ($("text").value) translate();

// Translate all sentences, and show each as soon as it is there.
async function translate() {
  clearTimeout(timer);
  const request = ++latest; // a newer one ends it
  const lines = $("text").value.split("\n").map((line) => line.trim().split(SENTENCE).filter(Boolean));
  const translations = lines.map(() => []);
  const sentences = [];
  let milliseconds = 0;
  $("problem").textContent = "";
  for (const [number, line] of lines.entries()) {
    for (const text of line) {
      await new Promise((done) => { setTimeout(done); }); // lets the page react between two sentences
      if (request !== latest) return;
      const begun = performance.now();
      const sentence = attempt(text);
      milliseconds += performance.now() - begun;
      if (sentence) sentences.push(sentence);
      translations[number].push(sentence?.text ?? text);
      $("translation").textContent = translations.map((parts) => parts.join(" ")).join("\n").trim();
    }
  }
  if (!lines.flat().length) $("translation").textContent = "";
  $("time").textContent = sentences.length ? `${Math.round(milliseconds)} ms in this browser` : "";
  $("seeing").hidden = !sentences.length;
  if (!sentences.length) return;
  const seen = { run: `runs/${MODEL.name}`, languages: MODEL.languages, sentences, mode };
  showSpace($("seeing"), seen, {
    ablate: async ({ source_text }, off) => translated(source_text, off),
    turned: (name) => { mode = name; },
  });
}

// A translated sentence; null if it stays as it is, because it has no letters or is too long for the model.
function attempt(text) {
  if (!/\p{L}/u.test(text)) return null;
  const { length } = translator.encode(text);
  if (length <= MODEL.longest) return translated(text);
  $("problem").textContent = `A sentence has ${length} pieces of words; this model takes ${MODEL.longest}.`;
  return null;
}

// The translation of one sentence, the record of its attention, and its beam search; without the heads `off`.
function translated(source_text, off = []) {
  const ids = translator.encode(source_text);
  const output = translator.translate(ids, off);
  const pieces = ids.map((id) => source.pieces[id].replace("<unk>", "⁇"));
  const unknown = ids.flatMap((id, i) => (id === UNKNOWN ? [i] : []));
  const targetPieces = output.tokens.map((token) => target.pieces[token]);
  const record = recordOf({ pieces, unknown }, targetPieces, translator.inspect(ids, output.tokens, off));
  const tree = treeOf(output, search.beam, (token) => target.pieces[token], (tokens) => target.decode(tokens));
  return { source_text, text: output.text, record, tree };
}
