// A menu to save a view as PNG, SVG, JSON, PDF or HTML, and to show the Python code that reproduces it.

import { element, svgElement } from "./elements.js";
import { gettext } from "./messages.js";

const PNG_HEADER = 33; // bytes: the signature and the chunk `IHDR`
const PNG_SCALE = 2; // pixels of the PNG per CSS pixel
const COPIED_MILLISECONDS = 1500; // for which the button says "Copied"
const [CAPTION_SIZE, CAPTION_LINE] = [11, 16]; // pixels
const REVOKE_MILLISECONDS = 10_000; // after which a download has certainly started

// Show the menu in `root`.
//
// name: the file name without its ending.
// svg(): returns the view as an SVG element.
// data(): returns the values of the view, for JSON.
// code(): returns the Python code.
// caption(ending): returns the lines of the caption of a file; left out if there is none. A file carries it as its description, and a
//   copied picture also shows it.
// pdf(), html(): return a promise for a blob; left out if there is no PDF or no page.
export function showExportMenu(root, /** @type {any} */ { name, svg, data, code, caption, pdf, html }) {
  const formats = {
    PNG: async () => describedPng(await renderPng(svg()), caption?.("png")),
    SVG: () => new Blob([serializeSvg(described(svg(), caption?.("svg")))], { type: "image/svg+xml" }),
    JSON: () => new Blob([JSON.stringify(data(), null, 1)], { type: "application/json" }),
    ...(pdf ? { PDF: pdf } : {}),
    ...(html ? { HTML: html } : {}),
  };
  const buttons = Object.entries(formats).map(([format, createBlob]) => saveButton(name, format, createBlob));
  const label = element("span", { textContent: gettext("Save as") });
  const toolbar = element(
    "div",
    { className: "toolbar export-formats", role: "group", ariaLabel: gettext("save") },
    label,
    ...buttons,
    ...(caption ? [copyButton(() => captionedSvg(svg(), caption("svg")))] : []),
  );
  root.replaceChildren(toolbar, codeDetails(code));
}

function saveButton(name, format, createBlob) {
  const button = element("button", {
    type: "button",
    textContent: format,
    ariaLabel: gettext("save as {format}", { format }),
  });
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      download(await createBlob(), `${name}.${format.toLowerCase()}`);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

// A button that copies a picture as text: editors of vector graphics and of HTML paste it.
function copyButton(text) {
  const label = gettext("Copy SVG with caption");
  const button = element("button", { type: "button", textContent: label });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = gettext("Copied");
    } catch {
      button.textContent = gettext("The browser does not allow copying. Save as SVG instead.");
    }
    setTimeout(() => {
      button.textContent = label;
    }, COPIED_MILLISECONDS);
  });
  return button;
}

// Add the lines of a caption to an SVG image as its description, which is not drawn.
function described(svg, lines) {
  if (lines) svg.prepend(svgElement("desc", {}, lines.join("\n")));
  return svg;
}

// Add the lines of a caption to a PNG image as its description: a chunk `iTXt` with its length and a checksum, after the header.
async function describedPng(blob, lines) {
  if (!lines) return blob;
  const content = new TextEncoder().encode(`iTXtDescription\0\0\0\0\0${lines.join("\n")}`);
  const chunk = new DataView(new ArrayBuffer(content.length + 8));
  chunk.setUint32(0, content.length - 4); // without the name of the chunk
  new Uint8Array(chunk.buffer).set(content, 4);
  chunk.setUint32(content.length + 4, crc32(content));
  return new Blob([blob.slice(0, PNG_HEADER), chunk, blob.slice(PNG_HEADER)], { type: blob.type });
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

// Return an SVG image as text, with the lines of a caption below it. Lines that are wider than the image are compressed.
function captionedSvg(svg, lines) {
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const newHeight = height + (lines.length + 1) * CAPTION_LINE;
  svg.setAttribute("height", newHeight);
  svg.setAttribute("viewBox", `0 0 ${width} ${newHeight}`);
  svg.querySelector("rect")?.setAttribute("height", newHeight); // the background
  lines.forEach((line, i) => {
    const place = { x: CAPTION_LINE, y: height + (i + 1) * CAPTION_LINE, "font-size": CAPTION_SIZE, fill: "#777777" };
    const room = width - 2 * CAPTION_LINE;
    const fit = line.length * CAPTION_SIZE * 0.6 > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
    svg.append(svgElement("text", { ...place, ...fit }, line));
  });
  return serializeSvg(described(svg, lines));
}

function codeDetails(code) {
  const lines = element("pre", { tabIndex: 0 });
  const copyButton = element("button", { type: "button", textContent: gettext("Copy") });
  const details = element(
    "details",
    { className: "code" },
    element("summary", { textContent: gettext("As code") }),
    lines,
    copyButton,
  );
  details.addEventListener("toggle", () => {
    lines.textContent = details.open ? code() : "";
  });
  copyButton.addEventListener("click", async () => {
    getSelection()?.selectAllChildren(lines); // lets the user copy the code where the page may not write to the clipboard
    try {
      await navigator.clipboard.writeText(lines.textContent);
      copyButton.textContent = gettext("Copied");
    } catch {
      copyButton.textContent = gettext("Selected");
    }
    setTimeout(() => {
      copyButton.textContent = gettext("Copy");
    }, COPIED_MILLISECONDS);
  });
  return details;
}

function serializeSvg(svg) {
  return new XMLSerializer().serializeToString(svg);
}

async function renderPng(svg) {
  const image = element("img", { src: `data:image/svg+xml,${encodeURIComponent(serializeSvg(svg))}` });
  await image.decode();
  const canvas = element("canvas", {
    width: PNG_SCALE * svg.getAttribute("width"),
    height: PNG_SCALE * svg.getAttribute("height"),
  });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob(resolve, "image/png");
  });
}

function download(blob, fileName) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: fileName }).click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MILLISECONDS);
}
