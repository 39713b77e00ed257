// Starts the figure of the page's lesson. On a server with models, readers can also enter their own sentences.

import { ablationFacts, ablationFigure } from "./ablation.js";
import { alignmentFigure } from "./alignment.js";
import { beamFacts, beamFigure } from "./beam.js";
import { bottleneckFacts, bottleneckFigure } from "./bottleneck.js";
import { markAnswered, showChoices } from "./choices.js";
import { circuitFacts, circuitFigure } from "./circuit.js";
import { contextFacts, contextFigure } from "./context.js";
import { contributionsFacts, contributionsFigure } from "./contributions.js";
import { el } from "./dom.js";
import { featuresFacts, featuresFigure } from "./features.js";
import { headsFacts, headsFigure } from "./heads.js";
import { layersFacts, layersFigure } from "./layers.js";
import { linkState } from "./link_state.js";
import { liveFacts, liveFigure } from "./live.js";
import { masksFigure } from "./masks.js";
import { memoryFigure } from "./memory.js";
import { createLanguageMenu, gettext, gettextNoop, LANGUAGE, translated, translatePage } from "./messages.js";
import { patchingFacts, patchingFigure } from "./patching.js";
import { positionsFacts, positionsFigure } from "./positions.js";
import { scaleFigure } from "./scale.js";

// The figure of each lesson: a function of a container and the lesson's record that returns a function of a sentence.
// The first fills the container once, the second shows a sentence in it.
const FIGURES = {
  bottleneck: bottleneckFigure,
  alignment: alignmentFigure,
  memory: memoryFigure,
  masks: masksFigure,
  positions: positionsFigure,
  heads: headsFigure,
  scale: scaleFigure,
  beam: beamFigure,
  layers: layersFigure,
  contributions: contributionsFigure,
  ablation: ablationFigure,
  patching: patchingFigure,
  context: contextFigure,
  live: liveFigure,
  features: featuresFigure,
  circuit: circuitFigure,
};
// What the text of a lesson says about its record: a function of the record that returns texts by name. The page has an
// element with the attribute data-fact for each.
const FACTS = {
  bottleneck: bottleneckFacts,
  positions: positionsFacts,
  heads: headsFacts,
  beam: beamFacts,
  layers: layersFacts,
  contributions: contributionsFacts,
  ablation: ablationFacts,
  patching: patchingFacts,
  context: contextFacts,
  live: liveFacts,
  features: featuresFacts,
  circuit: circuitFacts,
};
// Examples of what a reader can enter.
const PLACEHOLDER = "We are going to the park";
const PAIRS = {
  patching: {
    labels: [gettext("or your own CLEAN"), gettext("and OTHER")],
    placeholders: ["I closed the window.", "I closed the book."],
  },
  context: {
    labels: [gettext("or your own previous sentence"), gettext("and sentence")],
    placeholders: ["I bought a lamp.", "It is expensive."],
  },
};
// Errors of the server that readers meet.
const ERRORS = [
  gettextNoop("A sentence of 1 to 120 characters, please."),
  gettextNoop("a lesson takes one sentence. Give a short one."),
  gettextNoop(
    "both sentences have the same translation. Give two words: one of the translation, and one in its place.",
  ),
  gettextNoop("there are no words to patch. Give two sentences with words in them."),
  gettextNoop("the translation is empty. Give another sentence."),
  gettextNoop("the text is too long for this model"),
  gettextNoop("The server is busy, please come again"),
];
const SEPARATOR = " / "; // between two sentences in a request
const lessonName = document.body.dataset.lesson;

/** @type {() => void} */
let restoreLink = () => {};

startPage();
if (lessonName) {
  const figure = document.getElementById("figure");
  startFigure(figure, globalThis.lessonRecords[lessonName]);
  showChoices(lessonName);
  restoreLink = linkState(figure);
  showTypedSentence(figure);
} else markAnswered();

// Translate the page. Where a link has chosen its language, links to other pages keep it, and the embedded page has it.
function startPage() {
  translatePage();
  document.title = document.title.replace(/.*(?= · )/, translated);
  const menu = createLanguageMenu();
  if (menu) document.body.append(el("footer", {}, menu));
  for (const frame of document.querySelectorAll("iframe")) frame.src += `&lang=${LANGUAGE}`;
  const isLinked = [location.search, location.hash].some((part) => new URLSearchParams(part.slice(1)).has("lang"));
  if (!isLinked) return;
  for (const link of document.querySelectorAll('a[href$=".html"]'))
    link.setAttribute("href", `${link.getAttribute("href")}?lang=${LANGUAGE}`);
}

// Request the sentence that the link names, which another reader has typed.
function showTypedSentence(figure) {
  const typed = new URLSearchParams(location.hash.slice(1)).get("text");
  const form = figure.querySelector(".sentence-select form");
  if (!typed || !form) return;
  const texts = typed.split(SEPARATOR);
  form.querySelectorAll("input").forEach((input, i) => {
    input.value = texts[i] ?? "";
  });
  form.requestSubmit();
}

function startFigure(root, record) {
  root.replaceChildren();
  const facts = { ...document.body.dataset, ...FACTS[lessonName]?.(record) };
  for (const element of document.querySelectorAll("[data-fact]"))
    element.textContent = facts[element.getAttribute("data-fact") ?? ""];
  const container = el("div", { class: "figure-content" });
  if (record.sentences) root.append(sentenceSelect(record.sentences, (sentence) => showSentence(sentence)));
  root.append(container);
  const showSentence = FIGURES[lessonName](container, record);
  if (record.sentences) showSentence(record.sentences[0]);
  root.dataset.ready = "yes";
}

// A list of sentences, and on a server with models a form that adds one.
function sentenceSelect(sentences, onSelect) {
  const select = el("select", { id: "sentence", "data-name": "sentence" });
  const updateOptions = () => {
    const options = sentences.map((sentence, i) => el("option", { value: i }, sentence.text));
    select.replaceChildren(...options);
  };
  updateOptions();
  select.addEventListener("change", () => onSelect(sentences[Number(select.value)]));
  const node = el("div", { class: "sentence-select" }, el("label", {}, el("span", {}, gettext("Sentence")), select));
  const { command } = document.body.dataset; // what the figure needs beside trained models
  if ("live" in document.body.dataset) node.append(...customSentenceForm(addSentence));
  else {
    const commands = [command, "translucid learn --train --open"].filter(Boolean).join(" && ");
    const text = `${gettext("Recorded. To type your own sentences:")} `;
    node.append(el("p", { class: "hint" }, text, el("code", {}, commands)));
  }
  return node;

  function addSentence(sentence) {
    sentences.push(sentence);
    updateOptions();
    select.value = sentences.length - 1;
    onSelect(sentence);
    restoreLink();
  }
}

// A form for a sentence, and a paragraph for its errors. onRecord is called with the server's record of the sentence.
function customSentenceForm(onRecord) {
  const { labels, placeholders } = PAIRS[lessonName] ?? {
    labels: [gettext("or your own")],
    placeholders: [PLACEHOLDER],
  };
  const inputs = placeholders.map((placeholder) =>
    el("input", { type: "text", maxlength: Math.floor(120 / placeholders.length), required: true, placeholder }),
  );
  const fields = inputs.map((input, i) => el("label", {}, el("span", {}, labels[i]), input));
  const button = el("button", { type: "submit" }, gettext("Show"));
  const problem = el("p", { class: "problem", "aria-live": "polite" });
  const form = el("form", {}, ...fields, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    button.disabled = true;
    try {
      const text = inputs.map((input) => input.value).join(SEPARATOR);
      const record = await requestRecord(text);
      /** @type {any} */ (document.getElementById("figure")).dataset.typed = text;
      onRecord(record);
    } catch (error) {
      // fetch throws a TypeError if there is no connection.
      problem.textContent = error instanceof TypeError ? gettext("The server does not respond.") : error.message;
    }
    button.disabled = false;
  });
  return [form, problem];
}

// Request the record of a sentence for this lesson.
async function requestRecord(text) {
  const response = await fetch("look", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ lesson: lessonName, q: text }),
  });
  const answer = await response.json();
  if (!response.ok) {
    const text = answer.error.replace(/^Invalid request: /, "");
    throw new Error(ERRORS.includes(text) ? translated(text) : text);
  }
  return answer;
}
