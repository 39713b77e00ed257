// Texts: type, and see the translation; what is to be seen of it is in seeing.js.

import { $, answered, element, post } from "./asking.js";
import { copy, keepHere, keptHere, link, unlink } from "./keeping.js";
import { detecting, first, reverse, restore, reversible, second, show as showLanguages, startLanguages, take } from "./languages.js";
import { startImproving, stopImproving } from "./improving.js";
import { remember } from "./past.js";
import { clearSeeing, leaveSeeing, see, startSeeing } from "./seeing.js";
import { waiting } from "./waiting.js";

const LOOKED = 500; // characters that are looked into
const PAUSE = 250; // milliseconds after the last key
const SAID = 1500; // milliseconds for which it is said that something was copied
const LONG = 400; // characters from which on the letters are smaller
let limit; // characters that are taken
let shown = []; // the answers of /look that are shown, a model each
let turn = 0; // answers that come too late are thrown away
let asking = new AbortController(); // of the questions about this text
let timer;
const work = waiting($("texts"), (text) => { $("status").textContent = text; });

export function startTexts(models, settings) {
  limit = settings.charLimit;
  startLanguages(models, () => { offerExamples(); run(); });
  startSeeing(ask, settings);
  $("seeing").addEventListener("choose", ({ detail }) => choose(detail));
  $("seeing").addEventListener("problem", ({ detail }) => problem(detail));
  $("source").addEventListener("input", () => { unlink(); settle(); later(PAUSE); });
  startImproving(settings, () => ({ ...state(), translation: $("translation").textContent }), said);
  $("key").addEventListener("change", run);
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => put(""));
  $("copy").addEventListener("click", copyTranslation);
  $("copy-link").addEventListener("click", copyLink);
  addEventListener("resize", settle);
  addEventListener("hashchange", () => { if (location.hash.includes("text=")) open(keptHere()); });
  const kept = keptHere();
  const typed = $("source").value; // before this script was there
  if (kept && !typed) open(kept);
  else if (typed) run();
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

export function run() {
  clearTimeout(timer);
  turn += 1;
  leaveSeeing();
  stopImproving();
  asking.abort();
  asking = new AbortController();
  const text = $("source").value;
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
    if (detecting()) {
      const found = await post("detect", { q: text }, asking.signal);
      if (mine !== turn) return;
      take(found);
    }
    if (text.length > LOOKED) {
      await stream(mine, text);
    } else {
      const answers = await Promise.all([first(), second()].filter(Boolean).map((model) => ask("look", model, { q: text })));
      if (mine !== turn) return;
      problem();
      show(text, answers);
    }
  } catch (error) {
    if (mine === turn) failed(error);
  } finally {
    if (mine === turn) work.end();
  }
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
  clear();
  problem(error);
  if (error.gone) later(error.wait);
}

// Show answers of /look: the first model's, and that of the model it is compared with.
function show(text, answers) {
  shown = answers;
  const [answer, other] = answers;
  $("translation").textContent = answer.translation;
  $("compared-translation").textContent = other?.translation ?? "";
  $("status").textContent = "";
  const warnings = answer.sentences.flatMap((sentence) => sentence.warnings ?? []);
  $("warnings").replaceChildren(...[...new Set(warnings)].map((textContent) => element("li", { textContent })));
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

// A long text is translated paragraph by paragraph, each shown when it is there; it is not looked into.
async function stream(mine, text) {
  clear();
  for (const part of text.split(/(\n+)/)) {
    const answer = part.trim() ? (await ask("translate", first(), { q: part })).translatedText : part;
    if (mine !== turn) return;
    $("translation").textContent += answer;
    work.end(); // there is something to read
    $("status").textContent = `A text of more than ${LOOKED} characters is translated, but not looked into.`;
    settle();
  }
  remember({ ...state(), text, translation: $("translation").textContent });
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
