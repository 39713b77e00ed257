// The view of captions: their words, and an overlay of attention on the image.

import { weightsForOneWord } from "./explanations.js";
import { showImageAttention } from "./image_attention.js";
import { imageBeamCode, imageExplanationCode, imageHeadsCode, imageMapCode } from "./image_python_code.js";
import { gettext } from "./messages.js";
import { $ } from "./page_elements.js";

// A view for the inspector, in the form that translation_view.js describes.
export const CAPTION_VIEW = {
  nouns: {
    finished: gettext("a finished caption"),
    seeAlternatives: gettext("Choose a word of the caption to see alternatives."),
    askWhy: gettext("Choose a word of the caption to ask why it is there and not another."),
  },
  kindLabels: { cross: gettext("Caption to image") },
  hasTable: false,
  axes: ({ target, grid }) => ({ down: target, grid }),
  showWords,
  thumbnailWeights,
  explanationWeights,
  mapCode: imageMapCode,
  headsCode: imageHeadsCode,
  beamCode: imageBeamCode,
  explanationCode: imageExplanationCode,
};

function showWords(root, { record, map }, options) {
  const [image, overlay] = [$("image-canvas"), $("image-overlay")];
  const { target: words, probabilities } = record;
  return showImageAttention(root, { words, weights: map.weights, probabilities, image, overlay }, options);
}

// Convert a response of /caption for the view.
export function captionSentence({ caption, words, grid, maps, tree }) {
  const weights = grid && words.map((word) => word.weights);
  const allMaps = maps ?? [{ name: gettext("all layers and heads"), layer: null, head: null, weights }];
  const record = {
    target: words.map(({ word }) => word),
    probabilities: words.map(({ probability }) => probability),
    sizes: words.map(({ pieces }, i) => pieces + (i === words.length - 1)), // the end token belongs to the last word
    grid,
    maps: allMaps.map((map) => ({ kind: "cross", ...map })),
  };
  return { source_text: "", text: caption, record, tree };
}

// Return each word's positive importances, normalized to a sum of 1. A contrast has importances for one word only.
function explanationWeights(record, { importance, contrast }) {
  const normalized = importance.map((rows) => {
    const total = rows.flat().reduce((sum, value) => sum + Math.max(0, value), 0) || 1;
    return rows.map((row) => row.map((value) => Math.max(0, value) / total));
  });
  if (!contrast) return normalized;
  const zeros = normalized[0].map((row) => row.map(() => 0));
  return weightsForOneWord(record.target, contrast.word, normalized[0], zeros);
}

// Return the total attention of all words to each grid cell, scaled to a maximum of 1.
function thumbnailWeights({ weights }) {
  const cellSum = (r, c) => weights.reduce((sum, grid) => sum + grid[r][c], 0);
  const sums = weights[0].map((row, r) => row.map((_, c) => cellSum(r, c)));
  const maximum = Math.max(...sums.flat(), 1e-9);
  return sums.map((row) => row.map((sum) => sum / maximum));
}
