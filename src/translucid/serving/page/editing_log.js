// The time and the edits of each segment of a document, as a CSV file. They are stored in this browser only.

import { serverText } from "./segment_item.js";
import { readEditingLog, writeEditingLog } from "./storage.js";

const LONGEST_PAUSE = 60000; // milliseconds: a longer one is no work
const LONGEST_COMPARED = 3000; // characters: a longer pair of texts gets no edit distance
const COLUMNS = ["segment", "place", "state", "origin", "confidence", "seconds", "keystrokes"];
const TEXT_COLUMNS = ["source_characters", "machine_characters", "final_characters", "edit_distance"];
/** @type {{ id: string, segment: any } | null} */
let current = null; // { id, segment } with the focus
let lastTime = 0; // of the latest activity
const unwritten = new Map(); // by segment number: { seconds, keys, machine }

// Set up for the list of segments. `segmentOf(textarea)` returns a segment, `getDocument()` the document.
export function initEditingLog(list, { segmentOf, getDocument }) {
  const isText = (target) => target instanceof HTMLTextAreaElement;
  list.addEventListener("focusin", ({ target }) => {
    if (!isText(target)) return;
    count();
    current = { id: getDocument().id, segment: segmentOf(target) };
    rememberMachine(segmentOf(target));
  });
  list.addEventListener("focusout", () => {
    count();
    current = null;
    write(getDocument());
  });
  const countKey = ({ target, key }) => {
    count();
    const isEdit = [...key].length === 1 || ["Backspace", "Delete", "Enter"].includes(key);
    if (isText(target) && current && isEdit) entryOf(current.segment).keys += 1;
  };
  list.addEventListener("keydown", countKey, { capture: true }); // before Enter moves the focus to another segment
  for (const type of ["pointermove", "wheel"]) document.addEventListener(type, count, { passive: true });
  document.addEventListener("visibilitychange", () => {
    count();
    write(getDocument());
  });
}

// Keep the translation of the machine, before a person replaces it.
export function rememberMachine(segment) {
  if (!segment.accepted && segment.target !== null) entryOf(segment).machine ??= segment.target;
}

function entryOf({ number }) {
  if (!unwritten.has(number)) unwritten.set(number, { seconds: 0, keys: 0 });
  return unwritten.get(number);
}

// Add the time since the latest activity to the segment with the focus.
function count() {
  const now = performance.now();
  if (current && now - lastTime < LONGEST_PAUSE) entryOf(current.segment).seconds += (now - lastTime) / 1000;
  lastTime = now;
}

// Store what was counted; other tabs may have added to it.
function write(openDocument) {
  if (!openDocument || !unwritten.size) return;
  const log = readEditingLog(openDocument.id);
  for (const [number, { seconds, keys, machine }] of unwritten) {
    const stored = log[number] ?? { seconds: 0, keys: 0 };
    log[number] = { seconds: stored.seconds + seconds, keys: stored.keys + keys, machine: stored.machine ?? machine };
  }
  unwritten.clear();
  writeEditingLog(openDocument.id, log);
}

// Return the CSV file of a document: a line for each segment. It has no text of the document but the names of places.
export function editingLogCsv(openDocument, segments, drafts) {
  count();
  write(openDocument);
  const log = readEditingLog(openDocument.id);
  const rows = segments.map((segment) => rowOf(segment, log[segment.number], drafts[segment.number]));
  return [[...COLUMNS, ...TEXT_COLUMNS], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function rowOf(segment, entry, draft) {
  const { number, place, source, origin, confidence, accepted } = segment;
  const final = draft ?? serverText(segment);
  const machine = entry?.machine ?? (origin === "person" ? null : final);
  const state = draft !== undefined ? "edited" : accepted ? "accepted" : "machine";
  const work = [(entry?.seconds ?? 0).toFixed(1), entry?.keys ?? 0];
  const lengths = [source, machine, final].map((text) => (text === null ? "" : [...text].length));
  const distance = machine === null ? "" : editDistance(machine, final);
  return [number + 1, place, state, origin ?? "", confidence ?? "", ...work, ...lengths, distance];
}

// Return a value for CSV. Spreadsheets would run a text that begins with one of these signs as a formula.
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Return the number of characters to insert, delete or replace; "" for long texts.
export function editDistance(one, other) {
  const [from, to] = [[...one], [...other]];
  while (from.length && to.length && from.at(-1) === to.at(-1)) {
    from.pop();
    to.pop();
  }
  if (from.length > LONGEST_COMPARED || to.length > LONGEST_COMPARED) return "";
  let row = to.map((_, i) => i + 1); // distances of the beginning of `from` to all beginnings of `to` but the empty one
  for (const [i, character] of from.entries()) {
    let [diagonal, left] = [i, i + 1];
    row = row.map((above, j) => {
      left = Math.min(above + 1, left + 1, diagonal + (character === to[j] ? 0 : 1));
      diagonal = above;
      return left;
    });
  }
  return row.at(-1) ?? from.length;
}
