// The view of captions: their words, and an overlay of attention on the image.

import { $ } from "./asking.js";
import { showLit } from "./lit.js";
import { litBeamCode, litCode, litHeadsCode, litWhyCode } from "./litcode.js";
import { alone } from "./why.js";

export const CAPTIONS = {
  noun: "caption", kinds: { cross: "Caption to image" }, table: false,
  sides: ({ target, grid }) => ({ down: target, grid }),
  stage: (root, { record, map }, options) => showLit(root, {
    words: record.target, weights: map.weights, probabilities: record.probabilities, image: $("picture"), veil: $("veil"),
  }, options),
  cells, importances, mapCode: litCode, headsCode: litHeadsCode, beamCode: litBeamCode, whyCode: litWhyCode,
};

// Convert a response of /caption for the view.
export function captionOf({ caption, words, grid, maps, tree }) {
  const weights = grid && words.map((one) => one.weights);
  const all = maps ?? [{ name: "all layers and heads", layer: null, head: null, weights }];
  const record = {
    target: words.map(({ word }) => word),
    probabilities: words.map(({ probability }) => probability),
    sizes: words.map(({ pieces }, i) => pieces + (i === words.length - 1)), // the end token belongs to the last word
    grid,
    maps: all.map((one) => ({ kind: "cross", ...one })),
  };
  return { source_text: "", text: caption, record, tree };
}

// The positive importances of each word, as shares; a contrast is of one word.
function importances(record, { importance, contrast }) {
  const shares = importance.map((rows) => {
    const all = rows.flat().reduce((sum, x) => sum + Math.max(0, x), 0) || 1;
    return rows.map((row) => row.map((x) => Math.max(0, x) / all));
  });
  return contrast ? alone(record.target, contrast.word, shares[0], shares[0].map((row) => row.map(() => 0))) : shares;
}

// The total attention by cell, scaled to a maximum of 1.
function cells({ weights }) {
  const sums = weights[0].map((row, r) => row.map((_, c) => weights.reduce((sum, one) => sum + one[r][c], 0)));
  const most = Math.max(...sums.flat(), 1e-9);
  return sums.map((row) => row.map((sum) => sum / most));
}
