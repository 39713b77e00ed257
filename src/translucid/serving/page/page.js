// The page: type, see the translation, where the model looked, what else it could have said, and why it said so.

import { $, RETRY, answered, element, option, wayButton } from "./asking.js";
import { showAttention } from "./attention.js";
import { startDocuments } from "./documents.js";
import { startImages } from "./images.js";
import { startJudging } from "./judging.js";

const LOOKED = 500; // characters that are looked into
const PANELS = ["attention", "compared-attention", "words", "ways", "explanation", "warnings", "trees"];
let models = []; // that translate
let shown = null; // the last answer of /look, of the first model
let turn = 0; // answers that come too late are thrown away
let timer;

start();

async function start() {
  let all, settings;
  try {
    [all, settings] = await Promise.all(["models", "frontend/settings"].map((path) => answered(fetch(path))));
  } catch (error) {
    problem(error);
    setTimeout(start, RETRY);
    return;
  }
  problem();
  document.querySelector(".key").hidden = !settings.apiKeys;
  models = all.filter((one) => one.reads === "text");
  const captioners = all.filter((one) => one.reads === "images");
  if (models.length) startTexts(settings);
  if (models.length) startDocuments(settings, first, () => turnTo("documents"));
  if (captioners.length) startImages(captioners, () => turnTo("images"), !models.length);
  const [classifiers, generators] = ["texts", "prompts"].map((kind) => all.filter((one) => one.reads === kind));
  const judging = [...classifiers, ...generators];
  if (judging.length) startJudging(classifiers, generators, settings);
  const there = { texts: models, documents: models, images: captioners, judging };
  const kinds = Object.keys(there).filter((kind) => there[kind].length);
  for (const kind of Object.keys(there)) $(`on-${kind}`).hidden = !kinds.includes(kind);
  $("kinds").hidden = kinds.length < 2;
  for (const kind of kinds) $(`on-${kind}`).addEventListener("click", () => turnTo(kind));
  turnTo(kinds.find((kind) => location.hash === `#${kind}`) ?? kinds[0]);
}

// Show the part of the page for translation, for images, or for texts that are judged and gone on with.
function turnTo(kind) {
  for (const one of ["texts", "documents", "images", "judging"]) {
    $(one).hidden = one !== kind;
    $(`on-${one}`).setAttribute("aria-pressed", one === kind);
  }
  for (const one of ["texts", "images", "judging"]) $(`for-${one}`).hidden = one !== (kind === "documents" ? "texts" : kind);
  $("for-comparing").hidden = kind === "documents" || models.length < 2;
  const what = { texts: "translation", documents: "translation", images: "captions", judging: "models" }[kind];
  document.querySelector("h1 span").textContent = `${what} you can see through`;
  history.replaceState(null, "", kind === "texts" ? location.pathname + location.search : `#${kind}`);
}

function startTexts(settings) {
  for (const [i, one] of models.entries()) {
    const side = (codes) => (codes.length === 1 ? codes[0] : `${codes.length} languages`);
    const text = `${one.name} (${side(one.sources)} → ${side(one.targets)})`;
    $("model").append(option(i, text));
    $("other").append(option(i, text));
  }
  // Only the ways to explain that the server has.
  for (const way of $("method").querySelectorAll("option")) if (!settings.explanations.includes(way.value)) way.remove();
  offer();
  $("source").addEventListener("input", () => { later(250); count(settings.charLimit); });
  for (const id of ["model", "other", "from", "to", "key"]) $(id).addEventListener("change", () => { offer(); run(); });
  $("explain").addEventListener("click", explain);
  $("search").addEventListener("toggle", trees);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", trees);
  count(settings.charLimit);
  if ($("source").value) run();
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(run, milliseconds);
}

function first() {
  return between(models[Number($("model").value)]);
}

function second() {
  return $("other").value === "" ? null : between(models[Number($("other").value)]);
}

// A model with the languages that are chosen, or with its first ones where it does not have those.
function between({ name, sources, targets }) {
  const [from, to] = [$("from").value, $("to").value];
  const source = sources.includes(from) ? from : sources[0];
  return { name, source, target: targets.includes(to) ? to : targets.find((code) => code !== source) ?? targets[0] };
}

const names = new Intl.DisplayNames(["en"], { type: "language" });

function say(code) {
  try { return names.of(code); } catch { return code; }
}

// Offer the languages of the model by name, if it has many; what was chosen stays.
function offer() {
  const { sources, targets } = models[Number($("model").value)];
  const { source, target } = first();
  for (const [id, codes, chosen] of [["from", sources, source], ["to", targets, target]]) {
    const offered = codes.length > 1 ? codes : [];
    const sorted = offered.map((code) => [say(code), code]).sort(([a], [b]) => a.localeCompare(b, "en"));
    $(id).replaceChildren(...sorted.map(([text, code]) => option(code, text)));
    $(id).value = chosen;
    $(id).parentElement.hidden = !offered.length;
  }
  name();
}

// Say the languages and, where two models are compared, whose each panel is.
function name() {
  const one = first();
  $("source-language").textContent = say(one.source);
  $("target-language").textContent = say(one.target);
  $("source").lang = one.source;
  $("translation").lang = one.target;
  const other = second();
  for (const place of document.querySelectorAll("h2 .of, #attention-of")) place.textContent = other ? one.name : "";
  $("compared-of").textContent = other ? other.name : "";
  if (!other) return;
  $("target-language").textContent += ` (${one.name})`;
  $("compared-name").textContent = `${say(other.target)} (${other.name})`;
  $("compared-translation").lang = other.target;
}

function count(limit) {
  $("count").textContent = `${$("source").value.length.toLocaleString("en")} of ${limit.toLocaleString("en")} characters`;
}

function ask(path, model, fields) {
  const body = { source: model.source, target: model.target, model: model.name, ...fields };
  if ($("key").value) body.api_key = $("key").value;
  return answered(fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

async function run() {
  clearTimeout(timer);
  const mine = ++turn;
  const text = $("source").value;
  const other = second();
  $("compared").hidden = !other;
  $("search").open = false;
  document.body.classList.add("busy");
  try {
    if (text.length > LOOKED) return await stream(mine, text);
    const answers = await Promise.all([first(), other].filter(Boolean).map((model) => ask("look", model, { q: text })));
    if (mine !== turn) return;
    clear();
    show(answers[0]);
    if (other) {
      $("compared-translation").textContent = answers[1].translation;
      attention($("compared-attention"), answers[1], other);
    }
  } catch (error) {
    if (mine === turn) failed(error);
  } finally {
    if (mine === turn) document.body.classList.remove("busy");
  }
}

// Nothing that belongs to another text stays beside a new one.
function clear() {
  shown = null;
  for (const id of PANELS) $(id).replaceChildren();
  for (const id of ["translation", "compared-translation", "status"]) $(id).textContent = "";
  problem();
}

function failed(error) {
  clear();
  problem(error);
  if (error.gone) later(RETRY);
}

function show(answer) {
  shown = answer;
  $("translation").textContent = answer.translation;
  attention($("attention"), answer, first());
  words();
  const warnings = answer.sentences.flatMap((sentence) => sentence.warnings ?? []);
  $("warnings").replaceChildren(...[...new Set(warnings)].map((textContent) => element("li", { textContent })));
}

// A long text is translated paragraph by paragraph, each shown when it is there; it is not looked into.
async function stream(mine, text) {
  clear();
  $("status").textContent = `A text of more than ${LOOKED} characters is translated, but not looked into.`;
  for (const part of text.split(/(\n+)/)) {
    const answer = part.trim() ? (await ask("translate", first(), { q: part })).translatedText : part;
    if (mine !== turn) return;
    $("translation").textContent += answer;
  }
}

function problem(error) {
  $("problem").textContent = error ? error.message : "";
}

function attention(place, answer, model) {
  place.replaceChildren();
  for (const piece of answer.sentences.flatMap((sentence) => sentence.pieces)) {
    if (!piece.maps) { place.textContent = "This model has no attention: one vector is all that it knows of the source."; return; }
    const part = document.createElement("section");
    place.append(part);
    showAttention(part, { ...piece, languages: [model.source, model.target] });
  }
}

// The words of the translation as buttons; each asks for the likeliest ways to go on from there.
function words() {
  for (const id of ["words", "ways", "explanation"]) $(id).replaceChildren();
  for (const sentence of shown.sentences) {
    if (sentence.pieces.length !== 1 || !sentence.pieces[0].maps) continue;
    const [piece] = sentence.pieces;
    const line = element("p", { className: "words", dir: "auto", lang: first().target });
    piece.target.forEach((text, w) => {
      const button = element("button", { type: "button", className: "word alternative", textContent: text });
      button.setAttribute("aria-label", `ways to go on at ${text}`);
      button.addEventListener("click", () => ways(sentence, piece.tokens.slice(0, w).flat(), button));
      line.append(button, " ");
    });
    $("words").append(line);
  }
}

async function ways(sentence, prefix, button) {
  const mine = turn;
  try {
    const found = await ask("continue", first(), { q: sentence.source_text, prefix });
    if (mine !== turn) return;
    document.querySelectorAll(".word.chosen").forEach((word) => word.classList.remove("chosen"));
    button.classList.add("chosen");
    $("ways").replaceChildren(...found.map((way) => choice(sentence, way)));
    problem();
  } catch (error) {
    if (mine === turn) problem(error);
  }
}

function choice(sentence, way) {
  return wayButton(Math.exp(way.probability), way.next, way.text, first().target, () => choose(sentence, way.text));
}

// Another way was chosen: every panel is of the new translation then.
async function choose(sentence, text) {
  const mine = ++turn;
  const translations = shown.sentences.map((one) => (one === sentence ? text : one.text));
  try {
    const answer = await ask("look", first(), { q: $("source").value, translations });
    if (mine !== turn) return;
    problem();
    show(answer);
  } catch (error) {
    if (mine === turn) problem(error);
  }
}

async function trees() {
  const mine = turn;
  const text = $("source").value;
  $("trees").replaceChildren();
  if (!$("search").open || !text.trim()) return;
  $("trees").textContent = "…";
  try {
    const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const answer = await ask("beam", first(), { q: text, theme });
    if (mine !== turn) return;
    $("trees").replaceChildren(...answer.trees.map((svg) => element("img", {
      src: `data:image/svg+xml,${encodeURIComponent(svg)}`,
      alt: "The tree of the beam search: each word with its probability, the best path marked",
    })));
  } catch (error) {
    $("trees").textContent = "";
    if (mine === turn) problem(error);
  }
}

async function explain() {
  const mine = turn;
  if (!shown || !shown.sentences.length) return;
  $("explanation").textContent = "…";
  try {
    const translations = shown.sentences.map((one) => one.text);
    const whole = shown.sentences.every((one) => one.pieces.length === 1) ? { translations } : {};
    const answer = await ask("look", first(), { q: $("source").value, explain: $("method").value, ...whole });
    if (mine !== turn) return;
    $("explanation").replaceChildren();
    for (const { explanation } of answer.sentences) {
      if (!explanation) continue;
      const largest = Math.max(...explanation.importance.flat().map(Math.abs), 1e-9);
      const weights = explanation.importance.map((row) => row.map((x) => Math.max(x, 0) / largest));
      const part = document.createElement("section");
      const { faithfulness: ours, random } = explanation;
      const note = document.createElement("p");
      note.className = "hint";
      note.textContent =
        `Left out, the word that matters most takes ${ours.comprehensiveness.toFixed(2)} nats from the translated word's ` +
        `log-probability (a random word: ${random.comprehensiveness.toFixed(2)}); kept alone, it leaves ${ours.sufficiency.toFixed(2)} missing.`;
      $("explanation").append(part, note);
      const { source, target } = first();
      const record = { source: explanation.source, target: explanation.target, maps: [{ name: explanation.method, weights }] };
      showAttention(part, { ...record, verbs: ["depends on", "matters to"], languages: [source, target] });
    }
  } catch (error) {
    if (mine !== turn) return;
    $("explanation").textContent = "";
    problem(error);
  }
}
