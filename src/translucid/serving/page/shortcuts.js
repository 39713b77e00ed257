// Keyboard shortcuts, and the dialogs.

import { element, svgElement } from "./elements.js";
import { gettext } from "./messages.js";
import { $, IS_MAC } from "./page_elements.js";
import { readStorage, writeStorage } from "./storage.js";

const OFF_KEY = "translucid.keys.off";
const MAC_KEYS = { Ctrl: "⌘", Alt: "⌃" };

// Set up. `shortcuts` is a list of { keys, description, action }. Single keys work outside of text fields only, "Ctrl …" everywhere
// (on a Mac also with ⌘).
export function initShortcuts(shortcuts) {
  $("shortcut-list").append(...shortcuts.flatMap(shortcutRow));
  $("open-shortcuts").addEventListener("click", () => $("shortcuts-dialog").showModal());
  const singleKeys = $("single-key-shortcuts");
  singleKeys.checked = !readStorage(OFF_KEY, false);
  singleKeys.addEventListener("change", () => writeStorage(OFF_KEY, true, singleKeys.checked));
  for (const dialog of document.querySelectorAll("dialog")) initDialog(dialog);
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
    const pressedKeys = keysOf(event);
    const shortcut = shortcuts.find(({ keys }) => keys === pressedKeys);
    if (!shortcut) return;
    const isSingleKey = !pressedKeys.startsWith("Ctrl");
    if (isSingleKey && (isTextField(event.target) || !singleKeys.checked)) return;
    event.preventDefault();
    shortcut.action();
  });
}

// Add shortcuts that another module handles to the dialog, under a heading.
export function addShortcutGroup(heading, shortcuts) {
  const list = element("dl", { className: "shortcuts" });
  list.append(...shortcuts.flatMap(shortcutRow));
  $("shortcut-list").after(element("h3", { textContent: heading }), list);
}

function shortcutRow({ keys, description }) {
  const term = element("dt", {});
  for (const key of keys.split(" ")) {
    term.append(element("kbd", { textContent: (IS_MAC && MAC_KEYS[key]) || key }), " ");
  }
  return [term, element("dd", { textContent: description })];
}

// Create a dialog with a heading.
export function createDialog(id, heading, ...children) {
  const cross = svgElement("svg", {}, svgElement("use", { href: "#i-clear" }));
  const close = element("button", { type: "button", className: "quiet close", ariaLabel: gettext("Close") }, cross);
  const title = element("h2", { id: `${id}-heading`, textContent: heading });
  const dialog = element("dialog", { id }, element("div", { className: "bar" }, title, close), ...children);
  dialog.setAttribute("aria-labelledby", title.id);
  document.body.append(dialog);
  initDialog(dialog);
  return dialog;
}

// Close a dialog by its button or by a click outside of it.
function initDialog(dialog) {
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
}

// Return the pressed keys in the form of a shortcut, such as "Ctrl Shift S".
function keysOf({ key, ctrlKey, metaKey, shiftKey }) {
  const letter = key.length === 1 ? key.toUpperCase() : key;
  const hasCtrl = ctrlKey || metaKey;
  return [hasCtrl && "Ctrl", hasCtrl && shiftKey && "Shift", letter].filter(Boolean).join(" ");
}

export function isTextField(target) {
  return target.matches("textarea, select, [contenteditable], input:not([type=checkbox], [type=file], [type=radio])");
}
