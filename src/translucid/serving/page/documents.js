// Documents: upload one, view its segments side by side, edit and accept them, download it.
//
// The server stores the document and accepted segments; this browser stores edits until they are accepted.

import { $, answered, element, RETRY, waiting } from "./asking.js";
import { startAccepting } from "./accepting.js";
import { SURE } from "./doubting.js";
import { forgetHints, showHints } from "./hints.js";
import { withKey } from "./key.js";
import { store, stored } from "./keeping.js";

const SOON = 100, POLL = 1000; // milliseconds between requests for the progress: at first, and at most
const ROWS = 50; // segments shown at once
const LATEST = 10; // remembered documents
const LIST = "translucid.documents", DRAFTS = "translucid.drafts.";
let between; // the chosen model and languages
let shown = null; // the server's record of the document
let rows = []; // the segments that are shown
let before = []; // starts of previous pages: the first segment, and the number shown before it
let [first, passed] = [0, 0]; // start of this page
let wanted = [0, []]; // the page requested last: its start, and the previous pages
let pages = 0; // requested so far; only the response to the last request counts
let turn = 0; // late responses are ignored
let timer;
const work = waiting($("documents"), (text) => { $("document-problem").textContent = text; });

// Set up; `chosen` returns the model and the languages.
export function startDocuments(settings, chosen) {
  between = chosen;
  $("document-file").accept = settings.supportedFilesFormat.join();
  $("document-kinds").textContent = settings.supportedFilesFormat.join(" ");
  $("document-file").addEventListener("change", () => {
    if ($("document-file").files.length) takeDocument($("document-file").files[0]);
    $("document-file").value = "";
  });
  $("document-forget").addEventListener("click", forget);
  $("document-doubtful").addEventListener("change", async () => { await refresh(); page(0, []); });
  $("rows-after").addEventListener("click", () => page(rows.at(-1).number + 1, [...before, [first, passed]]));
  $("rows-before").addEventListener("click", () => page(before.at(-1)[0], before.slice(0, -1)));
  startAccepting({ document: () => shown, drafts, keepDrafts, ask, refresh, again: () => page(...wanted), problem });
  $("rows").addEventListener("focusin", ({ target }) => { if (target.tagName === "TEXTAREA") help(target); });
  $("rows").addEventListener("keydown", key);
  $("rows").addEventListener("input", ({ target }) => { keep(row(target), target.value); grow(target); });
  const [latest] = remembered();
  if (latest) open(latest.id);
  list();
}

function remembered() {
  return stored(LIST, []);
}

function remember(told) {
  const others = remembered().filter((one) => one.id !== told.id);
  for (const old of others.slice(LATEST - 1)) store(DRAFTS + old.id, {}, true);
  store(LIST, [{ id: told.id, name: told.name }, ...others].slice(0, LATEST));
  list();
}

function lose(id) {
  store(DRAFTS + id, {}, true);
  store(LIST, remembered().filter((one) => one.id !== id));
  list();
}

// Recent documents, latest first.
function list() {
  $("document-list").replaceChildren(...remembered().map(({ id, name }) => {
    const button = element("button", { type: "button", textContent: name });
    button.setAttribute("aria-pressed", id === shown?.id);
    button.addEventListener("click", () => open(id));
    const item = element("li", {});
    item.append(button);
    return item;
  }));
}

function ask(path, method = "GET", fields = null) {
  const sent = fields ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(withKey(fields)) } : {};
  return answered(fetch(`documents/${path}`, { method, ...sent }));
}

// Upload a document, and open it.
export async function takeDocument(file) {
  const mine = ++turn;
  clear();
  const { name, source, target } = between();
  const form = new FormData();
  for (const [field, value] of Object.entries(withKey({ model: name, source, target }))) form.append(field, value);
  form.append("file", file, file.name);
  work.begin();
  try {
    const told = await answered(fetch("documents", { method: "POST", body: form }));
    remember(told);
    if (mine === turn) await open(told.id);
  } catch (error) {
    if (mine === turn) problem(error);
  } finally {
    work.end();
  }
}

function clear() {
  clearTimeout(timer);
  shown = null;
  [rows, before, first, passed, wanted] = [[], [], 0, 0, [0, []]];
  forgetHints();
  $("rows").replaceChildren();
  $("rows-before").disabled = $("rows-after").disabled = true;
  $("document").hidden = true;
  problem();
}

async function open(id) {
  const mine = ++turn;
  clear();
  try {
    const told = await ask(id);
    if (mine !== turn) return;
    tell(told);
    list();
    await follow(mine);
  } catch (error) {
    if (mine !== turn) return;
    problem(error);
    if (error.gone) timer = setTimeout(() => open(id), RETRY);
    else lose(id); // the server does not have it
  }
}

// Show the progress until the document is done, and its segments as they arrive. Short documents are done at once, so
// the first requests come soon after each other.
async function follow(mine, wait = SOON) {
  if (shown.segments && (!rows.length || rows.some((one) => one.target === null))) await page(...wanted);
  if (mine !== turn || !["waiting", "translating"].includes(shown.state)) return;
  timer = setTimeout(async () => {
    try {
      const told = await ask(shown.id);
      if (mine !== turn) return;
      tell(told);
      await follow(mine, Math.min(1.5 * wait, POLL));
    } catch (error) {
      if (mine !== turn) return;
      problem(error);
      if (error.gone) timer = setTimeout(() => { problem(); follow(mine); }, RETRY);
    }
  }, wait);
}

function tell(told) {
  shown = told;
  const { state, done, segments, seconds_left: left } = told;
  const time = left ? `, ${left < 90 ? `${Math.ceil(left)} seconds` : `${Math.ceil(left / 60)} minutes`} left` : "";
  const said = {
    waiting: "Waiting for other documents.",
    translating: `${many(done)} of ${many(segments)} segments${time}`,
    done: segments ? `${many(told.accepted)} of ${many(segments)} segments accepted` : "It contains no text to translate.",
  };
  const working = ["waiting", "translating"].includes(state);
  $("document").hidden = false;
  $("document-name").textContent = `${told.name} (${told.kind})`;
  $("document-state").textContent = said[state] ?? told.error;
  $("document-state").classList.toggle("problem", !(state in said));
  $("document-progress").hidden = !(working || (state === "done" && segments));
  $("document-progress").value = segments ? (working ? done : told.accepted) / segments : 0;
  $("editor").hidden = !segments || !(state in said); // an unreadable file has nothing to edit
  $("accept-all").hidden = state !== "done" || told.accepted >= segments;
  if (!(state in said)) lose(told.id); // nothing to reopen later
  $("document-download").hidden = state !== "done";
  $("document-download").href = `documents/${told.id}/result`;
  $("document-forget").textContent = working ? "Cancel" : "Delete";
}

function many(value) {
  return value.toLocaleString("en");
}

// Fetch the numbers of accepted segments and of segments to check; return whether that worked.
async function refresh() {
  const mine = turn;
  try {
    const told = await ask(shown.id);
    if (mine === turn) tell(told);
    return mine === turn;
  } catch (error) {
    if (mine === turn) problem(error);
    return false;
  }
}

async function forget() {
  const { id } = shown;
  turn++;
  clearTimeout(timer); // or it would ask for the progress of what is being deleted
  try {
    await ask(id, "DELETE");
  } catch (error) {
    if (error.gone) return problem(error);
  }
  lose(id);
  clear();
  list();
  $("document-file").focus();
}

// Show the segments from an index on; `earlier` has the starts of the previous pages.
async function page(from, earlier) {
  const mine = turn;
  const number = ++pages;
  wanted = [from, earlier];
  const only = $("document-doubtful").checked ? "&doubtful=1" : "";
  try {
    const found = await ask(`${shown.id}/segments?first=${from}&count=${ROWS}${only}`);
    if (mine !== turn || number !== pages) return;
    const turned = from !== first || found.length !== rows.length;
    const back = from === first ? passed : before.find(([one]) => one === from)?.[1];
    passed = earlier.length ? (back ?? passed + rows.length) : 0;
    [rows, first, before] = [found, from, earlier];
    show(turned);
  } catch (error) {
    if (mine === turn) problem(error);
  }
}

function show(turned) {
  const focused = document.activeElement?.closest("#rows li")?.dataset.number;
  const place = document.activeElement?.selectionStart;
  $("rows").replaceChildren(...rows.map(item));
  for (const area of $("rows").querySelectorAll("textarea")) grow(area);
  $("rows-before").disabled = !before.length;
  const left = document.activeElement; // a disabled button loses the focus
  const all = $("document-doubtful").checked ? Math.max(shown.doubtful, passed + rows.length) : shown.segments;
  $("rows-after").disabled = !rows.length || passed + rows.length >= all;
  if (left?.disabled) (left === $("rows-after") ? $("rows-before") : $("rows-after")).focus();
  const numbers = rows.length ? `${passed + 1} to ${passed + rows.length}` : "none";
  const which = $("document-doubtful").checked ? " to check" : "";
  $("rows-shown").textContent = `${numbers} of ${many(all)}${which}`;
  const area = $("rows").querySelector(`[data-number="${focused}"] textarea`);
  if (area) {
    area.focus();
    if (!turned) area.setSelectionRange(place, place);
  }
}

function item(one) {
  const draft = drafts()[one.number];
  const line = element("li", { className: marks(one, draft) });
  line.dataset.number = one.number;
  const about = element("p", { className: "hint", textContent: `${one.number + 1} · ${one.place}`, title: one.note ?? "" });
  if (one.confidence !== null) {
    const title = `confidence ${Math.round(100 * one.confidence)} %`;
    about.append(" ", element("meter", { value: one.confidence, min: 0, max: 1, low: SURE, high: SURE, optimum: 1, title }));
  }
  if (one.origin && one.origin !== "model") about.append(` · ${{ memory: "from the memory", person: "edited by a person" }[one.origin]}`);
  const source = element("p", { className: "output", dir: "auto", lang: shown.source ?? "" });
  source.append(...tagged(one));
  const area = element("textarea", {
    value: draft ?? one.target ?? one.existing ?? "", rows: 1, dir: "auto", lang: shown.target,
    disabled: one.target === null && one.existing === null, spellcheck: true,
  });
  area.setAttribute("aria-label", `translation of ${one.place}`);
  const doubts = element("p", { className: "doubts", textContent: one.doubts.map((doubt) => `⚠ ${doubt}`).join("\n") });
  const hints = element("div", { className: "hints", role: "group", ariaLabel: "matches from the memory, and terms" });
  const wrong = element("p", { className: "problem", role: "alert" });
  line.append(about, source, area, hints, doubts, wrong);
  return line;
}

function inDoubt(one) {
  return !one.accepted && (one.doubts.length > 0 || (one.confidence !== null && one.confidence < SURE));
}

function marks(one, draft) {
  return [one.accepted && "accepted", draft !== undefined && "draft", inDoubt(one) && "doubtful"].filter(Boolean).join(" ");
}

// The source with its tag placeholders as elements, whose titles show the tags.
function tagged({ source, tags }) {
  return source.split(/(⟨\/?\d+\/?⟩)/).map((part) =>
    part in tags ? element("code", { className: "tag", textContent: part, title: tags[part] }) : part);
}

function row(area) {
  const { number } = area.closest("li").dataset;
  return rows.find((one) => one.number === Number(number));
}

// Show hints for the focused segment only.
function help(area) {
  const line = area.closest("li");
  for (const other of $("rows").querySelectorAll(".hints")) if (!line.contains(other)) other.replaceChildren();
  const insert = (text, whole) => {
    area.focus();
    if (whole) area.select();
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  showHints(line.querySelector(".hints"), `${shown.id}/segments/${line.dataset.number}/hints`, ask, insert);
}

function drafts() {
  return stored(DRAFTS + shown.id, {});
}

function keepDrafts(all) {
  store(DRAFTS + shown.id, all, !Object.keys(all).length);
}

// Store an edit in this browser until it is accepted.
function keep(one, text) {
  const all = drafts();
  if (text === undefined || text === (one.target ?? one.existing)) delete all[one.number];
  else all[one.number] = text;
  keepDrafts(all);
  $("rows").querySelector(`[data-number="${one.number}"]`).className = marks(one, all[one.number]);
}

function grow(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

function key(event) {
  const area = event.target;
  if (area.tagName !== "TEXTAREA" || event.isComposing) return;
  const { key: name } = event;
  const { value, selectionStart: start, selectionEnd: end } = area;
  if (name === "Enter" && !event.shiftKey) {
    event.preventDefault();
    accept(area);
  } else if (name === "Escape") {
    area.value = row(area).target ?? row(area).existing ?? "";
    keep(row(area));
    grow(area);
  } else if (name === "ArrowDown" && start === end && !value.slice(end).includes("\n")) {
    if (go(area, 1)) event.preventDefault();
  } else if (name === "ArrowUp" && start === end && !value.slice(0, start).includes("\n")) {
    if (go(area, -1)) event.preventDefault();
  }
}

// Move to the next or previous segment; return whether there is one on this page.
function go(area, step) {
  const areas = [...$("rows").querySelectorAll("textarea:not(:disabled)")];
  const next = areas[areas.indexOf(area) + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

async function accept(area) {
  const mine = turn;
  const one = row(area);
  const text = area.value;
  const line = area.closest("li");
  line.querySelector(".problem").textContent = "";
  if (!go(area, 1) && !$("rows-after").disabled) {
    $("rows-after").click();
  }
  try {
    const told = await ask(`${shown.id}/segments/${one.number}`, "PUT", { text });
    if (mine !== turn) return;
    shown.accepted += one.accepted ? 0 : 1;
    shown.doubtful -= inDoubt(one) ? 1 : 0;
    Object.assign(one, told);
    tell(shown);
    if (area.value === text) keep(one);
    const now = $("rows").querySelector(`[data-number="${one.number}"]`);
    if (now && area.value === text) {
      const replaced = item(one);
      const had = now.contains(document.activeElement);
      now.replaceWith(replaced);
      grow(replaced.querySelector("textarea"));
      if (had) replaced.querySelector("textarea").focus();
    }
  } catch (error) {
    if (mine !== turn) return;
    line.querySelector(".problem").textContent = error.message;
    if (line.isConnected) area.focus();
    else problem(error);
  }
}

function problem(error) {
  $("document-problem").textContent = error ? error.message : "";
}
