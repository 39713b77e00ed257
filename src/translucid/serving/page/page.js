// The page: type, and see the translation; what is to be seen of it is in seeing.js.

import { $, RETRY, answered, element, option } from "./asking.js";
import { startDocuments } from "./documents.js";
import { startImages } from "./images.js";
import { startJudging } from "./judging.js";
import { clearSeeing, leaveSeeing, see, startSeeing } from "./seeing.js";

const LOOKED = 500; // characters that are looked into
let models = []; // that translate
let shown = []; // the answers of /look that are shown, a model each
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
  startSeeing(ask, settings);
  $("seeing").addEventListener("choose", ({ detail }) => choose(detail.translations));
  $("seeing").addEventListener("problem", ({ detail }) => problem(detail));
  offer();
  $("source").addEventListener("input", () => { later(250); count(settings.charLimit); });
  for (const id of ["model", "other", "from", "to", "key"]) $(id).addEventListener("change", () => { offer(); run(); });
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
  leaveSeeing();
  document.body.classList.add("busy");
  try {
    if (text.length > LOOKED) return await stream(mine, text);
    const answers = await Promise.all([first(), other].filter(Boolean).map((model) => ask("look", model, { q: text })));
    if (mine !== turn) return;
    clear();
    if (other) $("compared-translation").textContent = answers[1].translation;
    show(text, answers);
  } catch (error) {
    if (mine === turn) failed(error);
  } finally {
    if (mine === turn) document.body.classList.remove("busy");
  }
}

// Nothing that belongs to another text stays beside a new one.
function clear() {
  clearSeeing();
  $("warnings").replaceChildren();
  for (const id of ["translation", "compared-translation", "status"]) $(id).textContent = "";
  problem();
}

function failed(error) {
  clear();
  problem(error);
  if (error.gone) later(RETRY);
}

// Show answers of /look: the first model's, and that of the model it is compared with.
function show(text, answers) {
  shown = answers;
  const [answer] = answers;
  $("translation").textContent = answer.translation;
  see(text, answers.map((one, i) => ({ answer: one, model: i ? second() : first() })));
  const warnings = answer.sentences.flatMap((sentence) => sentence.warnings ?? []);
  $("warnings").replaceChildren(...[...new Set(warnings)].map((textContent) => element("li", { textContent })));
}

// Another translation was chosen, sentence by sentence: all that is shown is of it then.
async function choose(translations) {
  const mine = ++turn;
  const text = $("source").value;
  leaveSeeing();
  try {
    const answer = await ask("look", first(), { q: text, translations });
    if (mine !== turn) return;
    problem();
    show(text, [answer, ...shown.slice(1)]);
  } catch (error) {
    if (mine === turn) problem(error);
  }
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
