// Asks the engine, which computes in a worker.

import { gettext } from "./messages.js";

// Start the engine with the record of a model. If the browser starts no worker, a page that has loaded the engine computes.
//
// ENGINE: the functions, classes and constants of the scripts in engine/, by name
// createWorker(): starts the worker of engine/worker.js; by default from the scripts that the page has loaded
// Returns a function: ask(question, fields) returns a promise of the answer, see engine/worker.js.
export function startEngine(record, createWorker = workerOfPage) {
  const waiting = new Map(); // the functions that settle a promise, by the id of its message
  /** @type {any} */
  let answers = null; // in the page, without a worker
  /** @type {Worker | null} */
  let worker = null;
  let lastId = 0;
  const started = nextTask().then(start);
  return ask;

  function start() {
    try {
      worker = createWorker();
    } catch {
      computeHere();
      return;
    }
    worker.addEventListener("message", settle);
    worker.addEventListener("error", computeHere); // such as a policy of the server against workers
    worker.postMessage({ id: 0, record });
  }

  async function ask(question, fields) {
    await started;
    return new Promise((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, { resolve, reject, question, fields });
      if (answers) answer(id);
      else worker?.postMessage({ id, question, fields });
    });
  }

  function settle({ data: { id, answer, error } }) {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error) reject?.(new Error(error));
    else resolve?.(answer);
  }

  function computeHere() {
    worker = null;
    if (typeof ENGINE === "undefined") {
      for (const { reject } of waiting.values())
        reject(new Error(gettext("This browser starts no worker for the model.")));
      return;
    }
    answers = new ENGINE.Answers(record);
    for (const id of waiting.keys()) answer(id);
  }

  function answer(id) {
    const { resolve, question, fields } = waiting.get(id);
    waiting.delete(id);
    resolve(answers[question](fields));
  }
}

function workerOfPage() {
  return new Worker(URL.createObjectURL(new Blob([workerSource()], { type: "text/javascript" })));
}

function workerSource() {
  const source = (value) => (typeof value === "function" ? String(value) : JSON.stringify(value));
  const declarations = Object.entries(ENGINE).map(([name, value]) => `const ${name} = ${source(value)};`);
  return [...declarations, "answerMessages();"].join("\n");
}

// Let the page react before the next part of a long work.
export function nextTask() {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}

// Return the rows of points that the worker has packed into few arrays, see engine/worker.js.
export function unpack(packed) {
  const rowsOf = (/** @type {any} */ { width, data }) =>
    Array.from({ length: data.length / width }, (_, n) => data.subarray(n * width, (n + 1) * width));
  return mapValues(packed, ({ counts, ...value }) => {
    if (!counts) return rowsOf(value);
    const rows = mapValues(value, rowsOf);
    return counts.map((count, n) => ({
      query: rows.query[n],
      keys: rows.keys.slice(0, count),
      values: rows.values.slice(0, count),
      scores: rows.scores[n].subarray(0, count),
      weights: rows.weights[n].subarray(0, count),
      context: rows.context[n],
    }));
  });
}

function mapValues(record, f) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value)]));
}
