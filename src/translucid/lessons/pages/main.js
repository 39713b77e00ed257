// Starts the figure of the page's lesson; where a server is there, it takes sentences of the reader's own.
import { el } from "./dom.js";
import { bottleneck } from "./bottleneck.js";
import { alignment } from "./alignment.js";
import { memory } from "./memory.js";
import { masks } from "./masks.js";
import { positions } from "./positions.js";
import { heads } from "./heads.js";
import { scale } from "./scale.js";
import { beam } from "./beam.js";
import { layers } from "./layers.js";
import { contributions } from "./contributions.js";
import { ablation } from "./ablation.js";
import { patching } from "./patching.js";
import { context } from "./context.js";

const FIGURES = { bottleneck, alignment, memory, masks, positions, heads, scale, beam, layers, contributions, ablation, patching, context };
const OWN = { patching: "I closed the window. / I closed the book.", context: "I bought a lamp. / It is expensive." }; // what a reader may type, where it is not one sentence
const name = document.body.dataset.lesson;

if (name) start(document.getElementById("figure"), globalThis.lessonRecords[name]);

// A figure is a function of its place and its record that returns what draws a sentence.
function start(root, record) {
  root.replaceChildren();
  const place = el("div", { class: "stage" });
  if (record.sentences) root.append(chooser(record.sentences, (sentence) => draw(sentence)));
  root.append(place);
  const draw = FIGURES[name](place, record);
  if (record.sentences) draw(record.sentences[0]);
  root.dataset.ready = "yes";
}

function chooser(sentences, onChoose) {
  const select = el("select", { id: "sentence" });
  const fill = () => select.replaceChildren(...sentences.map((one, i) => el("option", { value: i }, one.text)));
  fill();
  select.addEventListener("change", () => onChoose(sentences[Number(select.value)]));
  const node = el("div", { class: "chooser" }, el("label", {}, el("span", {}, "Sentence"), select));
  if ("live" in document.body.dataset) node.append(...asking((sentence) => {
    sentences.push(sentence);
    fill();
    select.value = sentences.length - 1;
    onChoose(sentence);
  }));
  return node;
}

function asking(onAnswer) {
  const input = el("input", { type: "text", maxlength: 120, required: true, placeholder: OWN[name] ?? "We are going to the park" });
  const button = el("button", { type: "submit" }, "Show");
  const problem = el("p", { class: "problem", "aria-live": "polite" });
  const form = el("form", {}, el("label", {}, el("span", {}, "or your own"), input), button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    button.disabled = true;
    try {
      const answer = await fetch("look", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ lesson: name, q: input.value }) });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      onAnswer(found);
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The server does not respond." : error.message;
    }
    button.disabled = false;
  });
  return [form, problem];
}
