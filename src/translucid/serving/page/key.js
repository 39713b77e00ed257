// The API key, if the server needs one: a form with error messages. The key is stored for the session of this tab.

import { store, stored } from "./keeping.js";

const KEY = "translucid.key";
const $ = (id) => document.getElementById(id);
let needed = false;

// Set up; `changed` is called when the server has accepted a key.
export function startKey(settings, changed) {
  needed = settings.keyRequired;
  $("open-key").hidden = !needed;
  $("open-key").addEventListener("click", () => { show($("key-form").hidden); if (!$("key-form").hidden) $("key").focus(); });
  $("key-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = await checked($("key").value.trim());
    say(problem);
    if (problem) { $("key").select(); return; }
    show(false);
    $("open-key").focus();
    changed();
  });
  $("key-forget").addEventListener("click", () => { store(KEY, "", true, sessionStorage); $("key").value = ""; say(""); $("key").focus(); });
  show(needed && !key());
}

// Add the key to the fields of a request.
export function withKey(fields) {
  return key() ? { ...fields, api_key: key() } : fields;
}

// Show an error about the key at its field; return whether the error is about the key.
export function refuseKey(message) {
  if (!needed || !/API key/.test(message)) return false;
  show(true);
  say(message);
  return true;
}

function key() {
  return stored(KEY, "", sessionStorage);
}

// Store a key if the server accepts it; otherwise return the error.
async function checked(value) {
  try {
    const answer = await fetch("frontend/key", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ api_key: value }) });
    if (!answer.ok) return `${(await answer.json()).error.replace(/^(Invalid request|Slowdown): /, "").replace(/ \(\w+\)$/, "")}.`;
    store(KEY, value, false, sessionStorage);
    return "";
  } catch {
    return "The server does not respond. Try again.";
  }
}

function show(open) {
  $("key-form").hidden = !open;
  $("open-key").setAttribute("aria-expanded", open);
  $("key-forget").hidden = !key();
}

function say(message) {
  const text = message && message[0].toUpperCase() + message.slice(1);
  $("key-problem").textContent = text;
  $("key").setAttribute("aria-invalid", Boolean(message));
}
