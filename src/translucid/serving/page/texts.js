// Texts: type, and see the translation; what is to be seen of it is in seeing.js.

import { $, answered, asksItself, element, pause, post } from "./asking.js";
import { hasUnsureWords, markedParts, notes } from "./doubting.js";
import { copy, keepHere, keptHere, link, unlink } from "./keeping.js";
import { DETECT, detecting, first, reverse, restore, reversible, second, show as showLanguages, startLanguages, take } from "./languages.js";
import { startImproving, stopImproving } from "./improving.js";
import { remember } from "./past.js";
import { clearSeeing, leaveSeeing, see, startSeeing } from "./seeing.js";
import { waiting } from "./waiting.js";

const LOOKED = 500; // characters that are looked into
const PAUSE = 300; // milliseconds after the last key
const PARTS = [500, 1500, 3000]; // characters of a long text that are translated together: the first part soon, the others in few requests
const PARAGRAPHS = 100; // in a part
const SAID = 1500; // milliseconds for which it is said that something was copied
const LONG = 400; // characters from which on the letters are smaller
let limit; // characters that are taken
let shown = []; // the answers of /look that are shown, a model each
let turn = 0; // answers that come too late are thrown away
let asking = new AbortController(); // of the questions about this text
let wanted = ""; // what was asked for last: a text that is typed back to it needs no new question
let timer;
const work = waiting($("texts"), (text) => { $("status").textContent = text; });

export function startTexts(models, settings) {
  limit = settings.charLimit;
  startLanguages(models, () => { offerExamples(); run(); });
  startSeeing(ask, settings);
  $("seeing").addEventListener("choose", ({ detail }) => choose(detail));
  $("seeing").addEventListener("problem", ({ detail }) => problem(detail));
  $("source").addEventListener("input", typed);
  startImproving(settings, () => ({ ...state(), translation: $("translation").textContent }), () => { run(); said("Kept in the memory"); });
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => put(""));
  $("copy").addEventListener("click", copyTranslation);
  $("copy-link").addEventListener("click", copyLink);
  addEventListener("resize", settle);
  addEventListener("hashchange", () => { if (location.hash.includes("text=")) open(keptHere()); });
  const kept = keptHere();
  const early = $("source").value; // typed before this script was there
  if (kept && !early) open(kept);
  else if (early) run();
  settle();
  examples();
}

// Put a text into the pane, and translate it.
export function put(text) {
  $("source").value = text;
  unlink();
  settle();
  if (matchMedia("(hover: none)").matches) $("output").focus({ preventScroll: true }); // no keyboard over the answer
  else $("source").focus();
  run();
}

// Show what a link or the history holds.
export function open({ text, ...chosen }) {
  restore(chosen);
  $("source").value = text;
  settle();
  run();
}

// The other way round: the translation is the text then.
export function swap() {
  if (!reversible()) return;
  const text = $("translation").textContent;
  reverse();
  if (text) put(text);
  else { settle(); offerExamples(); }
}

export async function copyTranslation() {
  const text = $("translation").textContent;
  if (text) said((await copy(text)) ? "Copied" : "This browser does not let the page copy.");
}

export async function copyLink() {
  if ($("source").value.trim()) said((await copy(link(state()))) ? "Link copied" : "This browser does not let the page copy.");
}

// While somebody types: ask after a pause, and only if the text is another one but for spaces at its end.
function typed() {
  unlink();
  settle();
  if (question() === wanted) { clearTimeout(timer); keepHere(state()); return; }
  later($("source").value.trim() ? pause(PAUSE) : PAUSE);
}

// The text and what it is translated with, as one text.
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

// Have the language found out by the same question, and ask the model that is compared with about it then.
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

// Nothing that belongs to another text stays beside a new one.
function clear() {
  shown = [];
  clearSeeing();
  $("warnings").replaceChildren();
  for (const id of ["origin", "unsure-note"]) $(id).hidden = true;
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

// Show answers of /look: the first model's, and that of the model it is compared with.
function show(text, answers) {
  shown = answers;
  const [answer, other] = answers;
  $("translation").replaceChildren(...markedParts(answer));
  $("compared-translation").replaceChildren(...(other ? markedParts(other) : []));
  $("status").textContent = "";
  $("warnings").replaceChildren(...notes(answer).map((textContent) => element("li", { textContent })));
  $("unsure-note").hidden = !answers.some(hasUnsureWords);
  showOrigin(answer.sentences.map((one) => one.origin));
  $("seeing").hidden = false; // a view that is measured has to be there
  see(text, answers.map((one, i) => ({ answer: one, model: i ? second() : first() })));
  settle();
  remember({ ...state(), text, translation: answer.translation }); // while somebody types on
}

// Another translation of one of the models was chosen, sentence by sentence: all that is shown of that model is of it then.
async function choose({ translations, which }) {
  const mine = ++turn;
  const text = $("source").value;
  leaveSeeing();
  work.begin();
  try {
    const answer = await ask("look", which ? second() : first(), { q: text, translations });
    if (mine !== turn) return;
    problem();
    show(text, shown.with(which, answer));
  } catch (error) {
    if (mine === turn) problem(error);
  } finally {
    if (mine === turn) work.end();
  }
}

// A long text is translated in a few parts, each shown when it is there; it is not looked into.
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
    work.end(); // there is something to read
    $("status").textContent = `A text of more than ${LOOKED} characters is translated, but not looked into.`;
    showOrigin(origins);
    settle();
  }
  remember({ ...state(), text, translation: $("translation").textContent });
}

// Paragraphs and the line ends between them, in parts that grow.
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

// Say what comes from the memory.
function showOrigin(origins) {
  const whole = origins.every((one) => one === "memory");
  $("origin").hidden = !origins.some((one) => one === "memory" || one === "mixed");
  $("origin").textContent = whole ? "From the translation memory" : "In part from the translation memory";
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

// What depends on the text as it stands: counter, buttons, direction, and the height of both panes, which is the same.
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
  style.setProperty("--answers", `${Math.ceil($("compared").hidden ? 1.2 * high : 2.2 * high + 80)}px`); // two, and their names
}

const sentences = new Map(); // of each model

async function examples() {
  try {
    for (const [name, texts] of Object.entries(await answered(fetch("examples")))) sentences.set(name, texts);
    offerExamples();
  } catch { /* there are none then */ }
}

// Sentences of the model's own to click.
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
