// The keys of the document editor.
//
// Letters are pressed with Alt, on a Mac with Control, because there Option types characters. No browser or screen reader uses
// these letters with this key while the focus is in a page.

import { canRedo, hasTyped } from "./editor_history.js";
import { gettext } from "./messages.js";
import { $, IS_MAC } from "./page_elements.js";
import { entersLineBreaks } from "./segment_item.js";
import { isTextField } from "./shortcuts.js";

// The shortcuts in the dialog. Those with `action`, the name of a function of the tools, are handled by their letter.
/** @type {{ keys: string, description: string, action?: string }[]} */
export const EDITOR_SHORTCUTS = [
  { keys: "Enter", description: gettext("accept the translation and go to the next segment") },
  { keys: "Ctrl Enter", description: gettext("accept it and go to the next segment that is not accepted") },
  { keys: "Alt J", description: gettext("go there without accepting"), action: "goToUnaccepted" },
  { keys: "Shift Enter", description: gettext("insert a line break") },
  { keys: "↑ ↓", description: gettext("in the first or last line: go to the previous or next segment") },
  { keys: "Esc", description: gettext("undo your edit of the segment") },
  { keys: "Alt M", description: gettext("insert the best match from the memory"), action: "insertMatch" },
  { keys: "Alt G", description: gettext("insert the next term of the glossary"), action: "insertTerm" },
  { keys: "Alt C", description: gettext("copy the source"), action: "copySource" },
  { keys: "Alt R", description: gettext("search and replace in all segments"), action: "openSearch" },
  { keys: "Alt W", description: gettext("look up the selected words in the memory"), action: "lookUp" },
  { keys: "Alt L", description: gettext("go to the menus and tools; Esc returns to the segment"), action: "goToTools" },
  { keys: "Ctrl S", description: gettext("download the document") },
  { keys: "Ctrl Z", description: gettext("undo the latest change, also an acceptance") },
  { keys: "Ctrl Shift Z", description: gettext("redo it") },
];

// Set up. `editor` has the functions of documents.js, `tools` those that the shortcuts name.
export function initEditorKeys(editor, tools) {
  $("segments").addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLTextAreaElement && !event.isComposing) onTextKey(event, editor, tools);
  });
  $("editor-tools").addEventListener("keydown", ({ key }) => {
    if (key === "Escape") editor.returnToPlace();
  });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || $("documents").hidden || !editor.getDocument()) return;
    if (document.querySelector("dialog[open]")) return;
    if (keyWithCtrl(event) === "s") {
      event.preventDefault();
      $("document-download").click();
      return;
    }
    if (isUndoKey(event)) {
      const isRedo = event.shiftKey || event.key.toLowerCase() === "y";
      if (isForBrowser(event.target, isRedo, editor)) return;
      event.preventDefault();
      tools.undoStep(isRedo);
      return;
    }
    const shortcut = EDITOR_SHORTCUTS.find(({ keys, action }) => action && keys === `Alt ${letterOf(event)}`);
    if (!shortcut?.action) return;
    event.preventDefault();
    tools[shortcut.action](focusedTextarea());
  });
}

function onTextKey(event, editor, tools) {
  const { target: textarea, key } = event;
  const { value, selectionStart, selectionEnd } = textarea;
  const hasSelection = selectionStart !== selectionEnd;
  const isOnFirstLine = !value.slice(0, selectionStart).includes("\n");
  const isOnLastLine = !value.slice(selectionEnd).includes("\n");
  const hasCtrl = event.ctrlKey || event.metaKey;
  if (key === "Enter" && !event.shiftKey && (hasCtrl || !entersLineBreaks(editor.segmentOf(textarea)))) {
    event.preventDefault();
    tools.afterInsertion(() => editor.accept(textarea, hasCtrl ? tools.goToUnaccepted : editor.moveDown));
  } else if (key === "Escape") {
    editor.undo(textarea);
  } else if (key === "ArrowDown" && !hasSelection && isOnLastLine) {
    if (editor.moveFocus(textarea, 1)) event.preventDefault();
  } else if (key === "ArrowUp" && !hasSelection && isOnFirstLine) {
    if (editor.moveFocus(textarea, -1)) event.preventDefault();
  }
}

// Return the key that is pressed with Ctrl, and perhaps Shift, or "".
function keyWithCtrl({ key, ctrlKey, metaKey, altKey }) {
  return (ctrlKey || metaKey) && !altKey ? key.toLowerCase() : "";
}

function isUndoKey(event) {
  const key = keyWithCtrl(event);
  return key === "z" || (key === "y" && !event.shiftKey);
}

// Return whether the browser undoes or redoes what was typed in a text field.
function isForBrowser(target, isRedo, editor) {
  if (!isTextField(target)) return false;
  if (!target.closest("#segments")) return target.tagName !== "SELECT";
  return hasTyped(editor.segmentOf(target).number) || (isRedo && !canRedo());
}

// Return the letter that is pressed with Alt (on a Mac, with Control), or "". On keyboards of other scripts, it is that of the
// key's place.
function letterOf({ key, code, altKey, ctrlKey, metaKey, shiftKey }) {
  const isModified = IS_MAC ? ctrlKey && !altKey : altKey && !ctrlKey;
  if (!isModified || metaKey || shiftKey) return "";
  return /^[a-z]$/i.test(key) ? key.toUpperCase() : code.replace(/^Key/, "");
}

function focusedTextarea() {
  const focused = document.activeElement;
  return focused?.closest("#segments li")?.querySelector("textarea") ?? null;
}
