// The segments of the open document by number: those that were shown, and all of them once a tool needs them.

import { isDoubtful } from "./segment_item.js";

const SEGMENTS_PER_REQUEST = 500;
const known = new Map(); // by number
const stale = new Set(); // numbers of segments that may have changed on the server
/** @type {Promise<any[]> | null} */
let complete = null; // a promise of all segments in the order of the document

// Forget the segments when another document is opened.
export function forgetSegments() {
  known.clear();
  stale.clear();
  complete = null;
}

// Fetch all segments again when they are needed, because many have changed on the server.
export function refreshLater() {
  complete = null;
  for (const number of known.keys()) stale.add(number);
}

// Store the server's records of segments; return the stored objects, one for each segment, so that a change is seen everywhere.
export function storeSegments(records) {
  return records.map((record) => {
    const stored = known.get(record.number) ?? record;
    known.set(record.number, stored);
    stale.delete(record.number);
    return Object.assign(stored, { retrieved: [] }, record);
  });
}

// Return the segment of a number, if it is known.
export function knownSegment(number) {
  return known.get(number);
}

// Fetch all segments of a document, once it is translated.
export function allSegments(request, { id, state, segments: total }) {
  const isFinal = state === "done";
  const loading = (isFinal && complete) || load(request, id, total);
  if (isFinal) {
    complete = loading;
    loading.catch(() => {
      complete = null;
    });
  }
  return loading;
}

async function load(request, id, total) {
  const segments = [];
  while (segments.length < total) {
    const records = await request(`${id}/segments?first=${segments.length}&count=${SEGMENTS_PER_REQUEST}`);
    if (!records.length) break;
    // An acceptance may have changed a stored translation while this request was answered.
    segments.push(
      ...records.map((record) => (isCurrent(record) ? known.get(record.number) : storeSegments([record])[0])),
    );
  }
  return segments;
}

function isCurrent({ number }) {
  return !stale.has(number) && (known.get(number)?.target ?? null) !== null;
}

// Return the numbers of segments for the editor's filter ("" for all, "unaccepted" or "doubtful") and order ("" for that of the
// document, or "confidence", the lowest first; without a confidence, segments with a warning are first).
export function listedNumbers(segments, drafts, filter, order) {
  const isListed = (segment) => {
    if (filter === "doubtful") return isDoubtful(segment);
    return !filter || !segment.accepted || drafts[segment.number] !== undefined;
  };
  const quality = ({ confidence, doubts }) => confidence ?? (doubts.length ? 0 : 1);
  const listed = segments.filter(isListed);
  if (order) listed.sort((one, other) => quality(one) - quality(other)); // the sort is stable
  return listed.map(({ number }) => number);
}
