// Texts without translation: classification with explanations, and generation with a language model.

import { $, asksItself, element, option, pause, post, waiting } from "./asking.js";
import { roving } from "./roving.js";

const WAIT = 300; // milliseconds after the last key
const CONSIDERED = 6; // alternatives shown for each piece
const turns = { classify: 0, generate: 0 }; // late responses are ignored
let timer;
const wait = waiting($("judging"), (text) => { $("judge-problem").textContent = text; });

// Set up with classifiers and language models; either list may be empty.
export function startJudging(classifiers, generators, settings) {
  for (const [id, models] of [["classifier", classifiers], ["generator", generators]]) {
    $(id).append(...models.map((one) => option(one.name, one.name)));
    $(id).parentElement.hidden = models.length < 2;
  }
  $("judged").hidden = !classifiers.length;
  $("went-on").hidden = !generators.length;
  for (const way of $("judge-method").querySelectorAll("option")) {
    if (way.value && !settings.explanations.includes(way.value)) way.remove();
  }
  if (classifiers.length) {
    $("judge-text").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { asksItself(); judge(); }, pause(WAIT)); });
    for (const id of ["classifier", "judge-method"]) $(id).addEventListener("change", judge);
  }
  $("write").addEventListener("click", write);
}

async function work(place, path, fields, show) {
  const mine = ++turns[path];
  wait.begin();
  try {
    const answer = await post(path, { q: $("judge-text").value, ...fields });
    if (mine !== turns[path]) return;
    $("judge-problem").textContent = "";
    show(answer);
  } catch (error) {
    if (mine !== turns[path]) return;
    $(place).replaceChildren();
    $("judge-problem").textContent = error.message;
  } finally {
    if (mine === turns[path]) wait.end();
  }
}

function judge() {
  if (!$("judge-text").value.trim()) {
    turns.classify++;
    for (const id of ["labels", "judge-words", "judge-note"]) $(id).replaceChildren();
    return;
  }
  const explain = $("judge-method").value;
  work("labels", "classify", { model: $("classifier").value, ...(explain ? { explain } : {}) }, judged);
}

// The labels with their probabilities, and the words; bluer words support the most probable label more.
function judged(answer) {
  const sorted = Object.entries(answer.probabilities).sort((one, other) => other[1] - one[1]);
  $("labels").replaceChildren(...sorted.map(([label, probability]) => {
    const row = element("li", {});
    row.append(bar(probability), element("span", { textContent: `${(100 * probability).toFixed(1)} %` }), element("b", { textContent: label }));
    return row;
  }));
  const explained = answer.explanation;
  let before = 1 / sorted.length;
  const values = answer.words.map(({ probability, importance }) => {
    const value = explained ? importance : probability - before;
    before = probability;
    return value;
  });
  const most = Math.max(...values.map(Math.abs), 1e-9);
  $("judge-words").replaceChildren(...answer.words.flatMap(({ word, probability }, w) => {
    const share = values[w] / most;
    const said = explained ? values[w].toFixed(2) : `${answer.label} ${(100 * probability).toFixed(1)} % so far`;
    const span = element("span", { textContent: word, title: said, dir: "auto" });
    span.style.background = `rgba(${share > 0 ? "37,99,235" : "220,80,20"},${(0.7 * Math.abs(share)).toFixed(2)})`;
    return [span, " "];
  }));
  const measured = (what) => `comprehensiveness ${what.comprehensiveness.toFixed(2)}, sufficiency ${what.sufficiency.toFixed(2)}`;
  $("judge-note").textContent = explained
    ? `Blue words support ${explained.label}, orange words oppose it. Most important word: ${measured(explained.faithfulness)}; random word: ${measured(explained.random)}.`
    : `Word by word: blue where ${answer.label} becomes more probable, orange where it becomes less probable.`;
}

function write() {
  const fields = { model: $("generator").value, considered: CONSIDERED, temperature: Number($("temperature").value) };
  work("written", "generate", { ...fields, seed: Math.floor(Math.random() * 2 ** 31) }, written);
}

// The prompt and the generated pieces; pointing at a piece shows its alternatives.
function written(answer) {
  const pieces = answer.pieces.map(({ piece, probability, considered }) => {
    const text = piece === "</s>" ? "(end)" : piece.replaceAll("▁", " ");
    const space = /^ \S|^\(end\)/.test(text) ? " " : ""; // the space before a word is not part of its button
    const button = element("button", { type: "button", className: "word", textContent: text.trim() || "␣", title: `${(100 * probability).toFixed(1)} %` });
    for (const event of ["mouseenter", "focus"]) {
      button.addEventListener(event, () => {
        $("considered").replaceChildren(...considered.map((one) => {
          const row = element("li", {});
          row.append(bar(one.probability), element("span", { textContent: `${(100 * one.probability).toFixed(1)} %` }), element("b", { textContent: one.piece.replaceAll("▁", " ") }));
          return row;
        }));
      });
    }
    return [space, button];
  });
  if (answer.backwards) pieces.reverse();
  roving([pieces.map(([, button]) => button)]);
  $("considered").replaceChildren();
  $("written-note").hidden = false;
  const given = element("span", { textContent: $("judge-text").value });
  $("written").replaceChildren(...(answer.backwards ? [...pieces.flat(), given] : [given, ...pieces.flat()]));
}

// A bar for a probability; the number is beside it.
function bar(probability) {
  const whole = element("span", { className: "meter", ariaHidden: "true" });
  whole.append(element("i", {}));
  whole.firstChild.style.width = `${100 * probability}%`;
  return whole;
}
