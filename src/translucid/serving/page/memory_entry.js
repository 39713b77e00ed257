// The dialog about a word that the translation memory has decided: the entry, its share, and buttons to change or delete the entry.

import { formatDay, formatNumber, gettext } from "./messages.js";
import { $ } from "./page_elements.js";
import { postJson } from "./requests.js";

let shownWord; // the word with its entry, as the server has returned it
let languages; // { source, target }
let onChanged; // called with a message when the entry was changed or deleted
let isReady = false;

// Show the entry of a retrieved word. `canChange`: whether the server lets clients change its memory.
export async function showMemoryEntry(word, pair, canChange, changed) {
  if (!isReady) init();
  [shownWord, languages, onChanged] = [word, pair, changed];
  $("memory-share").textContent = describeShare(word);
  $("memory-source").textContent = word.source;
  $("memory-source").lang = pair.source;
  const target = $("memory-target");
  [target.value, target.lang, target.readOnly] = [word.target, pair.target, true];
  for (const part of [$("memory-origin"), $("memory-problem")]) part.textContent = "";
  for (const part of [$("memory-buttons"), $("memory-confirmation")]) part.hidden = true;
  $("memory-dialog").showModal();
  try {
    const entry = await postJson("memory/entry", fields());
    if (shownWord !== word) return;
    target.value = entry.target; // it may have been changed since the translation
    $("memory-origin").textContent = [entry.who, entry.when && formatDay(entry.when)].filter(Boolean).join(", ");
    target.readOnly = $("memory-buttons").hidden = !canChange;
  } catch (error) {
    if (shownWord === word) $("memory-problem").textContent = error.message;
  }
}

function init() {
  isReady = true;
  $("memory-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const suggestion = $("memory-target").value.trim();
    if (suggestion && !$("memory-buttons").hidden)
      change("suggest", { ...fields(), s: suggestion }, gettext("Saved in the memory"));
  });
  $("memory-target").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // an entry is one line
    if (event.ctrlKey || event.metaKey) $("memory-form").requestSubmit();
  });
  $("delete-entry").addEventListener("click", () => confirmDeletion(true));
  $("keep-entry").addEventListener("click", () => confirmDeletion(false));
  $("confirm-delete-entry").addEventListener("click", () =>
    change("memory/remove", fields(), gettext("Deleted from the memory")),
  );
}

function fields() {
  return { q: shownWord.source, ...languages };
}

// Return what the entry did to the word, as a sentence.
function describeShare({ word, share, changed }) {
  const values = { word, share: `${formatNumber(Math.round(100 * share))} %` };
  return changed
    ? gettext(
        "“{word}” has {share} of its probability from this entry. The model alone would have written something else.",
        values,
      )
    : gettext("“{word}” has {share} of its probability from this entry. The model alone prefers it, too.", values);
}

function confirmDeletion(isAsked) {
  $("memory-confirmation").hidden = !isAsked;
  $("memory-buttons").hidden = isAsked;
  $(isAsked ? "keep-entry" : "delete-entry").focus();
}

// Send a change of the entry, then close the dialog.
async function change(path, changedFields, message) {
  const word = shownWord;
  $("memory-problem").textContent = "";
  try {
    await postJson(path, changedFields);
    if (shownWord !== word) return;
    $("memory-dialog").close();
    $("output").focus({ preventScroll: true }); // the word is not there any more
    onChanged(message);
  } catch (error) {
    if (shownWord === word) $("memory-problem").textContent = error.message;
  }
}
