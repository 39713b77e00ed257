// The page: its parts, and shared setup.

import { $, RETRY, answered } from "./asking.js";
import { startDocuments, takeDocument } from "./documents.js";
import { give, startDrops, textOf } from "./drops.js";
import { linked } from "./keeping.js";
import { startKey } from "./key.js";
import { startKeys } from "./keys.js";
import { first } from "./languages.js";
import { startPast } from "./past.js";
import { copyLink, copyTranslation, open, put, run, startTexts, swap } from "./texts.js";

const KINDS = ["texts", "documents", "images", "judging"];
const SHOWN = { texts: "translation", documents: "translation", images: "captions", judging: "models" };
let kinds = []; // the parts that have models

start();

async function start() {
  let all, settings, images, judges;
  try {
    [all, settings] = await Promise.all(["models", "frontend/settings"].map((path) => answered(fetch(path))));
    const wanted = (...kinds) => all.some((one) => kinds.includes(one.reads));
    images = wanted("images") ? await import("./images.js") : null; // few servers have models for these
    judges = wanted("texts", "prompts") ? await import("./judging.js") : null;
  } catch (error) {
    $("problem").textContent = error.message;
    setTimeout(start, RETRY);
    return;
  }
  $("problem").textContent = "";
  $("to-lessons").hidden = !settings.lessons;
  const reading = (kind) => all.filter((one) => one.reads === kind);
  const [models, captioners, classifiers, generators] = ["text", "images", "texts", "prompts"].map(reading);
  const judging = [...classifiers, ...generators];
  const there = { texts: models, documents: models, images: captioners, judging };
  kinds = KINDS.filter((kind) => there[kind].length);
  for (const kind of KINDS) {
    Object.assign($(`on-${kind}`), { hidden: !kinds.includes(kind), disabled: false });
    $(`on-${kind}`).addEventListener("click", () => turnTo(kind));
  }
  $("kinds").hidden = kinds.length < 2;
  document.querySelector("h1 span").textContent = `${SHOWN[kinds[0]]} you can see through`;
  if (matchMedia("(hover: none)").matches) $("source").placeholder = "Type or paste"; // touch screens have no drag and drop
  turnTo(kinds.find((kind) => location.hash === `#${kind}`) ?? kinds[0]);
  startKey(settings, () => { if (models.length) run(); images?.runAgain(); });
  if (models.length) startTexts(models, settings);
  if (models.length) startDocuments(settings, first);
  images?.startImages(captioners, settings, () => turnTo("images"));
  judges?.startJudging(classifiers, generators, settings);
  const takers = {
    image: images ? shownIn("images", images.takeImage) : null,
    document: models.length ? shownIn("documents", takeDocument) : null,
    text: models.length ? (file) => takeText(file, settings.charLimit) : null,
  };
  startDrops(takers);
  $("any-file").addEventListener("change", () => {
    if ($("any-file").files.length) give($("any-file").files[0], takers);
    $("any-file").value = "";
  });
  startPast((entry) => { turnTo("texts"); open(entry); $("source").focus(); });
  startKeys(shortcuts());
  $("open-history").hidden = !models.length;
  document.body.classList.add("ready");
}

// Show a part of the page.
function turnTo(kind) {
  for (const one of KINDS) {
    $(one).hidden = one !== kind;
    $(`on-${one}`).setAttribute("aria-pressed", one === kind);
  }
  $("texts-and-documents").hidden = !["texts", "documents"].includes(kind);
  $("for-comparing").hidden = kind === "documents";
  if (kind === "texts" && linked()) return;
  history.replaceState(null, "", kind === kinds[0] ? location.pathname + location.search : `#${kind}`);
}

function shownIn(kind, take) {
  return (file) => { turnTo(kind); return take(file); };
}

// Put a short text into the text field, unless it is dropped on the documents.
async function takeText(file, limit) {
  if (!$("documents").hidden) return false;
  const text = await textOf(file, limit);
  if (text === null) return false;
  turnTo("texts");
  put(text);
  return true;
}

function shortcuts() {
  const texts = kinds.includes("texts");
  const onTexts = (does) => () => { if (!$("texts").hidden) does(); };
  const field = () => [...document.querySelectorAll("main textarea, main input")].find((one) => one.checkVisibility())?.focus();
  const every = [
    { keys: "Ctrl Enter", what: "translate now (also while typing)", does: onTexts(run) },
    { keys: "Ctrl Shift S", what: "swap languages and texts (also while typing)", does: onTexts(swap) },
    { keys: "S", what: "swap languages and texts", does: onTexts(swap) },
    { keys: "/", what: "go to the text field", does: field, always: true },
    { keys: "C", what: "copy the translation", does: onTexts(copyTranslation) },
    { keys: "L", what: "copy a link to it", does: onTexts(copyLink) },
    { keys: "H", what: "open the history", does: () => $("open-history").click() },
    ...kinds.map((kind, i) => ({ keys: String(i + 1), what: `go to ${$(`on-${kind}`).textContent}`, does: () => turnTo(kind), always: true })),
    { keys: "?", what: "show these shortcuts", does: () => $("open-keys").click(), always: true },
  ];
  return every.filter(({ always }) => always || texts);
}
