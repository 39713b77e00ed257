// The predictions of each decoder layer for each word, and the translations from each encoder layer.

import { element, formatPercent, isolateText } from "./elements.js";
import { showHeatmap } from "./heatmap.js";
import { filled, gettext } from "./messages.js";
import { diffWords, markWords } from "./word_diff.js";

const MIN_PROBABILITY = 1e-5; // records round smaller probabilities to 0
const HINT = gettext(
  "{lens}: each cell shows what the model would write in place of the word if this layer were its last one. Darker cells are " +
    "more probable. A frame with ✓ marks the layer from which on the prediction is the word itself.",
);

// Show the predictions as a heat map, and the translations beside it.
//
// record: what Lens.to_json returns; `encoder` is what DecoderLens.to_json returns.
// lang: the language code of the translation.
// onHighlightWord(index or null): the pointer or the focus enters or leaves the predictions for a word.
// Returns { svg() }.
export function showLayers(root, record, { lang, onHighlightWord }) {
  const [predictions, translations] = [element("div"), element("div")];
  root.replaceChildren(element("div", { className: "columns" }, predictions, translations));
  const columns = record.layers.map(layerLabel);
  const heatmap = showHeatmap(predictions, {
    label: gettext("predictions of each layer"),
    rows: record.words.map(({ word }) => word),
    columns,
    cells: record.words.map((word) => predictionCells(word, columns)),
    hint: filled(HINT, { lens: record.lens === "tuned" ? gettext("Tuned lens") : gettext("Logit lens") }),
    lang,
    onHighlightRow: onHighlightWord,
  });
  showTranslations(translations, record.encoder, lang);
  return heatmap;
}

function layerLabel(layer) {
  return layer === "input" ? gettext("embeddings") : gettext("layer {number}", { number: layer });
}

// Return the cells of one word, whose final prediction is made from the layer with the index `decided` on.
function predictionCells({ word, decided, layers }, labels) {
  return layers.map((prediction, i) => ({
    text: prediction.top,
    value: prediction.top_probability,
    description: describePrediction(labels[i], word, prediction, i === decided),
    isMarked: i === decided,
  }));
}

function describePrediction(layer, word, { top, top_probability, probability, rank }, isDecided) {
  const [shownWord, shownTop] = [word, top].map(isolateText);
  const prediction = gettext("{word}, {layer}: predicts “{prediction}” ({probability})", {
    word: shownWord,
    layer,
    prediction: shownTop,
    probability: formatPercent(top_probability),
  });
  const share = formatPercent(Math.max(probability, MIN_PROBABILITY));
  const isWord = rank === 1 && top === word;
  const wordRank = isWord
    ? gettext("the word itself")
    : gettext("“{word}” has rank {rank} ({probability})", { word: shownWord, rank, probability: share });
  return `${prediction}; ${wordRank}${isDecided ? gettext(", from here on with rank 1") : ""}.`;
}

// Show one translation per encoder layer; words that are not in the last one are marked.
function showTranslations(root, { layers, translations }, lang) {
  const lastWords = translations.at(-1).split(/\s+/);
  const rows = layers.map((layer, i) => {
    const content = translations[i].trim() ? markDifferences(translations[i], lastWords) : [gettext("(empty)")];
    const header = element("th", { textContent: layerLabel(layer), scope: "row" });
    return element("tr", {}, header, element("td", { dir: "auto", lang }, ...content));
  });
  const title = element("p", {
    className: "title",
    textContent: gettext("Translations from each layer of the encoder (DecoderLens)"),
  });
  const note = element("p", {
    className: "note",
    textContent: gettext(
      "The whole decoder reads the encoder's states after this layer. Marked words differ from the last line.",
    ),
  });
  root.replaceChildren(title, note, element("table", { className: "translations" }, element("tbody", {}, ...rows)));
}

function markDifferences(text, referenceWords) {
  const words = text.split(/\s+/);
  const [differing] = diffWords(words, referenceWords);
  return markWords(words, differing);
}
