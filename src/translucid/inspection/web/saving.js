// Save what is seen as PNG, SVG, PDF or JSON, and show the lines of Python that make it again.
//
// showSaving(root, { name, picture(): an svg, data(): plain values, code(ending): lines, pdf: null or async (): a blob })

import { element } from "./elements.js";

const FINE = 2; // pixels of a PNG for one of the screen

export function showSaving(root, { name, picture, data, code, pdf }) {
  const kinds = {
    PNG: () => png(picture()),
    SVG: () => new Blob([text(picture())], { type: "image/svg+xml" }),
    JSON: () => new Blob([JSON.stringify(data(), null, 1)], { type: "application/json" }),
    ...(pdf ? { PDF: pdf } : {}),
  };
  const buttons = Object.entries(kinds).map(([kind, make]) => {
    const button = element("button", { type: "button", textContent: kind, ariaLabel: `save as ${kind}` });
    button.addEventListener("click", async () => {
      button.disabled = true;
      try { save(await make(), `${name()}.${kind.toLowerCase()}`); } finally { button.disabled = false; }
    });
    return button;
  });
  const lines = element("pre", { tabIndex: 0 });
  const copy = element("button", { type: "button", textContent: "Copy" });
  const details = element("details", { className: "code" }, element("summary", { textContent: "As code" }), lines, copy);
  details.addEventListener("toggle", () => { lines.textContent = details.open ? code() : ""; });
  copy.addEventListener("click", async () => {
    getSelection().selectAllChildren(lines); // also where the clipboard may not be written to
    try { await navigator.clipboard.writeText(lines.textContent); copy.textContent = "Copied"; } catch { copy.textContent = "Selected"; }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  root.replaceChildren(element("div", { className: "bar save", role: "group", ariaLabel: "save" }, element("span", { textContent: "Save as" }), ...buttons), details);
}

export function text(svg) {
  return new XMLSerializer().serializeToString(svg);
}

async function png(svg) {
  const image = element("img", { src: `data:image/svg+xml,${encodeURIComponent(text(svg))}` });
  await image.decode();
  const canvas = element("canvas", { width: FINE * svg.getAttribute("width"), height: FINE * svg.getAttribute("height") });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

function save(blob, download) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
