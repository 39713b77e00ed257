// Lesson 5: a position that can be dragged, its sine and cosine waves, the waves as clocks, and its similarity to others.
import { el, svg } from "./dom.js";
import { formatNumber } from "./formatting.js";
import { dot } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { choice, drawingWidth, hint, liveRegion, slider, strip } from "./widgets.js";

const MAX_POSITION = 60;
const POSITIONS = Array.from({ length: MAX_POSITION + 1 }, (_, position) => position);
const WAVES = [
  { name: "sin", wave: Math.sin, className: "c1" },
  { name: "cos", wave: Math.cos, className: "c2" },
];
const SHOWN_PAIRS = [0, 4, 8, 12, 16, 24]; // pair i consists of the dimensions 2i and 2i + 1
// Sizes of the charts in pixels. The margin below the curves has room for the numbers of the positions.
const HEIGHT = 160;
const MARGIN = { top: 10, right: 10, bottom: 26, left: 34 };
const PLOT_HEIGHT = HEIGHT - MARGIN.top - MARGIN.bottom;

export function positionsFigure(container, { width }) {
  const chartWidth = drawingWidth(container);
  let selectedPair = 4;
  const position = slider("position", gettext("position p"), { min: 0, max: MAX_POSITION, value: 10 }, () => draw());
  const shift = slider("shift", gettext("shift k"), { min: 0, max: 20, value: 3 }, () => draw());
  const pairOptions = SHOWN_PAIRS.map((pair) => ({ label: String(pair), value: pair }));
  const selectPair = (pair) => {
    selectedPair = pair;
    draw();
  };
  const pairs = choice("pair", gettext("pair i"), pairOptions, selectPair, {
    selectedIndex: SHOWN_PAIRS.indexOf(selectedPair),
  });
  const onDrag = (newPosition) => {
    position.value = newPosition;
    draw();
  };
  const vectors = el("div", { class: "strips" });
  const waveTitle = el("h3", {});
  const waveLegend = el("p", { class: "legend" });
  const waveChart = draggableChart(gettext("sine and cosine of the chosen pair by position"), chartWidth, onDrag);
  const clocks = el("div", { class: "clocks" });
  const clockLegend = el("p", { class: "legend" });
  const summary = liveRegion();
  const similarityLegend = el("p", { class: "legend" });
  const similarityChart = draggableChart(gettext("dot product of this position with every other"), chartWidth, onDrag);
  container.append(
    el("div", { class: "controls" }, position.node, shift.node, pairs.node),
    vectors,
    hint(gettext("Each vector is a row of numbers: blue is positive, orange negative, white 0.")),
    waveTitle,
    waveLegend,
    waveChart,
    el("h3", {}, gettext("The same pairs as clocks")),
    clockLegend,
    clocks,
    summary,
    el("h3", {}, `P[p] · P[q]: ${gettext("similarity of positions")}`),
    similarityLegend,
    similarityChart,
    hint(
      gettext(
        "Drag in the pictures, or use the sliders. The curve moves with p and keeps its shape: it depends only on the distance q − p.",
      ),
    ),
  );
  draw();
  return () => {}; // the figure shows no sentences

  function draw() {
    const [p, k] = [position.value, shift.value];
    vectors.replaceChildren(...vectorStrips(p, k, width));
    waveTitle.textContent = gettext("Two waves of the table: dimensions {first} and {second}", {
      first: 2 * selectedPair,
      second: 2 * selectedPair + 1,
    });
    waveLegend.replaceChildren(...waveValues(p, selectedPair, width));
    waveChart.replaceChildren(...waveCurves(p, selectedPair, width, chartWidth));
    clockLegend.replaceChildren(
      el("span", {}, el("span", { class: "hand-mark" }), `p = ${p}`),
      el("span", {}, el("span", { class: "hand-mark shifted" }), `p + k = ${p + k}`),
    );
    clocks.replaceChildren(...SHOWN_PAIRS.map((pair) => clock(pair, p, k, width, pair === selectedPair)));
    summary.textContent = rotationSummary(p, k, selectedPair, width);
    similarityLegend.replaceChildren(...similarityValues(p, k, width));
    similarityChart.replaceChildren(...similarityCurve(p, k, width, chartWidth));
  }
}

function angleOf(position, pair, width) {
  return position / 10000 ** ((2 * pair) / width);
}

// The vector P[position].
function encodingOf(position, width) {
  return Array.from({ length: width }, (_, dimension) => {
    const wave = dimension % 2 ? Math.cos : Math.sin;
    return wave(angleOf(position, Math.floor(dimension / 2), width));
  });
}

function xOf(position, chartWidth) {
  return MARGIN.left + (position / MAX_POSITION) * (chartWidth - MARGIN.left - MARGIN.right);
}

// An empty chart over all positions. onDrag is called with the position at the pointer.
function draggableChart(label, chartWidth, onDrag) {
  const chart = svg("svg", {
    class: "chart draggable",
    viewBox: `0 0 ${chartWidth} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  const reportPosition = (event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chartWidth;
    const position = Math.round(((x - MARGIN.left) / (chartWidth - MARGIN.left - MARGIN.right)) * MAX_POSITION);
    onDrag(Math.max(0, Math.min(MAX_POSITION, position)));
  };
  chart.addEventListener("pointerdown", (event) => {
    chart.setPointerCapture(event.pointerId);
    reportPosition(event);
  });
  chart.addEventListener("pointermove", (event) => {
    if (event.buttons) reportPosition(event);
  });
  return chart;
}

function vectorStrips(p, k, width) {
  const encoding = encodingOf(p, width);
  const describeCell = (dimension) =>
    gettext("dimension {dimension}: {value}", { dimension, value: formatNumber(encoding[dimension], 3) });
  const label = (position) => gettext("position {position}: {count} numbers", { position, count: width });
  return [
    el("span", { class: "name" }, `P[${p}]`),
    strip(encoding, 1, label(p), describeCell),
    el("span", { class: "name" }, `P[${p + k}]`),
    strip(encodingOf(p + k, width), 1, label(p + k)),
  ];
}

function waveValues(p, pair, width) {
  return WAVES.map(({ name, wave, className }) => {
    const value = formatNumber(wave(angleOf(p, pair, width)), 3);
    return el("span", { class: className }, `● ${name} ${value}`);
  });
}

function waveCurves(p, pair, width, chartWidth) {
  const yOf = (value) => MARGIN.top + ((1 - value) / 2) * PLOT_HEIGHT;
  const x = (q) => xOf(q, chartWidth);
  const quarters = Array.from({ length: 4 * MAX_POSITION + 1 }, (_, i) => i / 4); // make the curves smooth
  const curves = WAVES.flatMap(({ wave, className }) => {
    const y = (q) => yOf(wave(angleOf(q, pair, width)));
    const points = quarters.map((q) => `${x(q)},${y(q)}`).join(" ");
    const dots = POSITIONS.map((q) => svg("circle", { class: className, cx: x(q), cy: y(q), r: q === p ? 6 : 1.6 }));
    return [svg("polyline", { class: `${className} thin`, points }), ...dots];
  });
  const marker = svg("line", { class: "current", x1: x(p), x2: x(p), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
  return [...axes(yOf, [-1, 0, 1], chartWidth), ...curves, marker];
}

// Describe the shift as a rotation, which computes (sin, cos) at p + k from (sin, cos) at p.
function rotationSummary(p, k, pair, width) {
  const turn = angleOf(k, pair, width);
  const [sin, cos] = [Math.sin(angleOf(p, pair, width)), Math.cos(angleOf(p, pair, width))];
  const shiftedSin = sin * Math.cos(turn) + cos * Math.sin(turn);
  const shiftedCos = cos * Math.cos(turn) - sin * Math.sin(turn);
  const before = `(${formatNumber(sin, 3)}, ${formatNumber(cos, 3)})`;
  const after = `(${formatNumber(shiftedSin, 3)}, ${formatNumber(shiftedCos, 3)})`;
  return gettext(
    "Pair {pair}: from p to p + k the hand turns by {turn} radians, for every p. (sin, cos) goes from {before} to {after}.",
    { pair, turn: formatNumber(turn, 3), before, after },
  );
}

// A pair of dimensions as a clock, whose hands are those of the positions p and p + k.
function clock(pair, p, k, width, isSelected) {
  const hand = (position, className) => {
    const angle = angleOf(position, pair, width);
    return svg("line", { class: className, x1: 0, y1: 0, x2: 40 * Math.sin(angle), y2: -40 * Math.cos(angle) });
  };
  const turn = angleOf(k, pair, width);
  const label = gettext("pair {pair}: the hand turns by {turn}", { pair, turn: formatNumber(turn, 3) });
  const drawing = svg(
    "svg",
    { viewBox: "-50 -50 100 100", role: "img", "aria-label": label },
    svg("circle", { class: "face", r: 44 }),
    hand(p + k, "shifted-hand"),
    hand(p, "hand"),
  );
  const turned = gettext("turned by {turn}", { turn: formatNumber(turn, 2) });
  const caption = el("figcaption", {}, `i = ${pair}`, el("br"), turned);
  return el("figure", { class: isSelected ? "chosen" : "" }, drawing, caption);
}

function similarityValues(p, k, width) {
  const encoding = encodingOf(p, width);
  const describe = (symbol, name, q) =>
    el("span", { class: "c3" }, `${symbol} q = ${name}: ${formatNumber(dot(encoding, encodingOf(q, width)))}`);
  return [describe("●", "p", p), describe("○", "p + k", p + k)];
}

function similarityCurve(p, k, width, chartWidth) {
  const maximum = width / 2; // P[p] · P[p], because sin² + cos² of each pair is 1
  const yOf = (value) => HEIGHT - MARGIN.bottom - ((value + 0.1 * maximum) / (1.1 * maximum)) * PLOT_HEIGHT;
  const encoding = encodingOf(p, width);
  const x = (q) => xOf(q, chartWidth);
  const y = (q) => yOf(dot(encoding, encodingOf(q, width)));
  const points = POSITIONS.map((q) => `${x(q)},${y(q)}`).join(" ");
  const curve = svg("polyline", { class: "c3", points });
  const marker = (q, className) => svg("circle", { class: className, cx: x(q), cy: y(q), r: 5 });
  const markers = [marker(p, "c3")];
  if (p + k <= MAX_POSITION) markers.unshift(marker(p + k, "c3 shifted")); // p is drawn last, on top
  return [...axes(yOf, [0, maximum], chartWidth), curve, ...markers];
}

// Grid lines at some values, and the numbers of both axes.
function axes(yOf, values, chartWidth) {
  const lines = values.flatMap((value) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: chartWidth - MARGIN.right, y1: yOf(value), y2: yOf(value) }),
    svg("text", { x: MARGIN.left - 6, y: yOf(value) + 4, "text-anchor": "end" }, formatNumber(value, 0)),
  ]);
  const numbers = [0, 20, 40, 60].map((q) =>
    svg("text", { class: "muted", x: xOf(q, chartWidth), y: HEIGHT - 6, "text-anchor": "middle" }, q),
  );
  return [...lines, ...numbers];
}

// What the text says about the record.
export function positionsFacts({ width }) {
  return { width: String(width) };
}
