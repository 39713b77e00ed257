// Images: choose one and view its caption, with the same view as for translations.

import { $, answered, option, RETRY, waiting, whileWanted } from "./asking.js";
import { withKey } from "./key.js";
import { copy } from "./keeping.js";
import { captionOf, CAPTIONS } from "./captioned.js";
import { showSpace } from "./space.js";
import { PICTURED as METHODS } from "./why.js";

const LARGEST = 1024; // pixels per side; larger images are scaled down before the upload
const SENT = ["image/jpeg", "image/png", "image/webp"]; // sent unchanged; others as JPEG
const WAYS = 8; // number of continuations offered
const SAID = 1500; // milliseconds for which "Copied" is shown
let image = null; // the file to send
let name = ""; // file name, for the code
let mode = "attention"; // the chosen view
let methods = {}; // explanation methods of the server
let turn = 0; // late responses are ignored
let timer;
const work = waiting($("images"), (text) => { $("image-problem").textContent = text; });

// Set up; `show` switches to this part of the page.
export function startImages(captioners, settings, show) {
  methods = Object.fromEntries(Object.entries(METHODS).filter(([name]) => settings.imageExplanations.includes(name)));
  $("captioner").append(...captioners.map((one) => option(one.name, one.name)));
  $("captioner").parentElement.hidden = captioners.length < 2;
  $("captioner").addEventListener("change", runAgain);
  $("copy-caption").addEventListener("click", async () => {
    $("caption-said").textContent = (await copy($("caption").textContent)) ? "Copied" : "This browser does not allow the page to copy.";
    setTimeout(() => { $("caption-said").textContent = ""; }, SAID);
  });
  for (const id of ["file", "camera"]) {
    $(id).addEventListener("change", () => { if ($(id).files.length) takeImage($(id).files[0]); $(id).value = ""; });
  }
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (!file || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    show();
    takeImage(file);
  });
}

// Repeat the request for the current image.
export function runAgain() {
  if (image) run();
}

// Show an image, and request a caption.
export async function takeImage(file) {
  const mine = ++turn;
  clear();
  image = null;
  name = file.name || "image.png";
  $("image").hidden = true;
  try {
    const bitmap = await createImageBitmap(file);
    if (mine !== turn) return;
    const scale = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
    for (const canvas of [$("picture"), $("veil")]) {
      canvas.width = Math.max(1, Math.round(scale * bitmap.width));
      canvas.height = Math.max(1, Math.round(scale * bitmap.height));
    }
    const pen = $("picture").getContext("2d");
    pen.fillStyle = "white"; // the model sees transparent pixels as white
    pen.fillRect(0, 0, $("picture").width, $("picture").height);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(bitmap, 0, 0, $("picture").width, $("picture").height);
    bitmap.close();
    $("image").hidden = false;
    if (scale === 1 && SENT.includes(file.type)) image = file;
    else image = await new Promise((done) => { $("picture").toBlob(done, "image/jpeg", 0.92); });
  } catch {
    if (mine === turn) problem(new Error("The browser cannot display this file as an image."));
    return;
  }
  if (mine === turn) run();
}

function ask(fields, path = "caption") {
  const form = new FormData();
  const all = withKey({ model: $("captioner").value, ...fields });
  for (const [field, value] of Object.entries(all)) if (value !== null && value !== undefined) form.append(field, value);
  form.append("file", image, "image");
  return answered(fetch(path, { method: "POST", body: form }));
}

// Request a caption, or attention for a given one; then focus a word of it.
async function run(fields = {}, word = null) {
  clearTimeout(timer);
  const mine = ++turn;
  work.begin();
  try {
    const answer = await ask(fields);
    if (mine !== turn) return;
    problem();
    const space = show(answer);
    if (word !== null) space?.focus(word);
  } catch (error) {
    if (mine !== turn) return;
    if (!fields.caption) clear(); // otherwise the current view is still valid
    problem(error);
    if (error.gone) timer = setTimeout(() => run(fields), RETRY);
  } finally {
    if (mine === turn) work.end();
  }
}

// Remove everything that belongs to another image.
function clear() {
  clearTimeout(timer);
  $("caption").textContent = "";
  $("copy-caption").disabled = true;
  $("captioned").replaceChildren();
  $("picture").setAttribute("aria-label", "the image");
  $("veil").getContext("2d").clearRect(0, 0, $("veil").width, $("veil").height);
  problem();
}

function problem(error) {
  $("image-problem").textContent = error ? error.message : "";
}

function show(answer) {
  $("caption").textContent = answer.caption || "The caption is empty.";
  $("copy-caption").disabled = !answer.caption;
  $("picture").setAttribute("aria-label", answer.caption || "the image");
  if (!answer.words.length) { $("captioned").replaceChildren(); return null; }
  const seen = { run: `runs/${answer.model}`, image: name, sentences: [captionOf(answer)], of: CAPTIONS, single: answer.heads < 2, mode };
  return showSpace($("captioned"), seen, server());
}

// Requests of the view. Requests about an old caption never resolve.
function server() {
  const mine = turn;
  const wanted = () => mine === turn;
  const question = (fields, path) => whileWanted(ask(fields, path), wanted);
  return {
    turned: (one) => { mode = one; },
    problem,
    methods,
    explain: async ({ text: caption }, method, contrast) => (await question({ caption, explain: method, ...contrast })).explanation,
    maps: async ({ text: caption }) => captionOf(await question({ caption, maps: true })).record,
    tree: async ({ text: caption }) => (await question({ caption, tree: true })).tree,
    pdf: ({ text: caption }, view) => question({ caption, ...view }, "caption/picture"),
    ways: async (_, tokens, prefix) => {
      const { ways } = await question({ prefix, ways: WAYS });
      return ways.map(({ next, probability, caption }) => ({ next, probability: Math.log(probability), text: caption }));
    },
    choose: (_, caption, word) => run({ caption }, word),
  };
}
