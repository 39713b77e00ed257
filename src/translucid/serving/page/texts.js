// Texts: type and read the translation; seeing.js shows attention and explanations.

import { $, answered, asksItself, element, pause, post, waiting } from "./asking.js";
import { hasUnsureWords, markedParts, notes } from "./doubting.js";
import { copy, keepHere, keptHere, link, unlink } from "./keeping.js";
import { DETECT, detecting, first, reverse, restore, reversible, second, show as showLanguages, startLanguages, take } from "./languages.js";
import { startImproving, stopImproving } from "./improving.js";
import { remember } from "./past.js";
import { clearSeeing, leaveSeeing, see, startSeeing } from "./seeing.js";
import { showPivot, viewsOf, withChosen } from "./steps.js";

const LOOKED = 500; // characters up to which attention is shown
const PAUSE = 300; // milliseconds after the last key
const PARTS = [500, 1500, 3000]; // characters per request of a long text: the first part is small, to show it soon
const PARAGRAPHS = 100; // per request
const SAID = 1500; // milliseconds for which "Copied" is shown
const LONG = 400; // characters from which on the font is smaller
let limit; // maximum number of characters
let shown = []; // the responses of /look, one per model
let turn = 0; // late responses are ignored
let asking = new AbortController(); // cancels the requests for this text
let wanted = ""; // the last request: if an edit is undone, no new request is needed
let timer;
const work = waiting($("texts"), (text) => { $("status").textContent = text; });

export function startTexts(models, settings) {
  limit = settings.charLimit;
  startLanguages(models, () => { offerExamples(); run(); });
  startSeeing(ask, settings);
  $("seeing").addEventListener("choose", ({ detail }) => choose(detail));
  $("seeing").addEventListener("problem", ({ detail }) => problem(detail));
  $("source").addEventListener("input", typed);
  startImproving(settings, () => ({ ...state(), translation: $("translation").textContent }), () => { run(); said("Saved in the memory"); });
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => put(""));
  $("copy").addEventListener("click", copyTranslation);
  $("copy-link").addEventListener("click", copyLink);
  addEventListener("resize", settle);
  addEventListener("hashchange", () => { if (location.hash.includes("text=")) open(keptHere()); });
  const kept = keptHere();
  const early = $("source").value; // typed before this script was loaded
  if (kept && !early) open(kept);
  else if (early) run();
  settle();
  examples();
}

// Set the text, and translate it.
export function put(text) {
  $("source").value = text;
  unlink();
  settle();
  if (matchMedia("(hover: none)").matches) $("output").focus({ preventScroll: true }); // no on-screen keyboard over the translation
  else $("source").focus();
  run();
}

// Show the text of a link or of the history.
export function open({ text, ...chosen }) {
  restore(chosen);
  $("source").value = text;
  settle();
  run();
}

// Swap directions: the translation becomes the text.
export function swap() {
  if (!reversible()) return;
  const text = $("translation").textContent;
  reverse();
  if (text) put(text);
  else { settle(); offerExamples(); }
}

export async function copyTranslation() {
  const text = $("translation").textContent;
  if (text) said((await copy(text)) ? "Copied" : "This browser does not allow the page to copy.");
}

export async function copyLink() {
  if ($("source").value.trim()) said((await copy(link(state()))) ? "Link copied" : "This browser does not allow the page to copy.");
}

// While typing: send a request after a pause, unless only spaces at the end have changed.
function typed() {
  unlink();
  settle();
  if (question() === wanted) { clearTimeout(timer); keepHere(state()); return; }
  later($("source").value.trim() ? pause(PAUSE) : PAUSE);
}

// The text, languages and models as one string.
function question() {
  return JSON.stringify([$("source").value.trimEnd(), $("from").value, first(), second()]);
}

export function run() {
  clearTimeout(timer);
  asksItself();
  turn += 1;
  leaveSeeing();
  stopImproving();
  asking.abort();
  asking = new AbortController();
  const text = $("source").value;
  wanted = question();
  keepHere(state());
  $("compared").hidden = !second();
  settle();
  if (!text.trim()) {
    empty();
  } else if (text.length > limit) {
    empty();
    problem(new Error(`The text is ${number(text.length - limit)} characters over the limit of ${number(limit)}.`));
  } else {
    translate(turn, text);
  }
}

async function translate(mine, text) {
  work.begin();
  try {
    if (text.length > LOOKED) {
      await stream(mine, text);
      return;
    }
    const answers = await (detecting() ? found(mine, text) : Promise.all([first(), second()].filter(Boolean).map((model) => ask("look", model, { q: text }))));
    if (mine !== turn) return;
    problem();
    show(text, answers);
  } catch (error) {
    if (mine === turn) failed(error);
  } finally {
    if (mine === turn) work.end();
  }
}

// Detect the language with the same request, then use it for the model to compare with.
async function found(mine, text) {
  const answer = await ask("look", { ...first(), source: DETECT }, { q: text });
  if (mine !== turn) return [];
  take([{ language: answer.source, confidence: answer.detectedLanguage.confidence }]);
  wanted = question();
  return [answer, ...(second() ? [await ask("look", second(), { q: text })] : [])];
}

function ask(path, { source, target, name }, fields) {
  return post(path, { source, target, model: name, ...fields }, asking.signal);
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(run, milliseconds);
}

function state() {
  const { name, source, target } = first();
  return { text: $("source").value, from: source, to: target, model: name };
}

// Remove everything that belongs to another text.
function clear() {
  shown = [];
  clearSeeing();
  $("warnings").replaceChildren();
  for (const id of ["origin", "through", "unsure-note"]) $(id).hidden = true;
  for (const id of ["translation", "compared-translation", "status"]) $(id).textContent = "";
  problem();
  settle();
}

function empty() {
  work.end();
  clear();
  offerExamples();
}

function failed(error) {
  wanted = "";
  clear();
  problem(error);
  if (error.gone) later(error.wait);
}

// Show the responses of /look: the first model's, and the compared one's.
function show(text, answers) {
  shown = answers;
  const [answer, other] = answers;
  $("translation").replaceChildren(...markedParts(answer));
  $("compared-translation").replaceChildren(...(other ? markedParts(other) : []));
  $("status").textContent = "";
  $("warnings").replaceChildren(...notes(answer).map((textContent) => element("li", { textContent })));
  $("unsure-note").hidden = !answers.some(hasUnsureWords);
  showOrigin(answer.sentences.map((one) => one.origin));
  $("seeing").hidden = false; // only visible elements can be measured
  see(text, answers.flatMap((one, i) => viewsOf(one, i ? second() : first(), i)));
  showPivot($("through"), answer.pivot, answer.steps);
  settle();
  remember({ ...state(), text, translation: answer.translation }); // stored after a pause in typing
}

// The user has chosen other translations of one model's sentences: update everything shown for that model.
async function choose({ translations, which, step }) {
  const mine = ++turn;
  const text = $("source").value;
  leaveSeeing();
  work.begin();
  try {
    const answer = await (step === undefined
      ? ask("look", which ? second() : first(), { q: text, translations })
      : withChosen(ask, shown[which], step, translations));
    if (mine !== turn) return;
    problem();
    show(text, shown.with(which, answer));
  } catch (error) {
    if (mine === turn) problem(error);
  } finally {
    if (mine === turn) work.end();
  }
}

// Translate a long text in a few parts, each shown on arrival, without attention.
async function stream(mine, text) {
  clear();
  if (detecting()) {
    const detected = await post("detect", { q: text.slice(0, LOOKED) }, asking.signal);
    if (mine !== turn) return;
    take(detected);
    wanted = question();
  }
  const origins = [];
  for (const part of partsOf(text)) {
    const paragraphs = part.filter((one) => one.trim());
    const answer = paragraphs.length ? await ask("translate", first(), { q: paragraphs, confidence: true }) : null;
    if (mine !== turn) return;
    let i = 0;
    for (const one of part) {
      if (!one.trim()) { $("translation").append(one); continue; }
      const origin = answer.origin?.[i] ?? "model";
      origins.push(origin);
      $("translation").append(...markedParts({ translation: answer.translatedText[i], sentences: [{ text: answer.translatedText[i], pieces: [], origin, confidence: answer.confidence?.[i] }] }));
      i += 1;
    }
    work.end(); // the first part is readable
    showPivot($("through"), first().pivot);
    $("status").textContent = `Attention is shown for texts of up to ${LOOKED} characters.`;
    showOrigin(origins);
    settle();
  }
  remember({ ...state(), text, translation: $("translation").textContent });
}

// Paragraphs and the line breaks between them, in parts of increasing size.
function partsOf(text) {
  const parts = [[]];
  let size = 0;
  for (const one of text.split(/(\n+)/)) {
    const most = PARTS[Math.min(parts.length, PARTS.length) - 1];
    if (size && (size + one.length > most || parts.at(-1).length >= 2 * PARAGRAPHS)) { parts.push([]); size = 0; }
    parts.at(-1).push(one);
    size += one.length;
  }
  return parts;
}

// Show whether text comes from the memory.
function showOrigin(origins) {
  const whole = origins.every((one) => one === "memory");
  $("origin").hidden = !origins.some((one) => one === "memory" || one === "mixed");
  $("origin").textContent = whole ? "From the translation memory" : "Partly from the translation memory";
}

function problem(error) {
  $("problem").textContent = error ? error.message : "";
}

function said(text) {
  $("said").textContent = text;
  setTimeout(() => { $("said").textContent = ""; }, SAID);
}

function number(value) {
  return value.toLocaleString("en");
}

// Update what depends on the text: counter, buttons, direction, and the common height of both panes.
function settle() {
  const { value } = $("source");
  $("count").textContent = `${number(value.length)} of ${number(limit)}`;
  $("count").classList.toggle("over", value.length > limit);
  $("clear").hidden = !value;
  $("seeing").hidden = !shown.length;
  for (const id of ["copy", "improve"]) $(id).disabled = !$("translation").textContent;
  $("copy-link").disabled = !value.trim();
  $("source").dir = value.trim() ? "auto" : $("source-pane").dir;
  $("translation").dir = $("translation").textContent ? "auto" : $("target-pane").dir;
  $("texts").classList.toggle("long", value.length > LONG);
  $("examples").hidden = Boolean(value) || !$("sentences").children.length;
  $("source").style.height = "0";
  const high = $("source").scrollHeight;
  $("source").style.height = "";
  const { style } = document.querySelector(".panes");
  style.setProperty("--high", `${Math.ceil(1.2 * high)}px`);
  style.setProperty("--answers", `${Math.ceil($("compared").hidden ? 1.2 * high : 2.2 * high + 80)}px`); // two translations, and their names
}

const sentences = new Map(); // by model

async function examples() {
  try {
    for (const [name, texts] of Object.entries(await answered(fetch("examples")))) sentences.set(name, texts);
    offerExamples();
  } catch { /* examples are optional */ }
}

// Example sentences of the model to click.
function offerExamples() {
  const { name, source } = first();
  const items = (sentences.get(name) ?? []).map((text) => {
    const button = element("button", { type: "button", textContent: text, lang: source, dir: "auto" });
    button.addEventListener("click", () => put(text));
    const item = element("li", {});
    item.append(button);
    return item;
  });
  $("sentences").replaceChildren(...items);
  $("examples").hidden = Boolean($("source").value) || !items.length;
  showLanguages();
}
