// A form to suggest a better translation, which the server stores in its translation memory. Once edited, it stays open until the
// user saves or cancels, even if the page translates another text meanwhile.

import { element } from "./elements.js";
import { gettext } from "./messages.js";
import { $ } from "./page_elements.js";
import { postJson } from "./requests.js";

const UNSAVED = gettext("Your edit is not saved. Save or cancel it.");
let isEdited = () => false; // whether the open form differs from the translation that it was opened with

// Set up, if the server accepts suggestions. `getState()` returns { text, translation, from, to }; `onSaved` is called when the
// server has stored a suggestion.
export function initSuggestionForm(settings, getState, onSaved) {
  $("improve").hidden = !settings.suggestions;
  $("improve").addEventListener("click", () => {
    if ($("suggestion-form")) $("suggestion-text").focus();
    else openForm(getState(), onSaved);
  });
  addEventListener("beforeunload", (event) => {
    if ($("suggestion-form") && isEdited()) event.preventDefault();
  });
}

function openForm({ text, translation, from, to }, onSaved) {
  if (!translation) return;
  const textarea = element("textarea", {
    id: "suggestion-text",
    value: translation,
    lang: to,
    dir: "auto",
    ariaLabel: gettext("a better translation"),
  });
  const save = element("button", {
    className: "button primary",
    textContent: gettext("Save"),
    title: gettext("Save (Ctrl Enter)"),
  });
  const cancel = element("button", { type: "button", className: "quiet", textContent: gettext("Cancel") });
  const subject = element("p", {
    id: "suggestion-subject",
    className: "hint one-line",
    lang: from,
    dir: "auto",
    textContent: text,
    hidden: true,
  });
  subject.dataset.label = gettext("for:");
  const problem = element("p", { className: "problem", role: "alert" });
  const form = element("form", { id: "suggestion-form" }, textarea, save, cancel, subject, problem);
  isEdited = () => textarea.value !== translation;
  $("target-pane").append(form);
  textarea.focus();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const suggestion = textarea.value.trim();
    if (!suggestion || save.disabled) return;
    save.disabled = true;
    try {
      await postJson("suggest", { q: text, s: suggestion, source: from, target: to });
      if (!form.isConnected) return;
      close(form);
      onSaved();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      save.disabled = false;
    }
  });
  cancel.addEventListener("click", () => close(form));
  form.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation(); // elsewhere on the page, these keys translate
      form.requestSubmit();
    } else if (event.key === "Escape") {
      if (isEdited()) problem.textContent = UNSAVED;
      else close(form);
    }
  });
}

// The page shows another text, or none: close the form unless it has edits. They belong to the text that the form was opened for,
// which the form then shows.
export function leaveSuggestionForm() {
  const form = $("suggestion-form");
  if (!form) return;
  if (isEdited()) $("suggestion-subject").hidden = false;
  else close(form);
}

function close(form) {
  const hadFocus = form.contains(document.activeElement);
  form.remove();
  if (hadFocus) ($("improve").disabled ? $("source") : $("improve")).focus();
}
