// What every part of the page needs: elements, and questions to the server.

import { refuseKey, withKey } from "./key.js";

export const $ = (id) => document.getElementById(id);
export const RETRY = 3000; // milliseconds after which a server that is gone is asked again
const PATIENCE = 120; // seconds: who is told to come back later than that is not asked again
const RESERVE = 1 / 3; // of the requests a minute that the server allows, those kept for what a person clicks
let limits = null; // what the server last said of them: { limit, remaining, until }
let last = 0; // when the page last asked by itself

export function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

export function option(value, textContent) {
  return element("option", { value, textContent });
}

// Return what the server answers, or throw what is wrong; `gone` says that it may be back, after `wait` milliseconds.
export async function answered(response) {
  try {
    const got = await response;
    noteLimits(got.headers);
    const answer = await (got.headers.get("content-type") === "application/pdf" ? got.blob() : got.json());
    if (got.ok) return answer;
    const seconds = got.status === 429 ? Number(got.headers.get("Retry-After") ?? PATIENCE + 1) : 0;
    const gone = got.status >= 500 || (got.status === 429 && seconds <= PATIENCE);
    const again = seconds && gone ? ` The page tries again in ${seconds} s.` : "";
    const message = sentence(answer.error) + again;
    const text = refuseKey(message) ? "The server asks for an API key: see above." : message;
    throw Object.assign(new Error(text), { told: true, gone, wait: 1000 * seconds || RETRY });
  } catch (error) {
    if (error.told) throw error;
    throw Object.assign(new Error("The server does not answer. The page tries again by itself."), { gone: true, wait: RETRY });
  }
}

// What the server says to programs, "Invalid request: … (field)", as a sentence for people.
function sentence(error) {
  const text = error.replace(/^(Invalid request|Slowdown): /, "").replace(/ \(\w+\)$/, "");
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function noteLimits(headers) {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => Number(headers.get(`RateLimit-${name}`) ?? NaN));
  if (limit) limits = { limit, remaining, until: Date.now() + 1000 * reset };
}

// Return after how many milliseconds the page may ask by itself, such as while somebody types: `least`, but later when a third of
// the requests that the server allows are used up. What is left then is spread over the rest of the minute.
export function pause(least) {
  const now = Date.now();
  if (!limits || now >= limits.until || limits.remaining > (1 - RESERVE) * limits.limit) return least;
  const spare = limits.remaining - Math.ceil(RESERVE * limits.limit);
  const left = limits.until - now;
  if (spare <= 0) return Math.max(least, left);
  return Math.max(least, last + left / spare - now);
}

// Note that the page asks by itself.
export function asksItself() {
  last = Date.now();
}

// Ask the server; the key goes along if it wants one.
export function post(path, fields, signal) {
  const body = JSON.stringify(withKey(fields));
  return answered(fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal }));
}

// An answer, or what is wrong, if it is still wanted when it comes; else nothing ever comes.
export async function whileWanted(answer, wanted) {
  const got = await answer.catch((error) => { if (wanted()) throw error; });
  return wanted() ? got : new Promise(() => {});
}
