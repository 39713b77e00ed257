// A form to suggest a better translation, which the server stores in its translation memory.

import { element } from "./elements.js";
import { $ } from "./page_elements.js";
import { postJson } from "./requests.js";

// Set up, if the server accepts suggestions. `getState()` returns { text, translation, from, to }; `onSaved` is called when the
// server has stored a suggestion.
export function initSuggestionForm(settings, getState, onSaved) {
  $("improve").hidden = !settings.suggestions;
  $("improve").addEventListener("click", () => openForm(getState(), onSaved));
}

function openForm({ text, translation, from, to }, onSaved) {
  if (!translation || $("suggestion-form")) return;
  const textarea = element("textarea", {
    id: "suggestion-text", value: translation, lang: to, dir: "auto", ariaLabel: "a better translation",
  });
  const save = element("button", { type: "button", className: "button primary", textContent: "Save" });
  const cancel = element("button", { type: "button", className: "quiet", textContent: "Cancel" });
  const problem = element("p", { className: "problem", role: "alert" });
  const form = element("div", { id: "suggestion-form" }, textarea, save, cancel, problem);
  $("target-pane").append(form);
  textarea.focus();
  save.addEventListener("click", async () => {
    const suggestion = textarea.value.trim();
    if (!suggestion) return;
    try {
      await postJson("suggest", { q: text, s: suggestion, source: from, target: to });
      closeSuggestionForm();
      onSaved();
    } catch (error) {
      problem.textContent = error.message;
    }
  });
  cancel.addEventListener("click", closeSuggestionForm);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") closeSuggestionForm(); });
}

// Close the form, if it is open; it belongs to one translation.
export function closeSuggestionForm() {
  const form = $("suggestion-form");
  if (!form) return;
  const hadFocus = form.contains(document.activeElement);
  form.remove();
  if (hadFocus) $("improve").focus();
}
