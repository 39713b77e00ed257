// Lesson 7: scores of random vectors and of a head of the model, divided by other powers of d than √d.
import { el, svg } from "./dom.js";
import { formatNumber, formatPiece } from "./formatting.js";
import { dot, mean, softmax } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import {
  bar,
  drawingWidth,
  gridCell,
  gridHeader,
  gridRow,
  gridTable,
  hint,
  liveRegion,
  queryChoice,
  slider,
} from "./widgets.js";

const MAX_LOG_DIMENSIONS = 10; // 1024 dimensions
const MAX_SLOPE = 0.25; // that of the softmax, α (1 − α) at α = 1/2

export function scaleFigure(container, record) {
  let sentence;
  const selected = queryChoice(() => draw());
  const formatDimensions = (logDimensions) => String(2 ** logDimensions);
  const formatExponent = (exponent) =>
    exponent === 0.5
      ? gettext("{exponent}, the paper’s √d", { exponent: formatNumber(exponent) })
      : formatNumber(exponent);
  const dimensions = slider(
    "dimensions",
    gettext("dimensions d"),
    { min: 0, max: MAX_LOG_DIMENSIONS, value: 6, format: formatDimensions },
    () => draw(),
  );
  const exponent = slider(
    "power",
    gettext("divide scores by d to the power"),
    { min: 0, max: 1, step: 0.25, value: 0, format: formatExponent },
    () => draw(),
  );
  const randomScores = el("div", {});
  const summary = liveRegion();
  const headWidth = el("span", { class: "width" });
  const headScores = el("div", {});
  container.append(
    el("div", { class: "controls" }, exponent.node),
    el("h3", {}, gettext("Random queries and keys")),
    dimensions.node,
    randomScores,
    summary,
    el("h3", {}, gettext("A head of the translation model"), ", d = ", headWidth),
    selected.pieces,
    selected.heads,
    headScores,
  );
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    headWidth.textContent = sentence.heads[0].query[0].length;
    selected.showSentence(sentence);
    draw();
  }

  function draw() {
    drawRandomScores();
    drawHeadScores();
  }

  // Scores of the first d numbers of the recorded query and keys.
  function drawRandomScores() {
    const d = 2 ** dimensions.value;
    const query = record.query.slice(0, d);
    const scores = record.keys.map((key) => dot(query, key.slice(0, d)) / d ** exponent.value);
    const weights = softmax(scores);
    randomScores.replaceChildren(
      scoreTable(
        scores,
        scores.map((_, i) => gettext("key {number}", { number: i + 1 })),
      ),
      el("h3", {}, `${gettext("The steepest slope of the softmax")}, max α (1 − α)`),
      slopeChart(record.slopes, exponent.value, dimensions.value, drawingWidth(container)),
      hint(
        gettext("Mean over {queries} queries with {keys} keys each.", {
          queries: record.draws,
          keys: record.keys.length,
        }),
      ),
    );
    summary.textContent = gettext(
      "The scores’ standard deviation is {deviation}, the largest weight {weight}, the steepest slope of the softmax {slope}.",
      {
        deviation: formatNumber(standardDeviation(scores)),
        weight: formatNumber(Math.max(...weights)),
        slope: formatNumber(steepestSlope(weights), 4),
      },
    );
  }

  function drawHeadScores() {
    const { query: queries, key: keys } = sentence.heads[selected.head];
    const scores = keys.map((key) => dot(queries[selected.step], key) / key.length ** exponent.value);
    headScores.replaceChildren(
      scoreTable(scores, sentence.source.map(formatPiece)),
      hint(
        gettext(
          "The model was trained with √d, so its scores are √d times too large at 0, and √d times too small at 1.",
        ),
      ),
    );
  }
}

function scoreTable(scores, names) {
  const weights = softmax(scores);
  const rows = scores.map((score, i) =>
    gridRow(names[i], gridCell(formatNumber(score), "amount score"), gridCell(bar(weights[i]))),
  );
  return gridTable(
    "weight-table",
    gettext("scores and weights"),
    gridHeader(gettext("key"), gettext("score"), gettext("weight")),
    ...rows,
  );
}

// A chart of the steepest slope by number of dimensions, for scores that are divided by d to several powers.
//
// slopes: for each exponent, such as "0.50", the slopes at 1, 2, 4, … dimensions
// exponent, logDimensions: what the reader has chosen
function slopeChart(slopes, exponent, logDimensions, width) {
  const [height, marginLeft] = [190, 40];
  const xOf = (log) => marginLeft + (log / MAX_LOG_DIMENSIONS) * (width - marginLeft - 110);
  const yOf = (slope) => 10 + (1 - slope / MAX_SLOPE) * (height - 46);
  const right = xOf(MAX_LOG_DIMENSIONS);
  const drawing = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": gettext("steepest slope of the softmax by number of dimensions"),
  });
  for (const slope of [0, MAX_SLOPE / 2, MAX_SLOPE]) {
    drawing.append(
      svg("line", { class: "grid", x1: marginLeft, x2: right, y1: yOf(slope), y2: yOf(slope) }),
      svg("text", { x: marginLeft - 6, y: yOf(slope) + 4, "text-anchor": "end" }, formatNumber(slope)),
    );
  }
  const curves = [
    { power: 0, className: "c2", label: gettext("not divided") },
    { power: 0.5, className: "c1", label: gettext("divided by √d") },
  ];
  const isCompared = curves.some(({ power }) => power === exponent);
  if (!isCompared)
    curves.push({
      power: exponent,
      className: "c3",
      label: gettext("by {divisor}", { divisor: `d^${formatNumber(exponent)}` }),
    });
  for (const { power, className, label } of curves) {
    const values = slopes[power.toFixed(2)];
    const points = values.map((slope, log) => `${xOf(log)},${yOf(slope)}`).join(" ");
    drawing.append(
      svg("polyline", { class: className, points }),
      svg("text", { class: `${className} name`, x: right + 8, y: yOf(values[MAX_LOG_DIMENSIONS]) + 4 }, label),
    );
    if (power !== exponent) continue;
    const slope = values[logDimensions];
    const title = svg("title", {}, formatNumber(slope, 3));
    drawing.append(svg("circle", { class: className, cx: xOf(logDimensions), cy: yOf(slope), r: 6 }, title));
  }
  for (let log = 0; log <= MAX_LOG_DIMENSIONS; log += 2) {
    drawing.append(svg("text", { x: xOf(log), y: height - 20, "text-anchor": "middle" }, 2 ** log));
  }
  drawing.append(
    svg(
      "text",
      { class: "muted", x: (marginLeft + right) / 2, y: height - 3, "text-anchor": "middle" },
      gettext("dimensions d"),
    ),
  );
  return drawing;
}

// The largest derivative of a weight with respect to its own score. Backpropagation multiplies the gradient by it.
function steepestSlope(weights) {
  return Math.max(...weights.map((weight) => weight * (1 - weight)));
}

function standardDeviation(values) {
  const average = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - average) ** 2)));
}
