// Activation patching: two sentences side by side, and how much of the difference between their predictions each state carries.

import { translatedName } from "./attention_maps.js";
import { element, formatSigned, isolateText } from "./elements.js";
import { showHeatmap } from "./heatmap.js";
import { gettext } from "./messages.js";
import { diffWords, markWords } from "./word_diff.js";

const SVG_MARGIN = 12; // pixels around each picture, which stacked pictures share
const MAX_SENTENCE_LENGTH = 500;
const MAX_WORD_LENGTH = 100;
const HINT = gettext(
  "Each cell shows how much of the difference in log-odds is carried over, in per cent, if the state of this layer at this " +
    "word comes from the first sentence. 0 is like the second sentence, 100 like the first; orange is below 0.",
);

// Show a form for the other sentence, and the result of the comparison; at first, of one with a sentence that the server offers.
//
// sentence: the sentence to compare. The last comparison is kept in sentence.patching, { fields, result }, and the content of the
//   form in sentence.patchForm.
// languages: [source, target].
// patch(fields, onError): asks the server; returns a promise for what Patching.to_json returns, with `translations` of both sentences,
//   or null. fields: { other: a sentence, words: the two words to compare, if chosen }; without `other`, the server offers one.
// isCurrent(): whether this view is still shown.
// onShow({ svg() }, { fields, result }): a result is shown.
export function showPatching(root, { sentence, languages, patch, isCurrent, onShow }) {
  const [form, container] = [element("div"), element("div")];
  let latestRequest = 0;
  root.append(form, container);
  showForm(form, sentence, { lang: languages[0] ?? "", onCompare: compare });
  if (sentence.patching) show();
  else if (!sentence.patchForm) compare({});

  async function compare(fields) {
    latestRequest += 1;
    const requestId = latestRequest;
    container.textContent = "…";
    let message = "";
    const result = await patch(fields, (error) => {
      message = error.message;
    });
    if (requestId !== latestRequest) return;
    if (result) sentence.patching = { fields: { ...fields, other: result.other }, result };
    if (!isCurrent()) return;
    const otherSentence = form.querySelector("input");
    if (result && otherSentence.value === sentence.source_text) otherSentence.value = result.other;
    if (result) show();
    else container.textContent = message;
  }

  function show() {
    const shown = showResult(container, sentence.patching.result, languages);
    onShow(shown, sentence.patching);
  }
}

function showForm(root, sentence, { lang, onCompare }) {
  const { other = sentence.source_text, words = ["", ""] } = sentence.patchForm ?? sentence.patching?.fields ?? {};
  const otherSentence = textInput({ value: other, lang, required: true, maxLength: MAX_SENTENCE_LENGTH });
  const [firstWord, secondWord] = words.map((value) =>
    textInput({ value, lang: "", maxLength: MAX_WORD_LENGTH, size: 10 }),
  );
  const form = element(
    "form",
    { className: "patch-form", ariaLabel: gettext("another sentence") },
    element(
      "label",
      { className: "other-sentence", textContent: `${gettext("Another sentence, which differs in a word")} ` },
      otherSentence,
    ),
    element("label", { textContent: `${gettext("Word of the translation")} ` }, firstWord),
    element("label", { textContent: `${gettext("instead of it")} ` }, secondWord),
    element("button", { textContent: gettext("Compare") }),
  );
  const note = element("p", {
    className: "note",
    textContent: gettext("If you enter no words, the first difference between the two translations is used."),
  });
  form.addEventListener("input", () => {
    sentence.patchForm = { other: otherSentence.value, words: [firstWord.value, secondWord.value] };
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosenWords = [firstWord.value.trim(), secondWord.value.trim()];
    const chosen = otherSentence.value.trim();
    onCompare(chosenWords.every(Boolean) ? { other: chosen, words: chosenWords } : { other: chosen });
  });
  root.replaceChildren(form, note);
}

function textInput(properties) {
  return element("input", { type: "text", autocomplete: "off", ...properties });
}

function showResult(root, result, languages) {
  const { words, prefix, parts, notes } = result;
  const [first, second] = words.map(isolateText);
  const values = { first, second, prefix: isolateText(prefix) };
  const question = prefix
    ? gettext("“{first}” or “{second}” after “{prefix}”", values)
    : gettext("“{first}” or “{second}” as the first word", values);
  const blocks = parts.map(({ kind }) =>
    element(
      "div",
      {},
      element("p", { className: "title", textContent: capitalize(translatedName(kind)) }),
      element("div"),
    ),
  );
  root.replaceChildren(
    element("div", { className: "sentence-pair" }, ...sentencePair(result, languages)),
    element("p", { className: "title", textContent: question }),
    element("p", { className: "note", textContent: HINT }),
    element("div", { className: "columns heatmaps" }, ...blocks),
    ...notes.map((textContent) => element("p", { className: "note", textContent })),
  );
  const heatmaps = parts.map((part, i) =>
    showHeatmap(blocks[i].lastChild, {
      label: translatedName(part.kind),
      rows: part.layers.map(translatedName),
      columns: part.words,
      cells: heatmapCells(part),
    }),
  );
  return { svg: () => stackVertically(heatmaps.map((heatmap) => heatmap.svg())) };
}

// Return the clean sentence and the other one, each with its translation and its log-odds.
function sentencePair({ clean, other, words, log_odds, translations }, [source = "", target = ""]) {
  const [cleanWords, otherWords] = [clean.split(/\s+/), other.split(/\s+/)];
  const [onlyClean, onlyOther] = diffWords(cleanWords, otherWords);
  const [first, second] = words.map(isolateText);
  const sentences = [
    { content: markWords(cleanWords, onlyClean), translation: translations[0], logOdds: log_odds.clean },
    { content: markWords(otherWords, onlyOther), translation: translations[1], logOdds: log_odds.other },
  ];
  return sentences.map(({ content, translation, logOdds }) =>
    element(
      "div",
      { className: "sentence" },
      element("p", { lang: source, dir: "auto" }, ...content),
      element("p", { lang: target, dir: "auto", textContent: translation }),
      element("p", {
        className: "note",
        textContent: gettext("log-odds of “{first}” against “{second}”: {value} nats", {
          first,
          second,
          value: formatSigned(logOdds),
        }),
      }),
    ),
  );
}

function heatmapCells({ layers, words, clean_words: cleanWords, carried }) {
  const wordNames = words.map((word, i) =>
    cleanWords[i] === word ? isolateText(word) : `${isolateText(word)} ← ${isolateText(cleanWords[i])}`,
  );
  return carried.map((row, l) =>
    row.map((share, w) => {
      const text = `${Math.round(100 * share)}`.replace("-", "\u2212");
      return { text, value: share, description: `${translatedName(layers[l])}, ${wordNames[w]}: ${text} %` };
    }),
  );
}

function capitalize(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Combine SVG images into one, from top to bottom.
function stackVertically(images) {
  const size = (image, attribute) => Number(image.getAttribute(attribute));
  const width = Math.max(...images.map((image) => size(image, "width")));
  let height = 0;
  for (const image of images) {
    image.setAttribute("y", height);
    height += size(image, "height") - SVG_MARGIN;
  }
  height += SVG_MARGIN;
  const combined = images[0].cloneNode(false);
  const attributes = { width, height, viewBox: `0 0 ${width} ${height}`, y: 0 };
  for (const [name, value] of Object.entries(attributes)) combined.setAttribute(name, value);
  combined.append(...images);
  return combined;
}
