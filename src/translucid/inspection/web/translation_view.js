// How the inspector shows a translation: as ribbons between its words and those of the source.
//
// A view, such as this one or that of captions, is {
//   nouns: sentences about what the model writes,
//   kindLabels: labels of the kinds of attention,
//   hasTable: whether maps can be shown as tables,
//   axes(record, map): the words along the axes of a map,
//   showWords(root, { record, map, languages, marked }, options): shows the words with a map; returns what showRibbons returns,
//   thumbnailWeights(map, record): the weights [rows][columns] in the thumbnail of a map,
//   explanationWeights(record, explanation): an explanation as weights of a map, null if showWords cannot show it,
//   mapCode, layersCode, patchCode, headsCode, beamCode, explanationCode: Python code for what is shown }.

import { axes, hasPrefixContributions, KIND_LABELS, visibleColumns } from "./attention_maps.js";
import { explanationWeights } from "./explanations.js";
import { gettext } from "./messages.js";
import { beamCode, explanationCode, headsCode, layersCode, mapCode, patchCode } from "./python_code.js";
import { CONTRIBUTION_VERBS, showRibbons } from "./ribbons.js";

const NOUNS = {
  finished: gettext("a finished translation"),
  seeAlternatives: gettext("Choose a word of the translation to see alternatives."),
  askWhy: gettext("Choose a word of the translation to ask why it is there and not another."),
};
export const TRANSLATION_VIEW = {
  nouns: NOUNS,
  kindLabels: KIND_LABELS,
  hasTable: true,
  axes,
  showWords,
  thumbnailWeights: (map, record) => visibleColumns(record, map).weights,
  explanationWeights,
  mapCode,
  layersCode,
  patchCode,
  headsCode,
  beamCode,
  explanationCode,
};

function showWords(root, { record, map, languages, marked }, options) {
  const { down, across } = axes(record, map);
  const visible = visibleColumns(record, map);
  const rowsAreTarget = down === record.target;
  const [source, target] = languages ?? ["", ""];
  const unknown = (words) => (words === record.source ? (record.unknown ?? []) : []);
  const contextCount = (words) => (words === record.source ? record.context : 0);
  const content = {
    above: visible.across,
    below: down,
    weights: visible.weights,
    probabilities: rowsAreTarget ? record.probabilities : null,
    languages: [map.kind === "decoder" ? target : source, rowsAreTarget ? target : source],
    marked: rowsAreTarget && across === record.source ? marked : null,
    unknown: {
      above: unknown(across)
        .map((column) => visible.columns.indexOf(column))
        .filter((column) => column >= 0),
      below: unknown(down),
    },
    contextCount: {
      above: visible.columns.filter((column) => column < contextCount(across)).length,
      below: contextCount(down),
    },
    caption: map.kind === "content" ? KIND_LABELS.content : "",
  };
  if (map.kind === "contributions") content.verbs = CONTRIBUTION_VERBS;
  if (hasPrefixContributions(record, map)) {
    content.prefix = { words: record.fed, weights: record.prefix };
    content.sourceShares = record.source_contributions;
  }
  return showRibbons(root, content, options);
}
