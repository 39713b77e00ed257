// Keyboard shortcuts, and the dialogs.

import { $, element } from "./asking.js";
import { store, stored } from "./keeping.js";

const OFF = "translucid.keys.off";
const MAC = /Mac|iP(hone|ad)/.test(navigator.platform);

// Set up. shortcuts: [{ keys, what, does }]; single letters work outside of text fields, "Ctrl …" everywhere (on a Mac, ⌘).
export function startKeys(shortcuts) {
  for (const { keys, what } of shortcuts) {
    const shown = element("dt", {});
    for (const key of keys.split(" ")) shown.append(element("kbd", { textContent: MAC && key === "Ctrl" ? "⌘" : key }), " ");
    $("keys").append(shown, element("dd", { textContent: what }));
  }
  $("open-keys").addEventListener("click", () => $("shortcuts").showModal());
  $("single-keys").checked = !stored(OFF, false);
  $("single-keys").addEventListener("change", () => store(OFF, true, $("single-keys").checked));
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  }
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
    const pressed = name(event);
    const found = shortcuts.find(({ keys }) => keys === pressed);
    if (!found || (!pressed.startsWith("Ctrl") && (inField(event.target) || !$("single-keys").checked))) return;
    event.preventDefault();
    found.does();
  });
}

function name({ key, ctrlKey, metaKey, shiftKey }) {
  const letter = key.length === 1 ? key.toUpperCase() : key;
  return [(ctrlKey || metaKey) && "Ctrl", (ctrlKey || metaKey) && shiftKey && "Shift", letter].filter(Boolean).join(" ");
}

function inField(target) {
  return target.matches("textarea, select, [contenteditable], input:not([type=checkbox], [type=file], [type=radio])");
}
