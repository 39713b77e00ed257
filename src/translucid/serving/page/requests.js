// Requests to the server: errors, retries and rate limits.

import { showKeyError, withApiKey } from "./api_key.js";
import { gettext } from "./messages.js";
import { translatedError } from "./server_messages.js";

export const RETRY_DELAY = 3000; // milliseconds until the next attempt to reach the server
const LONGEST_RETRY_AFTER = 120; // seconds: no new attempt if Retry-After is longer
const RESERVED = 1 / 3; // share of the requests per minute that is reserved for clicks
const WINDOW = 60000; // milliseconds for which the server counts requests
/** @type {{ limit: number, remaining: number, resetTime: number } | null} */
let rateLimit = null; // { limit, remaining, resetTime } from the server, minus the requests that it has not answered yet
let lastAutomaticRequest = 0; // time in milliseconds

// Return the JSON (or the PDF) of a response, or throw an error. `response` is a promise from fetch. If the error has
// `retryable`, the same request may succeed after `retryDelay` milliseconds.
export async function readResponse(response) {
  try {
    const received = await response;
    recordRateLimit(received.headers);
    const isPdf = received.headers.get("content-type") === "application/pdf";
    const content = await (isPdf ? received.blob() : received.json());
    if (received.ok) return content;
    throw serverError(received, content.error);
  } catch (error) {
    if (error.fromServer) throw error;
    const message = gettext("The server does not respond. The page tries again automatically.");
    throw Object.assign(new Error(message), { retryable: true, retryDelay: RETRY_DELAY });
  }
}

function serverError({ status, headers }, apiMessage) {
  const isBusy = status === 429;
  const seconds = isBusy ? Number(headers.get("Retry-After") ?? LONGEST_RETRY_AFTER + 1) : 0;
  const retryable = status >= 500 || (isBusy && seconds <= LONGEST_RETRY_AFTER);
  const retryNote = seconds && retryable ? ` ${gettext("The page tries again in {seconds} s.", { seconds })}` : "";
  const message = asSentence(apiMessage) + retryNote;
  const text = showKeyError(apiMessage, message) ? gettext("The server requires an API key: see above.") : message;
  return Object.assign(new Error(text), { fromServer: true, retryable, retryDelay: 1000 * seconds || RETRY_DELAY });
}

// Turn an API error, "Invalid request: … (field)", into a sentence in the language of the page.
export function asSentence(apiMessage) {
  const text = translatedError(apiMessage.replace(/^(Invalid request|Slowdown): /, "").replace(/ \(\w+\)$/, ""));
  const end = /[.!?]$/.test(text) ? "" : ".";
  return text[0].toUpperCase() + text.slice(1) + end;
}

// Record the client's remaining requests, as the server stated them when it received the request. The page may have sent others
// since then, so that in the same window the smaller number counts. Windows begin at least WINDOW apart.
export function recordRateLimit(headers) {
  const header = (name) => Number(headers.get(`RateLimit-${name}`) ?? NaN);
  const limit = header("Limit");
  if (!limit) return;
  const resetTime = Date.now() + 1000 * header("Reset");
  const isSameWindow = rateLimit?.limit === limit && resetTime < rateLimit.resetTime + WINDOW / 2;
  const earlier = isSameWindow ? rateLimit?.remaining : undefined;
  const remaining = Math.min(header("Remaining"), earlier ?? Infinity);
  rateLimit = { limit, remaining, resetTime };
}

// Count a request before the server answers, which it may never do: typing cancels the requests for earlier text. A window begins
// with its first request.
function countRequest() {
  if (!rateLimit) return;
  const { limit, remaining, resetTime } = rateLimit;
  const isFirst = remaining === limit || Date.now() >= resetTime;
  rateLimit = isFirst
    ? { limit, remaining: limit - 1, resetTime: Date.now() + WINDOW }
    : { limit, remaining: remaining - 1, resetTime };
}

// Return the delay in milliseconds before the next automatic request, such as while typing. It is `minimum`, but longer after a
// third of the allowed requests: the remaining ones are then spread over the rest of the minute.
export function automaticRequestDelay(minimum) {
  const now = Date.now();
  if (!rateLimit || now >= rateLimit.resetTime) return minimum;
  const { limit, remaining, resetTime } = rateLimit;
  if (remaining > (1 - RESERVED) * limit) return minimum;
  const available = remaining - Math.ceil(RESERVED * limit);
  const timeLeft = resetTime - now;
  if (available <= 0) return Math.max(minimum, timeLeft);
  return Math.max(minimum, lastAutomaticRequest + timeLeft / available - now);
}

// Record the time of an automatic request, for the delay of the next.
export function recordAutomaticRequest() {
  lastAutomaticRequest = Date.now();
}

// Post fields as JSON, with the API key if the server needs one.
export function postJson(path, fields, signal) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify(withApiKey(fields));
  countRequest();
  return readResponse(fetch(path, { method: "POST", headers, body, signal }));
}

// Settle like `response` if it is still current then; otherwise stay pending for ever, so that late responses have no effect.
export async function settleIfCurrent(response, isCurrent) {
  const content = await response.catch((error) => {
    if (isCurrent()) throw error;
  });
  return isCurrent() ? content : new Promise(() => {});
}
