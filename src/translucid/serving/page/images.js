// Images: choose one and see its caption, with the same views as for translations.

import { withApiKey } from "./api_key.js";
import { CAPTION_VIEW, captionSentence } from "./caption_view.js";
import { IMAGE_METHODS } from "./explanations.js";
import { showInspector } from "./inspector.js";
import { gettext } from "./messages.js";
import { $, option, progressIndicator } from "./page_elements.js";
import { RETRY_DELAY, readResponse, settleIfCurrent } from "./requests.js";
import { copyToClipboard } from "./storage.js";

const LARGEST_SIDE = 1024; // pixels; larger images are scaled down before the upload
const SENT_UNCHANGED = ["image/jpeg", "image/png", "image/webp"]; // other formats are converted to JPEG
const JPEG_QUALITY = 0.92;
const CONTINUATIONS = 8;
const MESSAGE_DURATION = 1500; // milliseconds
/** @type {Blob | null} */
let image = null; // the file to send
let fileName = ""; // shown in the code of the views
let selectedTab = "attention";
let methods = {}; // the server's explanation methods for images
let latestRequest = 0; // responses to earlier requests are ignored
let retryTimer;
const progress = progressIndicator($("images"), $("image-problem"));

// Set up. `showSection` shows this section of the page, for an image that is pasted.
export function initImages(captioners, settings, showSection) {
  methods = Object.fromEntries(
    Object.entries(IMAGE_METHODS).filter(([name]) => settings.imageExplanations.includes(name)),
  );
  $("captioner").append(...captioners.map((model) => option(model.name, model.name)));
  /** @type {HTMLElement} */ ($("captioner").parentElement).hidden = captioners.length < 2;
  $("captioner").addEventListener("change", captionAgain);
  $("copy-caption").addEventListener("click", copyCaption);
  for (const input of [$("image-file"), $("camera-file")]) input.addEventListener("change", onFileChosen);
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!file || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    showSection();
    openImage(file);
  });
}

async function copyCaption() {
  const copied = await copyToClipboard($("caption").textContent);
  $("caption-status").textContent = copied
    ? gettext("Copied")
    : gettext("This browser does not allow the page to copy.");
  setTimeout(() => {
    $("caption-status").textContent = "";
  }, MESSAGE_DURATION);
}

function onFileChosen({ target: input }) {
  if (input.files.length) openImage(input.files[0]);
  input.value = ""; // so that choosing the same file again is a change
}

// Request a caption for the current image again.
export function captionAgain() {
  if (image) requestCaption();
}

// Show an image, and request a caption.
export async function openImage(file) {
  const requestId = ++latestRequest;
  clear();
  image = null;
  fileName = file.name || "image.png";
  $("image").hidden = true;
  try {
    const bitmap = await createImageBitmap(file);
    if (requestId !== latestRequest) return;
    const scale = drawImage(bitmap);
    bitmap.close();
    $("image").hidden = false;
    if (scale === 1 && SENT_UNCHANGED.includes(file.type)) image = file;
    else
      image = await new Promise((resolve) => {
        $("image-canvas").toBlob(resolve, "image/jpeg", JPEG_QUALITY);
      });
  } catch {
    if (requestId === latestRequest)
      showProblem(new Error(gettext("The browser cannot display this file as an image.")));
    return;
  }
  if (requestId === latestRequest) requestCaption();
}

// Draw an image onto the canvas, scaled down if it is too large; return the scale.
function drawImage(bitmap) {
  const scale = Math.min(1, LARGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(scale * bitmap.width));
  const height = Math.max(1, Math.round(scale * bitmap.height));
  for (const canvas of [$("image-canvas"), $("image-overlay")]) Object.assign(canvas, { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ ($("image-canvas").getContext("2d"));
  context.fillStyle = "white"; // the model sees transparent pixels as white
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  return scale;
}

// Post the image with other fields as a form.
function postImage(fields, path = "caption") {
  const form = new FormData();
  const allFields = withApiKey({ model: $("captioner").value, ...fields });
  for (const [name, value] of Object.entries(allFields)) {
    if (value !== null && value !== undefined) form.append(name, value);
  }
  form.append("file", /** @type {Blob} */ (image), "image");
  return readResponse(fetch(path, { method: "POST", body: form }));
}

// Request a caption, or the attention for the caption in `fields`; then focus the word with an index.
async function requestCaption(fields = {}, wordIndex = null) {
  clearTimeout(retryTimer);
  const requestId = ++latestRequest;
  progress.start();
  try {
    const response = await postImage(fields);
    if (requestId !== latestRequest) return;
    showProblem(null);
    const inspector = showCaption(response);
    if (wordIndex !== null) inspector?.focusWord(wordIndex);
  } catch (error) {
    if (requestId !== latestRequest) return;
    if (!fields.caption) clear(); // otherwise the current view is still valid
    showProblem(error);
    if (error.retryable) retryTimer = setTimeout(() => requestCaption(fields), RETRY_DELAY);
  } finally {
    if (requestId === latestRequest) progress.stop();
  }
}

// Remove everything that belongs to another image.
function clear() {
  clearTimeout(retryTimer);
  $("caption").textContent = "";
  $("copy-caption").disabled = true;
  $("caption-inspection").replaceChildren();
  $("image-canvas").setAttribute("aria-label", gettext("the image"));
  const overlay = $("image-overlay");
  overlay.getContext("2d")?.clearRect(0, 0, overlay.width, overlay.height);
  showProblem(null);
}

function showProblem(error) {
  $("image-problem").textContent = error ? error.message : "";
}

// Show a response of /caption; return its view, or null for an empty caption.
function showCaption(response) {
  $("caption").textContent = response.caption || gettext("The caption is empty.");
  $("copy-caption").disabled = !response.caption;
  $("image-canvas").setAttribute("aria-label", response.caption || gettext("the image"));
  if (!response.words.length) {
    $("caption-inspection").replaceChildren();
    return null;
  }
  const content = {
    run: `runs/${response.model}`,
    image: fileName,
    sentences: [captionSentence(response)],
    view: CAPTION_VIEW,
    hasSingleMap: response.heads < 2,
    tab: selectedTab,
  };
  return showInspector($("caption-inspection"), content, serverRequests());
}

// Return the requests of the view. Responses about an old caption never arrive.
function serverRequests() {
  const requestId = latestRequest;
  const send = (fields, path) => settleIfCurrent(postImage(fields, path), () => requestId === latestRequest);
  const explain = async ({ text: caption }, method, contrast) => {
    const { explanation } = await send({ caption, explain: method, ...contrast });
    return explanation;
  };
  const continuations = async (_sentence, _tokens, prefix) => {
    const { ways } = await send({ prefix, ways: CONTINUATIONS });
    return ways.map(({ next, probability, caption }) => ({ next, probability: Math.log(probability), text: caption }));
  };
  return {
    methods,
    explain,
    continuations,
    onError: showProblem,
    onTabChange: (name) => {
      selectedTab = name;
    },
    maps: async ({ text: caption }) => captionSentence(await send({ caption, maps: true })).record,
    tree: async ({ text: caption }) => (await send({ caption, tree: true })).tree,
    pdf: ({ text: caption }, view) => send({ caption, ...view }, "caption/picture"),
    onChoose: (_, caption, wordIndex) => requestCaption({ caption }, wordIndex),
  };
}
