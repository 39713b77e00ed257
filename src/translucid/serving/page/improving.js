// A better translation: entered instead of the model's, and stored in the server's translation memory.

import { $, element, post } from "./asking.js";

// Set up, if the server accepts suggestions. `about()` returns { text, translation, from, to }; `kept` is called after a suggestion is stored.
export function startImproving(settings, about, kept) {
  $("improve").hidden = !settings.suggestions;
  $("improve").addEventListener("click", () => begin(about(), kept));
}

function begin({ text, translation, from, to }, kept) {
  if (!translation || $("better")) return;
  const area = element("textarea", { id: "better", value: translation, lang: to, dir: "auto", ariaLabel: "a better translation" });
  const keep = element("button", { type: "button", className: "button main", textContent: "Save" });
  const leave = element("button", { type: "button", className: "quiet", textContent: "Cancel" });
  const problem = element("p", { className: "problem", role: "alert" });
  const form = element("div", { id: "improving" });
  form.append(area, keep, leave, problem);
  $("target-pane").append(form);
  area.focus();
  keep.addEventListener("click", () => suggest(area.value.trim(), { text, from, to }, { kept, problem }));
  leave.addEventListener("click", stopImproving);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") stopImproving(); });
}

// Close the form together with its translation.
export function stopImproving() {
  if (!$("improving")) return;
  const had = $("improving").contains(document.activeElement);
  $("improving").remove();
  if (had) $("improve").focus();
}

async function suggest(better, { text, from, to }, { kept, problem }) {
  if (!better) return;
  try {
    await post("suggest", { q: text, s: better, source: from, target: to });
    stopImproving();
    kept();
  } catch (error) {
    problem.textContent = error.message;
  }
}
