// The API key, if the server needs one: a form with error messages. The key is stored for the session of this tab.

import { gettext } from "./messages.js";
import { $ } from "./page_elements.js";
import { asSentence, recordRateLimit } from "./requests.js";
import { readStorage, writeStorage } from "./storage.js";

const STORAGE_KEY = "translucid.key";
let isRequired = false;

// Set up the form. `onAccepted` is called when the server has accepted a key.
export function initApiKey(settings, onAccepted) {
  isRequired = settings.keyRequired;
  $("open-api-key").hidden = !isRequired;
  $("open-api-key").addEventListener("click", () => {
    toggleForm($("api-key-form").hidden);
    if (!$("api-key-form").hidden) $("api-key").focus();
  });
  $("api-key-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const key = $("api-key").value.trim();
    const message = await verify(key);
    showMessage(message);
    if (message) {
      $("api-key").select();
      return;
    }
    writeStorage(STORAGE_KEY, key, false, sessionStorage);
    toggleForm(false);
    $("open-api-key").focus();
    onAccepted();
  });
  $("remove-api-key").addEventListener("click", () => {
    writeStorage(STORAGE_KEY, "", true, sessionStorage);
    $("api-key").value = "";
    showMessage("");
    $("api-key").focus();
  });
  toggleForm(isRequired && !storedKey());
  if (isRequired && storedKey()) verify(storedKey()); // for the rate limit
}

// Add the stored key, if any, to the fields of a request.
export function withApiKey(fields) {
  const key = storedKey();
  return key ? { ...fields, api_key: key } : fields;
}

// If an error of the API is about the key, show the message at the form; return whether it is.
export function showKeyError(apiMessage, message = asSentence(apiMessage)) {
  if (!isRequired || !/API key/.test(apiMessage)) return false;
  toggleForm(true);
  showMessage(message);
  return true;
}

function storedKey() {
  return readStorage(STORAGE_KEY, "", sessionStorage);
}

// Ask the server whether it accepts a key, and record the rate limit of the key. Return an error message, empty if it does.
async function verify(key) {
  const headers = { "Content-Type": "application/json" };
  try {
    const response = await fetch("frontend/key", { method: "POST", headers, body: JSON.stringify({ api_key: key }) });
    if (!response.ok) {
      const { error } = await response.json();
      return asSentence(error);
    }
    recordRateLimit(response.headers);
    return "";
  } catch {
    return gettext("The server does not respond. Try again.");
  }
}

function toggleForm(open) {
  $("api-key-form").hidden = !open;
  $("open-api-key").setAttribute("aria-expanded", open);
  $("remove-api-key").hidden = !storedKey();
}

function showMessage(message) {
  $("api-key-problem").textContent = message;
  $("api-key").setAttribute("aria-invalid", String(Boolean(message)));
}
