// Files dropped anywhere on the page.

import { $ } from "./asking.js";

// Set up. takers: { image, document, text }, functions of a file, or null; `text` returns whether it accepts the file.
export function startDrops(takers) {
  const files = ({ dataTransfer }) => [...dataTransfer.items].some((one) => one.kind === "file");
  document.addEventListener("dragover", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    $("dropping").hidden = false;
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("dropping").hidden = true; });
  document.addEventListener("drop", (event) => {
    $("dropping").hidden = true;
    if (!files(event)) return;
    event.preventDefault();
    give(event.dataTransfer.files[0], takers);
  });
}

// Pass a file to the right part of the page.
export async function give(file, { image, document: whole, text }) {
  if (image && (file.type.startsWith("image/") || !(whole || text))) return image(file);
  if (text && /^text\/plain|^$/.test(file.type) && (await text(file))) return undefined;
  return whole?.(file);
}

// The text of a file; null if it is not text, or too long.
export async function textOf(file, most) {
  if (file.size > 4 * most) return null; // UTF-8 has up to four bytes per character
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.length > most || text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
