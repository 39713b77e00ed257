// The segments of the open document by number: those that were shown, and all of them once a tool needs them.

const SEGMENTS_PER_REQUEST = 500;
const known = new Map(); // by number
/** @type {Promise<any[]> | null} */
let complete = null; // a promise of all segments in the order of the document

// Forget the segments when another document is opened.
export function forgetSegments() {
  known.clear();
  complete = null;
}

// Fetch segments again when they are needed, because many have changed on the server.
export const refreshLater = forgetSegments;

// Store the server's records of segments; return the stored objects, one for each segment, so that a change is seen everywhere.
export function storeSegments(records) {
  return records.map((record) => {
    const stored = known.get(record.number) ?? record;
    known.set(record.number, stored);
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
      ...records.map((record) => (hasTarget(record) ? knownSegment(record.number) : storeSegments([record])[0])),
    );
  }
  return segments;
}

function hasTarget({ number }) {
  return (known.get(number)?.target ?? null) !== null;
}
