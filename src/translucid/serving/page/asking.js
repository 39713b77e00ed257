// Shared by all parts of the page: elements, and requests to the server.

import { refuseKey, withKey } from "./key.js";

const BAR = 300, SLOW = 3000; // milliseconds
export const $ = (id) => document.getElementById(id);
export const RETRY = 3000; // milliseconds until the next attempt to reach the server
const PATIENCE = 120; // seconds: no new attempt if Retry-After is longer
const RESERVE = 1 / 3; // share of the requests per minute that is reserved for clicks
let limits = null; // the server's latest rate limit: { limit, remaining, until }
let last = 0; // time of the latest automatic request

export function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

export function option(value, textContent) {
  return element("option", { value, textContent });
}

// Return the response, or throw an error; `gone` says that the request may succeed later, after `wait` milliseconds.
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
    const text = refuseKey(message) ? "The server requires an API key: see above." : message;
    throw Object.assign(new Error(text), { told: true, gone, wait: 1000 * seconds || RETRY });
  } catch (error) {
    if (error.told) throw error;
    throw Object.assign(new Error("The server does not respond. The page tries again automatically."), { gone: true, wait: RETRY });
  }
}

// Turn an API error, "Invalid request: … (field)", into a sentence.
function sentence(error) {
  const text = error.replace(/^(Invalid request|Slowdown): /, "").replace(/ \(\w+\)$/, "");
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function noteLimits(headers) {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => Number(headers.get(`RateLimit-${name}`) ?? NaN));
  if (limit) limits = { limit, remaining, until: Date.now() + 1000 * reset };
}

// Return the delay in milliseconds of the next automatic request, such as while typing: `least`, but longer when a third of the
// allowed requests are used up. The remaining ones are then spread over the rest of the minute.
export function pause(least) {
  const now = Date.now();
  if (!limits || now >= limits.until || limits.remaining > (1 - RESERVE) * limits.limit) return least;
  const spare = limits.remaining - Math.ceil(RESERVE * limits.limit);
  const left = limits.until - now;
  if (spare <= 0) return Math.max(least, left);
  return Math.max(least, last + left / spare - now);
}

// Record an automatic request.
export function asksItself() {
  last = Date.now();
}

// Send a request, with the key if the server needs one.
export function post(path, fields, signal) {
  const body = JSON.stringify(withKey(fields));
  return answered(fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal }));
}

// Resolve or reject only if the response is still wanted; otherwise stay pending.
export async function whileWanted(answer, wanted) {
  const got = await answer.catch((error) => { if (wanted()) throw error; });
  return wanted() ? got : new Promise(() => {});
}

// Progress display: nothing at first, then a thin bar, then a message.
// Return `begin`, which may be called repeatedly, and `end`, to call when nothing is pending.
export function waiting(part, say) {
  let timers = [];
  let slow = false;
  return {
    begin() {
      if (timers.length) return;
      timers = [
        setTimeout(() => part.classList.add("working"), BAR),
        setTimeout(() => { slow = true; say("Still working. The server is taking longer than usual."); }, SLOW),
      ];
    },
    end() {
      for (const timer of timers) clearTimeout(timer);
      timers = [];
      part.classList.remove("working");
      if (slow) say("");
      slow = false;
    },
  };
}
