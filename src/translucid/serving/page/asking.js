// What every part of the page needs: elements, and questions to the server.

export const $ = (id) => document.getElementById(id);
export const RETRY = 3000; // milliseconds after which a server that is gone is asked again
const PATIENCE = 120; // seconds: who is told to come back later than that is not asked again

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
    const answer = await (got.headers.get("content-type") === "application/pdf" ? got.blob() : got.json());
    if (got.ok) return answer;
    const seconds = got.status === 429 ? Number(got.headers.get("Retry-After") ?? PATIENCE + 1) : 0;
    const gone = got.status >= 500 || (got.status === 429 && seconds <= PATIENCE);
    const again = seconds && gone ? ` The page tries again in ${seconds} s.` : "";
    throw Object.assign(new Error(sentence(answer.error) + again), { told: true, gone, wait: 1000 * seconds || RETRY });
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

// Ask the server; the key goes along if it wants one.
export function post(path, fields, signal) {
  const body = JSON.stringify({ ...fields, ...($("key").value ? { api_key: $("key").value } : {}) });
  return answered(fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal }));
}

// An answer, or what is wrong, if it is still wanted when it comes; else nothing ever comes.
export async function whileWanted(answer, wanted) {
  const got = await answer.catch((error) => { if (wanted()) throw error; });
  return wanted() ? got : new Promise(() => {});
}
