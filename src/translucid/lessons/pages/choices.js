// The choices below a question: they check themselves, and the browser remembers which lessons were answered.

import { el } from "./dom.js";
import { gettext } from "./messages.js";

const KEY = "translucid-lessons"; // an array of the names of lessons

// Turn the list of choices on the page of a lesson into buttons. The right one opens the answer that follows.
export function showChoices(lesson) {
  for (const list of document.querySelectorAll(".choices")) {
    const result = el("p", { class: "result", "aria-live": "polite" });
    const answer = list.nextElementSibling;
    const buttons = [...list.children].map((item) => {
      const isRight = item.hasAttribute("data-right");
      const button = el("button", { type: "button", "aria-pressed": "false" }, ...item.childNodes);
      button.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        result.textContent = isRight ? gettext("Right.") : gettext("No. Try it in the figure, then choose again.");
        if (!isRight) return;
        remember(lesson);
        if (answer instanceof HTMLDetailsElement) answer.open = true;
      });
      item.append(button);
      return button;
    });
    list.after(result);
  }
}

// Mark the lessons that were answered in the list of all lessons.
export function markAnswered() {
  const lessons = answered();
  for (const link of document.querySelectorAll(".lessons a")) {
    const name = (link.getAttribute("href") ?? "").replace(".html", "");
    if (lessons.includes(name)) link.append(" ", el("span", { class: "answered" }, `✓ ${gettext("answered")}`));
  }
}

function remember(lesson) {
  const lessons = answered();
  if (lessons.includes(lesson)) return;
  try {
    localStorage.setItem(KEY, JSON.stringify([...lessons, lesson]));
  } catch {
    // Storage may be switched off: then nothing is remembered.
  }
}

function answered() {
  try {
    const lessons = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(lessons) ? lessons : [];
  } catch {
    return [];
  }
}
