// Models of texts without translation: classifiers with explanations, and language models that continue a text.

import { element } from "./elements.js";
import { formatNumber, gettext } from "./messages.js";
import { $, option, progressIndicator } from "./page_elements.js";
import { automaticRequestDelay, postJson, recordAutomaticRequest } from "./requests.js";
import { addRovingTabindex } from "./roving.js";

const END = gettext("(end)");
const TYPING_DELAY = 300; // milliseconds after the last key
const ALTERNATIVES = 6; // shown for each generated piece
const SUPPORTING = "37,99,235"; // blue
const OPPOSING = "220,80,20"; // orange
const latestRequests = { classify: 0, generate: 0 }; // responses to earlier requests are ignored
let typingTimer;
const progress = progressIndicator($("text-models"), $("text-models-problem"));

// Set up with classifiers and language models; either list may be empty.
export function initTextModels(classifiers, languageModels, settings) {
  for (const [id, models] of [
    ["classifier", classifiers],
    ["generator", languageModels],
  ]) {
    $(id).append(...models.map((model) => option(model.name, model.name)));
    $(id).parentElement.hidden = models.length < 2;
  }
  $("classification").hidden = !classifiers.length;
  $("generation").hidden = !languageModels.length;
  for (const method of $("explanation-method").querySelectorAll("option")) {
    if (method.value && !settings.explanations.includes(method.value)) method.remove();
  }
  if (classifiers.length) {
    $("input-text").addEventListener("input", classifyAfterTyping);
    for (const menu of [$("classifier"), $("explanation-method")]) menu.addEventListener("change", classify);
  }
  $("generate").addEventListener("click", generate);
}

function showMessage(text) {
  $("text-models-problem").textContent = text;
}

// Send a request and render its response; after an error, empty the element `outputId` instead.
async function request(path, fields, render, outputId) {
  const requestId = ++latestRequests[path];
  progress.start();
  try {
    const response = await postJson(path, { q: $("input-text").value, ...fields });
    if (requestId !== latestRequests[path]) return;
    showMessage("");
    render(response);
  } catch (error) {
    if (requestId !== latestRequests[path]) return;
    $(outputId).replaceChildren();
    showMessage(error.message);
  } finally {
    if (requestId === latestRequests[path]) progress.stop();
  }
}

function classifyAfterTyping() {
  clearTimeout(typingTimer);
  typingTimer = setTimeout(() => {
    recordAutomaticRequest();
    classify();
  }, automaticRequestDelay(TYPING_DELAY));
}

function classify() {
  if (!$("input-text").value.trim()) {
    latestRequests.classify += 1; // ignores a pending response
    for (const part of [$("labels"), $("classified-words"), $("classification-note")]) part.replaceChildren();
    return;
  }
  const explain = $("explanation-method").value;
  const fields = { model: $("classifier").value, ...(explain ? { explain } : {}) };
  request("classify", fields, renderClassification, "labels");
}

// Show the labels with their probabilities, the words colored by their support for the most probable label, and a note.
function renderClassification(response) {
  const labels = Object.entries(response.probabilities).sort((a, b) => b[1] - a[1]);
  $("labels").replaceChildren(...labels.map(([label, probability]) => meterRow(label, probability)));
  renderWords(response, wordSupports(response, labels.length));
  $("classification-note").textContent = classificationNote(response);
}

// Return how much each word supports the label: its importance, or without an explanation, the change of the label's probability
// when the model reads the word.
function wordSupports({ words, explanation }, labelCount) {
  if (explanation) return words.map(({ importance }) => importance);
  const probabilities = [1 / labelCount, ...words.map(({ probability }) => probability)];
  return words.map(({ probability }, i) => probability - probabilities[i]);
}

function renderWords({ words, label, explanation }, supports) {
  const largest = Math.max(...supports.map(Math.abs), 1e-9);
  $("classified-words").replaceChildren(
    ...words.flatMap(({ word, probability }, i) => {
      const title = explanation
        ? formatNumber(supports[i], 2)
        : gettext("{label} {probability} so far", { label, probability: formatPercent(probability) });
      const span = element("span", { textContent: word, title, dir: "auto" });
      const opacity = (0.7 * Math.abs(supports[i] / largest)).toFixed(2);
      span.style.background = `rgba(${supports[i] > 0 ? SUPPORTING : OPPOSING},${opacity})`;
      return [span, " "];
    }),
  );
}

function classificationNote({ label, explanation }) {
  if (!explanation)
    return gettext("Word by word: blue where {label} becomes more probable, orange where it becomes less probable.", {
      label,
    });
  const measures = ({ comprehensiveness, sufficiency }) =>
    gettext("comprehensiveness {comprehensiveness}, sufficiency {sufficiency}", {
      comprehensiveness: formatNumber(comprehensiveness, 2),
      sufficiency: formatNumber(sufficiency, 2),
    });
  const { faithfulness, random } = explanation;
  return gettext(
    "Blue words support {label}, orange words oppose it. Most important word: {important}; random word: {random}.",
    { label: explanation.label, important: measures(faithfulness), random: measures(random) },
  );
}

function generate() {
  const fields = {
    model: $("generator").value,
    considered: ALTERNATIVES,
    temperature: Number($("temperature").value),
    seed: Math.floor(Math.random() * 2 ** 31),
  };
  request("generate", fields, renderGeneratedText, "generated-text");
}

// Show the prompt and the generated pieces; pointing at a piece shows its alternatives.
function renderGeneratedText(response) {
  const pieces = response.pieces.map(({ piece, probability, considered }) => {
    const text = piece === "</s>" ? END : asText(piece);
    const space = text === END || /^ \S/.test(text) ? " " : ""; // the space before a word is not part of its button
    const title = formatPercent(probability);
    const button = element("button", { type: "button", className: "word", textContent: text.trim() || "␣", title });
    for (const event of ["mouseenter", "focus"]) {
      button.addEventListener(event, () => showAlternatives(considered));
    }
    return [space, button];
  });
  if (response.backwards) pieces.reverse();
  addRovingTabindex([pieces.map(([, button]) => button)]);
  showAlternatives([]);
  $("generated-text-hint").hidden = false;
  const prompt = element("span", { textContent: $("input-text").value });
  $("generated-text").replaceChildren(
    ...(response.backwards ? [...pieces.flat(), prompt] : [prompt, ...pieces.flat()]),
  );
}

function showAlternatives(alternatives) {
  $("alternatives").replaceChildren(
    ...alternatives.map(({ piece, probability }) => meterRow(asText(piece), probability)),
  );
}

// Return the text of a piece: SentencePiece writes spaces as ▁.
function asText(piece) {
  return piece.replaceAll("▁", " ");
}

function formatPercent(probability) {
  return `${formatNumber(100 * probability, 1)} %`;
}

// A list item with a bar for a probability, the number and a text.
function meterRow(text, probability) {
  const bar = element("i", {});
  bar.style.width = `${100 * probability}%`;
  const meter = element("span", { className: "meter", ariaHidden: "true" }, bar);
  const number = element("span", { textContent: formatPercent(probability) });
  return element("li", {}, meter, number, element("b", { textContent: text }));
}
