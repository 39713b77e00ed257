// Lesson 2: three scores, first of vectors of two numbers by hand, then of trained translation models.
import { el } from "./dom.js";
import { formatNumber, formatPiece } from "./formatting.js";
import { matrixVectorProduct, maxAbs, softmax, sum, weightedSum } from "./linear_algebra.js";
import { gettext, pgettext } from "./messages.js";
import { bar, choice, gridCell, gridHeader, gridRow, gridTable, hint, pieceChoice, strip } from "./widgets.js";

const SCORES = [
  { label: pgettext("score", "dot"), value: "dot" },
  { label: pgettext("score", "general"), value: "general" },
  { label: pgettext("score", "additive"), value: "additive" },
];
const SUBSCRIPTS = "₁₂₃";
// The weights of the scores by hand; those of the additive score, W and U, are identity matrices.
const W = [
  [0, 1],
  [1, 0],
];
const V = [1, -1];
const NOTES = {
  dot: "",
  general: gettext("Here W swaps the two numbers of y."),
  additive: gettext("Here W h + U y is h + y, and v = (1, −1)."),
};

export function alignmentFigure(container) {
  const byHand = el("div", { class: "by-hand" });
  const byModel = el("div", {});
  // The example by hand is independent of the list of sentences, so it stands above it.
  container.parentElement.prepend(
    el("h3", {}, gettext("By hand")),
    byHand,
    el("h3", {}, gettext("In a translation model")),
  );
  container.append(byModel);
  showScoresByHand(byHand);
  return (sentence) => showModelScores(byModel, sentence);
}

// The terms whose sum is the score of a query h and a key y, as numbers and as text.
function scoreTerms(kind, h, y) {
  if (kind === "additive") {
    const numbers = h.map((x, k) => V[k] * Math.tanh(x + y[k]));
    const texts = h.map((x, k) => `${formatNumber(V[k], 0)}·tanh(${formatNumber(x, 1)} + ${formatNumber(y[k], 1)})`);
    return { numbers, texts };
  }
  const key = kind === "general" ? matrixVectorProduct(W, y) : y;
  const numbers = h.map((x, k) => x * key[k]);
  const texts = h.map((x, k) => `${formatNumber(x, 1)}·${formatNumber(key[k], 1)}`);
  return { numbers, texts };
}

function showScoresByHand(container) {
  const h = [1, 2];
  const ys = [
    [2, 0],
    [0, 1],
    [-1, 1],
  ];
  const kinds = choice("score", gettext("score"), SCORES, () => draw());
  const result = el("div", { class: "worked-example", "aria-live": "polite" });
  const numberInput = (vector, k, name) => {
    const onInput = (event) => {
      vector[k] = Number(event.target.value);
      draw();
    };
    const label = gettext("{name}, number {number}", { name, number: k + 1 });
    return el("input", {
      type: "number",
      "data-name": `${name}.${k + 1}`,
      step: 0.5,
      min: -9,
      max: 9,
      value: vector[k],
      "aria-label": label,
      on: { input: onInput },
    });
  };
  const vectorInput = (vector, name) =>
    el(
      "span",
      { class: "vector" },
      el("i", {}, name),
      " = (",
      numberInput(vector, 0, name),
      ", ",
      numberInput(vector, 1, name),
      ")",
    );
  const vectors = el(
    "div",
    { class: "vectors" },
    vectorInput(h, "h"),
    ...ys.map((y, i) => vectorInput(y, `y${SUBSCRIPTS[i]}`)),
  );
  container.append(kinds.node, vectors, result);
  draw();

  function draw() {
    const terms = ys.map((y) => scoreTerms(kinds.value, h, y));
    const scores = terms.map(({ numbers }) => sum(numbers));
    const weights = softmax(scores);
    const context = weightedSum(weights, ys);
    const normalizer = sum(scores.map(Math.exp));
    const lines = scores.map((score, i) => {
      const scoreLine = el(
        "span",
        { class: "calculation" },
        el("i", {}, `e${SUBSCRIPTS[i]}`),
        ` = ${terms[i].texts.join(" + ")} = `,
        el("b", { class: "e" }, formatNumber(score)),
      );
      const quotient = `exp(${formatNumber(score)}) / ${formatNumber(normalizer)}`;
      const weightLine = el(
        "span",
        { class: "weight-calculation calculation" },
        el("span", {}, el("i", {}, `α${SUBSCRIPTS[i]}`), ` = ${quotient} = `),
        bar(weights[i]),
      );
      return el("li", {}, scoreLine, weightLine);
    });
    const products = weights.map((weight, i) => {
      const y = ys[i].map((x) => formatNumber(x, 1)).join(", ");
      return `${formatNumber(weight)}·(${y})`;
    });
    const contextText = context.map((x) => formatNumber(x)).join(", ");
    result.replaceChildren(
      hint(NOTES[kinds.value]),
      el("ol", { class: "score-lines" }, ...lines),
      el(
        "p",
        { class: "calculation" },
        el("i", {}, "c"),
        ` = ${products.join(" + ")} = `,
        el("b", { class: "c" }, `(${contextText})`),
      ),
    );
  }
}

function showModelScores(container, { scores }) {
  let step = 1; // the target position whose scores are shown
  const kinds = choice("score-of-model", gettext("score"), SCORES, () => showTranslation());
  const pieces = el("div", {});
  const table = el("div", {});
  container.replaceChildren(kinds.node, pieces, table);
  showTranslation();

  function showTranslation() {
    const { target } = scores[kinds.value];
    step = Math.min(step, target.length - 1);
    pieces.replaceChildren(
      pieceChoice(target, step, (index) => {
        step = index;
        draw();
      }),
    );
    draw();
  }

  // Only the additive score has a vector v. Its recorded queries and keys are W h and U y, the general score's keys W y.
  function draw() {
    const kind = kinds.value;
    const { source, query: queries, key: keys, v } = scores[kind];
    const query = queries[step];
    const termOf = (key, k) => (v ? v[k] * Math.tanh(query[k] + key[k]) : query[k] * key[k]);
    const terms = keys.map((key) => key.map((_, k) => termOf(key, k)));
    const sums = terms.map(sum);
    const weights = softmax(sums);
    const maximum = maxAbs(terms.flat());
    const describeTerm = (s, k) => {
      const [x, y, term] = [query[k], keys[s][k], terms[s][k]].map((value) => formatNumber(value));
      return v ? `${formatNumber(v[k])} · tanh(${x} + ${y}) = ${term}` : `${x} · ${y} = ${term}`;
    };
    const rows = source.map((piece, s) =>
      gridRow(
        formatPiece(piece),
        gridCell(
          strip(terms[s], maximum, gettext("{count} products", { count: query.length }), (k) => describeTerm(s, k)),
        ),
        gridCell(formatNumber(sums[s]), "amount e"),
        gridCell(bar(weights[s])),
      ),
    );
    const cellMeaning = v
      ? gettext("Each cell is v · tanh(W h + U y) for one hidden unit:")
      : gettext("Each cell is a product of a number of h and one of {vector}:", {
          vector: kind === "general" ? "W y" : "y",
        });
    table.replaceChildren(
      gridTable(
        "score-table",
        gettext("scores"),
        gridHeader(
          gettext("source"),
          gettext("the {count} products", { count: query.length }),
          gettext("sum {symbol}", { symbol: "e" }),
          gettext("weight {symbol}", { symbol: "α" }),
        ),
        ...rows,
      ),
      hint(
        `${cellMeaning} `,
        gettext("blue raises the score of this word, orange lowers it. Point at one to see its numbers."),
      ),
    );
  }
}
