// Lesson 6: thumbnails of the attention of all heads, one head as ribbons, and the probabilities without that head.

import { el, svg } from "./dom.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { sum } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { ATTENTION_VERBS, showRibbons } from "./ribbons.js";
import { choice, gridCell, gridHeader, gridRow, gridTable, hint } from "./widgets.js";

const ATTENTIONS = [
  { label: gettext("translation to source"), value: ["decoder", "cross"] },
  { label: gettext("source to itself"), value: ["encoder", "self"] },
  { label: gettext("translation to itself"), value: ["decoder", "self"] },
];
const MIN_PROBABILITY = 1e-4; // recorded probabilities have four digits, and some are 0

export function headsFigure(container) {
  let sentence;
  let selected = 0; // an index into headsOfAttention()
  const attentions = choice("attention", gettext("attention"), ATTENTIONS, () => {
    selected = 0;
    drawThumbnails();
    drawHead();
  });
  const thumbnails = el("div", {});
  const ribbons = el("div", { class: "inspector" });
  const ablation = el("div", {});
  container.append(attentions.node, thumbnails, ribbons, el("h3", {}, gettext("Without this head")), ablation);
  return (newSentence) => {
    sentence = newSentence;
    drawThumbnails();
    drawHead();
  };

  // All heads of the selected kind of attention: [{ name of the attention, layer, head, weights }]
  function headsOfAttention() {
    const [side, kind] = attentions.value;
    const names = Object.keys(sentence.maps).filter((name) => name.startsWith(`${side}.`) && name.endsWith(`.${kind}`));
    return names.flatMap((name) => {
      const layer = name.split(".")[1];
      return sentence.maps[name].map((weights, head) => ({ name, layer, head, weights }));
    });
  }

  function drawThumbnails() {
    const heads = headsOfAttention();
    const options = heads.map(({ layer, head, weights }, i) => ({
      label: thumbnail(weights),
      value: i,
      title: gettext("layer {layer}, head {head}", { layer, head }),
    }));
    const onChange = (index) => {
      selected = index;
      drawHead();
    };
    const layout = { selectedIndex: selected, className: "thumbnails" };
    const { node } = choice("all-heads", gettext("all heads"), options, onChange, layout);
    node.querySelectorAll("label").forEach((label, i) => {
      label.append(el("small", {}, `${heads[i].layer}.${heads[i].head}`));
    });
    const headsPerLayer = heads.filter(({ name }) => name === heads[0].name).length;
    node.style.setProperty("--heads", headsPerLayer);
    thumbnails.replaceChildren(node);
  }

  function drawHead() {
    const { name, head, weights } = headsOfAttention()[selected];
    const [side, kind] = attentions.value;
    const queries = side === "encoder" ? sentence.source : sentence.target;
    const keys = kind === "cross" || side === "encoder" ? sentence.source : sentence.fed;
    showRibbons(ribbons, {
      above: keys.map(formatPiece),
      below: queries.map(formatPiece),
      weights,
      probabilities: null,
      verbs: ATTENTION_VERBS,
    });
    ablation.replaceChildren(...ablationResults(sentence, sentence.without[name][head]));
  }
}

// The log-probability that a translation loses without a head, in nats.
function logProbabilityLost(probabilities, withoutHead) {
  return sum(
    probabilities.map(
      (p, t) => Math.log(Math.max(p, MIN_PROBABILITY)) - Math.log(Math.max(withoutHead[t], MIN_PROBABILITY)),
    ),
  );
}

// Compare the probability of each target piece with that without a head, in a table and in a sentence.
function ablationResults({ target, probabilities }, withoutHead) {
  const rows = target.map((piece, t) => {
    const row = gridRow(
      formatPiece(piece),
      gridCell(formatPercent(probabilities[t], 1), "amount"),
      gridCell(formatPercent(withoutHead[t], 1), "amount"),
    );
    if (withoutHead[t] < probabilities[t] / 2) row.classList.add("large-drop");
    return row;
  });
  return [
    gridTable(
      "ablation-table",
      gettext("probabilities without this head"),
      gridHeader(gettext("piece"), gettext("all heads"), gettext("without this head")),
      ...rows,
    ),
    hint(
      gettext(
        "Forced decoding of the same translation with this head’s context set to 0. The translation loses {loss} nats of " +
          "log-probability.",
        { loss: formatNumber(logProbabilityLost(probabilities, withoutHead)) },
      ),
    ),
  ];
}

// A matrix of weights as a picture.
function thumbnail(weights) {
  const cells = weights.flatMap((row, r) =>
    row.map((weight, c) =>
      // The cells overlap a little, so that no gap is visible between them.
      svg("rect", { x: c, y: r, width: 1.02, height: 1.02, "fill-opacity": weight }),
    ),
  );
  const viewBox = `0 0 ${weights[0].length} ${weights.length}`;
  return svg("svg", { viewBox, preserveAspectRatio: "none", "aria-hidden": "true" }, ...cells);
}

// What the text says about the record: the head without which the first translation loses most.
export function headsFacts({ sentences: [sentence] }) {
  const heads = Object.entries(sentence.without).flatMap(([name, rows]) =>
    rows.map((row, head) => ({ name: `${name}.head.${head}`, loss: logProbabilityLost(sentence.probabilities, row) })),
  );
  const most = heads.reduce((a, b) => (b.loss > a.loss ? b : a));
  return {
    heads: String(Object.values(sentence.maps)[0].length),
    sentence: sentence.text,
    most: gettext("{head}, without which the translation loses {loss} nats", {
      head: most.name,
      loss: formatNumber(most.loss),
    }),
  };
}
