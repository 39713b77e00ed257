// Files: dropped anywhere on the page, each goes where it belongs.

import { $ } from "./asking.js";

// Begin. takers: { image, document, text }, functions of a file or null; `text` says whether it took it.
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

// Give a file to the part of the page that it belongs to.
export async function give(file, { image, document: whole, text }) {
  if (image && (file.type.startsWith("image/") || !(whole || text))) return image(file);
  if (text && /^text\/plain|^$/.test(file.type) && (await text(file))) return undefined;
  return whole?.(file);
}

// The text of a file; null if it is none, or longer than so many characters.
export async function textOf(file, most) {
  if (file.size > 4 * most) return null; // UTF-8 has up to four bytes for one
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.length > most || text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
