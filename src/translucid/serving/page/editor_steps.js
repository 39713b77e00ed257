// The steps of the document editor that one key undoes: insertions, filled repetitions, replacements.

import { readSteps, writeSteps } from "./storage.js";

const MOST_STEPS = 100;
let documentId = "";
let steps = []; // { name, changes: [{ number, before, after }, …] }, the latest last

// Open the steps of a document; they survive a reload of the tab.
export function openSteps(id) {
  documentId = id;
  steps = readSteps(id);
}

// Record a step. `name` says what was done.
export function recordStep(name, changes) {
  const effective = changes.filter(({ before, after }) => before !== after);
  if (!effective.length) return;
  steps.push({ name, changes: effective });
  if (steps.length > MOST_STEPS) steps.shift();
  writeSteps(documentId, steps);
}

// Undo the latest step that still has an effect: segments that were accepted or edited since then stay as they are.
// `isUnchanged(change)` says whether a segment still has the text of the step. Return { name, texts, kept }: the former texts by
// segment number, and how many segments stay; null if there is nothing to undo.
export function undoneStep(isUnchanged) {
  for (let step = steps.pop(); step; step = steps.pop()) {
    writeSteps(documentId, steps);
    const changes = step.changes.filter(isUnchanged);
    if (!changes.length) continue;
    const texts = new Map(changes.map(({ number, before }) => [number, before]));
    return { name: step.name, texts, kept: step.changes.length - changes.length };
  }
  return null;
}
