// Starts the figure of the page's lesson. On a server with models, readers can also enter their own sentences.
import { el } from "./dom.js";
import { bottleneckFigure } from "./bottleneck.js";
import { alignmentFigure } from "./alignment.js";
import { memoryFigure } from "./memory.js";
import { masksFigure } from "./masks.js";
import { positionsFigure } from "./positions.js";
import { headsFigure } from "./heads.js";
import { scaleFigure } from "./scale.js";
import { beamFigure } from "./beam.js";
import { layersFigure } from "./layers.js";
import { contributionsFigure } from "./contributions.js";
import { ablationFigure } from "./ablation.js";
import { patchingFigure } from "./patching.js";
import { contextFigure } from "./context.js";

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
};
// Examples of what a reader can enter.
const PLACEHOLDER = "We are going to the park";
const PLACEHOLDERS_OF_PAIRS = {
  patching: "I closed the window. / I closed the book.",
  context: "I bought a lamp. / It is expensive.",
};
const lessonName = document.body.dataset.lesson;

if (lessonName) startFigure(document.getElementById("figure"), globalThis.lessonRecords[lessonName]);

function startFigure(root, record) {
  root.replaceChildren();
  const container = el("div", { class: "figure-content" });
  if (record.sentences) root.append(sentenceSelect(record.sentences, (sentence) => showSentence(sentence)));
  root.append(container);
  const showSentence = FIGURES[lessonName](container, record);
  if (record.sentences) showSentence(record.sentences[0]);
  root.dataset.ready = "yes";
}

// A list of sentences, and on a server with models a form that adds one.
function sentenceSelect(sentences, onSelect) {
  const select = el("select", { id: "sentence" });
  const updateOptions = () => {
    const options = sentences.map((sentence, i) => el("option", { value: i }, sentence.text));
    select.replaceChildren(...options);
  };
  updateOptions();
  select.addEventListener("change", () => onSelect(sentences[Number(select.value)]));
  const node = el("div", { class: "sentence-select" }, el("label", {}, el("span", {}, "Sentence"), select));
  if ("live" in document.body.dataset) node.append(...customSentenceForm(addSentence));
  return node;

  function addSentence(sentence) {
    sentences.push(sentence);
    updateOptions();
    select.value = sentences.length - 1;
    onSelect(sentence);
  }
}

// A form for a sentence, and a paragraph for its errors. onRecord is called with the server's record of the sentence.
function customSentenceForm(onRecord) {
  const placeholder = PLACEHOLDERS_OF_PAIRS[lessonName] ?? PLACEHOLDER;
  const input = el("input", { type: "text", maxlength: 120, required: true, placeholder });
  const button = el("button", { type: "submit" }, "Show");
  const problem = el("p", { class: "problem", "aria-live": "polite" });
  const form = el("form", {}, el("label", {}, el("span", {}, "or your own"), input), button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    button.disabled = true;
    try {
      onRecord(await requestRecord(input.value));
    } catch (error) {
      // fetch throws a TypeError if there is no connection.
      problem.textContent = error instanceof TypeError ? "The server does not respond." : error.message;
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
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
