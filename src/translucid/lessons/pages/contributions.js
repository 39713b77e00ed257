// Lesson 10: contributions to one sublayer by hand, then of the source and the target prefix in a translation model.

import { el } from "./dom.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { argmax, sum } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { ATTENTION_VERBS, CONTRIBUTION_VERBS, showRibbons } from "./ribbons.js";
import {
  bar,
  choice,
  gridCell,
  gridHeader,
  gridRow,
  gridTable,
  hint,
  liveRegion,
  pieceChoice,
  slider,
} from "./widgets.js";

// The sublayer by hand: its residual, and the directions of its two transformed inputs, whose lengths can be changed.
const RESIDUAL = [1, 1];
const DIRECTIONS = [
  [1, 0],
  [0, 1],
];
const MEASURES = [
  { label: gettext("weights"), value: "weights" },
  { label: gettext("norms"), value: "norms" },
  { label: gettext("contributions"), value: "contributions" },
];

export function contributionsFigure(container) {
  let sentence;
  let step = 2; // the target position whose sources are listed
  const measure = choice("measure", gettext("measure"), MEASURES, () => draw());
  const ribbons = el("div", { class: "inspector" });
  const pieces = el("div", {});
  const table = el("div", {});
  container.append(
    el("h3", {}, gettext("By hand: one sublayer, two words")),
    ...exampleByHand(),
    el("h3", {}, gettext("The translation model")),
    measure.node,
    ribbons,
    pieces,
    table,
  );
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    step = Math.min(step, sentence.target.length - 1);
    pieces.replaceChildren(
      pieceChoice(sentence.target, step, (index) => {
        step = index;
        draw();
      }),
    );
    draw();
  }

  function draw() {
    drawRibbons();
    drawTable();
  }

  // Only contributions have rows that continue with the target prefix.
  function drawRibbons() {
    const source = sentence.source.map(formatPiece);
    const target = sentence.target.map(formatPiece);
    const options = { below: target, probabilities: null };
    if (measure.value === "contributions") {
      const weights = sentence.contributions.map((row, t) => [...row, ...sentence.prefix[t]]);
      const above = [...source, ...sentence.fed.map(formatPrefixPiece)];
      showRibbons(ribbons, { ...options, above, weights, verbs: CONTRIBUTION_VERBS });
    } else {
      const weights = sentence[measure.value];
      showRibbons(ribbons, { ...options, above: source, weights, verbs: ATTENTION_VERBS });
    }
  }

  function drawTable() {
    const sourceRows = sentence.source.map((piece, s) =>
      measureRow(
        formatPiece(piece),
        MEASURES.map(({ value: name }) => sentence[name][step][s]),
      ),
    );
    const prefixRows = sentence.fed
      .slice(0, step + 1)
      .map((piece, s) => measureRow(formatPrefixPiece(piece), [null, null, sentence.prefix[step][s]]));
    const header = gridHeader(gettext("from"), gettext("weight"), gettext("norm"), gettext("contribution"));
    const fromSource = sum(sentence.contributions[step]);
    table.replaceChildren(
      gridTable(
        "contribution-table of-model",
        gettext("where the piece comes from"),
        header,
        ...sourceRows,
        ...prefixRows,
      ),
      hint(
        gettext(
          "{source} of “{piece}” comes from the source and {prefix} from the target prefix, whose pieces are in ‹›. Weights and " +
            "norms are of the cross-attention alone, averaged over layers.",
          {
            source: formatPercent(fromSource),
            piece: formatPiece(sentence.target[step]),
            prefix: formatPercent(1 - fromSource),
          },
        ),
      ),
    );
  }
}

// The sublayer by hand: sliders, a table and a summary.
function exampleByHand() {
  const weight = slider(
    "weight",
    gettext("weight {symbol}", { symbol: "α₁" }),
    { min: 0, max: 1, step: 0.05, value: 0.8, format: (alpha) => formatNumber(alpha) },
    () => draw(),
  );
  const lengthSlider = (linkName, vector, value) => {
    const range = { min: 0, max: 4, step: 0.5, value, format: (length) => formatNumber(length, 1) };
    return slider(linkName, gettext("length of {vector}", { vector }), range, () => draw());
  };
  const lengths = [lengthSlider("length-1", "T(x₁)", 0.5), lengthSlider("length-2", "T(x₂)", 4)];
  const table = el("div", { class: "by-hand" });
  const summary = liveRegion();
  draw();
  return [el("div", { class: "controls" }, weight.node, ...lengths.map(({ node }) => node)), table, summary];

  function draw() {
    const alphas = [weight.value, 1 - weight.value];
    const inputs = DIRECTIONS.map((direction, i) => direction.map((x) => alphas[i] * lengths[i].value * x));
    const terms = [RESIDUAL, ...inputs];
    const shares = contributionShares(terms);
    const names = [gettext("residual"), "α₁ T(x₁)", "α₂ T(x₂)"];
    const rows = terms.map((term, i) =>
      gridRow(
        names[i],
        gridCell(i === 0 ? "–" : bar(alphas[i - 1])), // the residual has no weight
        gridCell(formatNumber(l1Norm(term)), "amount length"),
        gridCell(bar(shares[i]), "c"),
      ),
    );
    table.replaceChildren(
      gridTable(
        "contribution-table",
        gettext("one sublayer by hand"),
        gridHeader(gettext("term"), gettext("weight"), gettext("length"), gettext("contribution")),
        ...rows,
      ),
    );
    summary.textContent =
      shares[1] < shares[2] && alphas[0] > alphas[1]
        ? gettext("Word 1 has the larger weight, and word 2 contributes more.")
        : gettext("Word 1 has {weight} of the weight and contributes {contribution}.", {
            weight: formatPercent(alphas[0]),
            contribution: formatPercent(shares[1]),
          });
  }
}

// A row with a value for each measure; null where the measure is undefined.
function measureRow(name, values) {
  const cells = values.map((value, i) => gridCell(value === null ? "–" : bar(value), MEASURES[i].value));
  return gridRow(name, ...cells);
}

function formatPrefixPiece(piece) {
  return `‹${formatPiece(piece)}›`;
}

function l1Norm(vector) {
  return sum(vector.map(Math.abs));
}

// The contributions of terms to their sum (ALTI): how much closer each term brings the sum to itself, as shares of 1.
function contributionShares(terms) {
  const total = terms[0].map((_, k) => sum(terms.map((term) => term[k])));
  const contributions = terms.map((term) => {
    const distance = l1Norm(total.map((x, k) => x - term[k]));
    return Math.max(0, l1Norm(total) - distance);
  });
  const normalizer = sum(contributions);
  return contributions.map((contribution) => (normalizer ? contribution / normalizer : 0));
}

const ASKED = { sentence: "They are going to the beach", piece: "▁la" };

// What the text says about the record: the largest weight and the largest contribution of a source piece.
export function contributionsFacts({ sentences }) {
  const sentence = sentences.find(({ text }) => text === ASKED.sentence) ?? sentences[0];
  const step = Math.max(0, sentence.target.indexOf(ASKED.piece));
  const describe = (values) => {
    const largest = argmax(values);
    return `${formatPiece(sentence.source[largest])} (${formatPercent(values[largest])})`;
  };
  const [weight, contribution] = [describe(sentence.weights[step]), describe(sentence.contributions[step])];
  const word = formatPiece(sentence.target[step]);
  return {
    question: gettext(
      "For “{word}” in “{sentence}”, the largest weight is that of {weight}, and the largest contribution that of {contribution}. " +
        "Which of the two measures is right?",
      { word, sentence: sentence.text, weight, contribution },
    ),
  };
}
