// The history of the open document in this tab: steps to undo and to redo. A step is a list of changes of segments.
//
// The state of a segment is { accepted, draft }: the text that was accepted, and the edit that was not; null if there is none.

import { knownSegment } from "./all_segments.js";
import { gettext } from "./messages.js";
import { readDrafts, readHistory, writeHistory } from "./storage.js";

const MOST_STEPS = 300;
let documentId = "";
/** @type {{ done: any[], undone: any[] }} */
let history = { done: [], undone: [] }; // { name, changes: [{ number, before, after }, …] }, the latest last
/** @type {{ number: number, before: Map<number, any> } | null} */
let typing = null; // the segment in which the user types, and its state before

// Open the history of a document; it survives a reload of the tab.
export function openHistory(id) {
  [documentId, typing, history] = [id, null, readHistory(id)];
}

// Return the states of known segments by number.
export function statesOf(numbers) {
  const drafts = readDrafts(documentId);
  const states = new Map();
  for (const number of numbers) {
    const { accepted, target } = knownSegment(number);
    states.set(number, { accepted: accepted ? target : null, draft: drafts[number] ?? null });
  }
  return states;
}

function isSame(one, other) {
  return one.accepted === other.accepted && one.draft === other.draft;
}

// Begin a step; what was typed before becomes a step of its own. Return the states of the segments that may change.
export function beginStep(numbers) {
  endTyping();
  return statesOf(numbers);
}

// Record a step that has ended. `name` says what was done, `before` are the states at its beginning.
export function recordStep(name, before) {
  const after = statesOf(before.keys());
  const changes = [...before].map(([number, state]) => ({ number, before: state, after: after.get(number) }));
  const effective = changes.filter((change) => !isSame(change.before, change.after));
  if (typing && before.has(typing.number)) typing = null;
  if (!effective.length) return;
  history.done.push({ name, changes: effective });
  history.done.splice(0, history.done.length - MOST_STEPS);
  history.undone = [];
  writeHistory(documentId, history);
}

// Note that the user types in a segment, before its edit is stored.
export function noteTyping(number) {
  if (typing?.number === number) return;
  endTyping();
  typing = { number, before: statesOf([number]) };
}

// Make a step of what was typed.
export function endTyping() {
  if (!typing) return;
  const { number, before } = typing;
  typing = null;
  if (knownSegment(number)) recordStep(gettext("edit of segment {number}", { number: number + 1 }), before);
}

// Return whether the browser can undo what the user has typed in a segment since the latest step.
export function hasTyped(number) {
  if (!typing || typing.number !== number) return false;
  return !isSame(statesOf([number]).get(number), typing.before.get(number));
}

export function canRedo() {
  return history.undone.length > 0;
}

// Take the latest step to undo or to redo that still has an effect: segments that have changed since then stay as they are. Return
// { name, states, kept }: the states to bring back, and how many segments stay; null if there is no step.
export function takeStep(isRedo) {
  endTyping();
  const [from, to] = isRedo ? [history.undone, history.done] : [history.done, history.undone];
  for (let step = from.pop(); step; step = from.pop()) {
    const current = statesOf(step.changes.map(({ number }) => number));
    const changes = step.changes.filter(({ number, before, after }) =>
      isSame(current.get(number), isRedo ? before : after),
    );
    if (!changes.length) continue;
    to.push({ name: step.name, changes });
    writeHistory(documentId, history);
    const states = new Map(changes.map(({ number, before, after }) => [number, isRedo ? after : before]));
    return { name: step.name, states, kept: step.changes.length - changes.length };
  }
  writeHistory(documentId, history);
  return null;
}

// Put back the step that was taken last, because it failed.
export function returnStep(isRedo) {
  const [from, to] = isRedo ? [history.undone, history.done] : [history.done, history.undone];
  from.push(to.pop());
  writeHistory(documentId, history);
}
