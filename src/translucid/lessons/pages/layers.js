// Lesson 9: what each layer of the decoder predicts, and what the decoder writes from each layer of the encoder.
import { el } from "./dom.js";
import { formatPercent, formatPiece, joinedTexts, layerName } from "./formatting.js";
import { sum } from "./linear_algebra.js";
import { filled, formatNumber, gettext } from "./messages.js";
import { bar, cellPicker, gridCell, gridRow, gridTable, hint, liveRegion, tableHead } from "./widgets.js";

export function layersFigure(container, record) {
  let sentence;
  let selected = [0, 0]; // a target position, and an index into the layers
  const predictions = el("div", {});
  const summary = liveRegion();
  const topPieces = el("div", {});
  const encoderTranslations = el("div", {});
  container.append(
    predictions,
    summary,
    topPieces,
    el("h3", {}, gettext("The encoder’s layers")),
    encoderTranslations,
    el("h3", {}, gettext("Where pieces are decided")),
    hint(decidedSummary(record)),
  );
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    selected = [0, sentence.layers.length - 2]; // the last layer but one
    drawPredictions();
    encoderTranslations.replaceChildren(...translationsByLayer(sentence));
    drawSelected();
  }

  function drawPredictions() {
    const onSelect = (position, layer) => {
      selected = [position, layer];
      drawSelected();
    };
    const pieces = sentence.target.map(formatPiece);
    const corner = `${gettext("written")} ↓ ${gettext("layer")} →`;
    predictions.replaceChildren(
      cellPicker(pieces, sentence.layers.map(layerName), describeCell, selected, onSelect, corner),
      hint(
        gettext(
          "In each cell: the piece that the layer predicts, and its probability. ✓: from this layer on, it is the piece that was " +
            "written. Choose a cell.",
        ),
      ),
    );
  }

  function describeCell(position, layer) {
    const [prediction, probability] = sentence.predictions[layer][position][0];
    const [piece, percentage] = [formatPiece(prediction), formatPercent(probability)];
    const isDeciding = decidingLayer(position) === layer;
    return {
      text: [piece, el("small", {}, isDeciding ? `${percentage} ✓` : percentage)],
      name: filled(
        isDeciding
          ? gettext("{layer} predicts {piece}, {probability}, decided")
          : gettext("{layer} predicts {piece}, {probability}"),
        { layer: layerName(sentence.layers[layer]), piece, probability: percentage },
      ),
      weight: probability,
    };
  }

  // The first layer that predicts the written piece, as do all layers after it; null if the last layer does not.
  function decidingLayer(position) {
    const ranks = sentence.ranks.map((row) => row[position]);
    const layer = ranks.findLastIndex((rank) => rank > 1) + 1;
    return layer < ranks.length ? layer : null;
  }

  function drawSelected() {
    const [position, layer] = selected;
    const rank = formatNumber(sentence.ranks[layer][position]);
    const probability = formatPercent(sentence.probabilities[layer][position], 1);
    const [previous, written] = [sentence.fed[position], sentence.target[position]].map(formatPiece);
    summary.textContent = gettext(
      "{layer}, after “{previous}”: the piece that was written, “{written}”, has rank {rank} and probability {probability}.",
      { layer: layerName(sentence.layers[layer]), previous, written, rank, probability },
    );
    const rows = sentence.predictions[layer][position].map(([piece, p]) =>
      gridRow(formatPiece(piece), gridCell(formatPercent(p, 1), "amount"), gridCell(bar(p))),
    );
    topPieces.replaceChildren(gridTable("weight-table", gettext("the most probable pieces"), ...rows));
  }
}

// What the decoder writes from the states after each layer of the encoder.
function translationsByLayer({ encoder: translations, layers }) {
  const rows = translations.map((translation, i) =>
    el("tr", {}, el("th", { scope: "row" }, layerName(layers[i])), el("td", { class: "text" }, translation)),
  );
  return [
    el(
      "table",
      { class: "data-table" },
      tableHead(gettext("read after"), gettext("translation")),
      el("tbody", {}, ...rows),
    ),
    hint(
      gettext("The whole decoder reads the encoder’s states after each layer (DecoderLens): a translation for each."),
    ),
  ];
}

// How many pieces each layer decides. The last number counts those that no layer decides.
function decidedSummary({ decided, held_out, sentences }) {
  const total = sum(decided);
  const parts = decided.map((count, i) => {
    const layer = i < decided.length - 1 ? layerName(sentences[0].layers[i]) : gettext("none");
    return gettext("{share} by {layer}", { share: formatPercent(count / total), layer });
  });
  return gettext("Of {count} pieces in {sentences} held-out sentences: {shares}.", {
    count: total,
    sentences: held_out,
    shares: parts.join(", "),
  });
}

// What the text says about the record.
export function layersFacts(record) {
  const { sentences, decided, first } = record;
  const places = sentences.flatMap(({ predictions, fed }) => fed.map((piece, t) => predictions[0][t][0][0] === piece));
  const layers = sentences[0].layers;
  const describe = (counts) =>
    joinedTexts(
      counts.slice(1, -1).map((count, i) =>
        gettext("{share} are decided by {layer}", {
          share: formatPercent(count / sum(counts)),
          layer: layerName(layers[i + 1]),
        }),
      ),
    );
  return {
    layers: String(layers.length - 1),
    copied: gettext("{count} of {total}", { count: places.filter(Boolean).length, total: places.length }),
    decided: describe(decided),
    first: describe(first),
  };
}
