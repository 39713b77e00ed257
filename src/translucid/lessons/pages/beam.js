// Lesson 8: the tree of a beam search, step by step, and a comparison with greedy search.
//
// A node is [index of its parent, piece, log-probability of the prefix, index of its fate]; the root has the parent −1.
import { el, svg } from "./dom.js";
import { truncateToWidth } from "./elements.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { gettext, ngettext } from "./messages.js";
import { hint, liveRegion, slider, tableHead } from "./widgets.js";

const FATES = ["kept", "ended", "dropped"]; // classes
const FATE_LABELS = [gettext("kept"), gettext("ended"), gettext("dropped")];
// Sizes in pixels: from one step to the next, from one node to the one below, of a node, and beside the text in it.
const [COLUMN_WIDTH, ROW_HEIGHT] = [140, 46];
const [NODE_WIDTH, NODE_HEIGHT] = [116, 34];
const NODE_PADDING = 7;
const STEP_MILLISECONDS = 900; // of the animation

export function beamFigure(container) {
  let sentence;
  let timer; // of the animation, while it runs
  const formatBeam = (beam) => (beam === 1 ? `1, ${gettext("greedy")}` : String(beam));
  const beam = slider(
    "beam-k",
    gettext("beam {symbol}", { symbol: "K" }),
    { min: 1, max: 5, value: 3, format: formatBeam },
    () => showSearch(),
  );
  const step = slider("step", gettext("step"), { min: 1, max: 2, value: 2 }, () => draw());
  const playButton = el("button", { type: "button", on: { click: onPlayClick } }, gettext("Play"));
  const tree = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": gettext("search tree") });
  const summary = liveRegion();
  const results = el("div", {});
  container.append(
    el("div", { class: "controls" }, beam.node, step.node, playButton),
    tree,
    summary,
    el("h3", {}, gettext("Result of each beam size")),
    results,
  );
  return (newSentence) => {
    sentence = newSentence;
    showSearch();
  };

  // The search with the chosen beam.
  function currentSearch() {
    return sentence.searches[beam.value - 1];
  }

  function lastStep() {
    return Number(step.input.max);
  }

  function showSearch() {
    stop();
    step.input.max = Math.max(...depthsOf(currentSearch().nodes));
    step.value = step.input.max;
    draw({ scrollToStart: true });
    results.replaceChildren(...searchResults(sentence, beam.value));
  }

  function onPlayClick() {
    if (timer) {
      stop();
      return;
    }
    step.value = 1;
    draw();
    playButton.textContent = gettext("Pause");
    timer = setInterval(() => {
      if (step.value >= lastStep()) {
        stop();
        return;
      }
      step.value += 1;
      draw();
    }, STEP_MILLISECONDS);
  }

  function stop() {
    clearInterval(timer);
    timer = undefined;
    playButton.textContent = gettext("Play");
  }

  // Draw the tree up to the current step, and scroll to that step or to the start.
  function draw({ scrollToStart = false } = {}) {
    const search = currentSearch();
    const isComplete = step.value === lastStep();
    const drawing = treeDrawing(search, step.value, lastStep(), isComplete);
    tree.replaceChildren(drawing);
    // Texts can be measured only in the page.
    for (const piece of drawing.querySelectorAll(".piece")) truncateToWidth(piece, NODE_WIDTH - 2 * NODE_PADDING);
    const currentRight = step.value * COLUMN_WIDTH + NODE_WIDTH + 8;
    tree.scrollLeft = scrollToStart ? 0 : Math.max(0, currentRight - tree.clientWidth);
    summary.textContent = stepSummary(search.nodes, step.value);
  }
}

// The translations of all beams in a table, and a comparison of the chosen one with greedy search.
function searchResults({ searches, alpha }, chosenBeam) {
  const rows = searches.map((search, i) => {
    const beam = i + 1;
    return el(
      "tr",
      { class: beam === chosenBeam ? "chosen" : "" },
      el("th", { scope: "row" }, beam),
      el("td", { lang: "es", class: "text" }, search.text),
      el("td", {}, formatNumber(search.log_probability, 3)),
      el("td", {}, formatNumber(search.score, 3)),
    );
  });
  const divisor = `((5 + ${gettext("tokens")}) / 6)${alpha === 1 ? "" : `^${alpha}`}`;
  return [
    el(
      "table",
      { class: "data-table" },
      tableHead("K", gettext("translation"), "log p", gettext("score")),
      el("tbody", {}, ...rows),
    ),
    hint(
      `${comparison(searches[0], searches[chosenBeam - 1])} `,
      gettext(
        "The score is log p divided by {divisor}, including the end token, so that longer sentences may have a lower p.",
        { divisor },
      ),
    ),
  ];
}

// A picture of all nodes up to a step. highlightsBest: whether the path to the best hypothesis stands out.
function treeDrawing({ nodes, best }, step, lastStep, highlightsBest) {
  const depths = depthsOf(nodes);
  const rows = rowsOf(nodes, depths);
  const bestPath = new Set(highlightsBest ? pathTo(nodes, best) : []);
  const visible = [...nodes.keys()].filter((i) => depths[i] <= step);
  /** @returns {[number, number]} */
  const topLeftOf = (i) => [depths[i] * COLUMN_WIDTH + 4, rows[i] * ROW_HEIGHT + 6];
  const classOf = (i) => (bestPath.has(i) ? "best" : FATES[nodes[i][3]]);
  const width = lastStep * COLUMN_WIDTH + NODE_WIDTH + 8;
  const height = (Math.max(...rows) + 1) * ROW_HEIGHT + 8;
  const edges = visible
    .filter((i) => nodes[i][0] >= 0)
    .map((i) => {
      const d = edgePath(topLeftOf(nodes[i][0]), topLeftOf(i));
      return svg("path", { class: `edge ${classOf(i)}`, d });
    });
  const boxes = visible.map((i) => nodeDrawing(nodes, i, topLeftOf(i), classOf(i)));
  const label = gettext("search tree; the text below lists the hypotheses at this step");
  return svg("svg", { class: "search-tree", width, height, role: "img", "aria-label": label }, ...edges, ...boxes);
}

// A curve from the right side of a node to the left side of its child.
function edgePath([parentLeft, parentTop], [childLeft, childTop]) {
  const startX = parentLeft + NODE_WIDTH;
  const [startY, endY] = [parentTop + 16, childTop + 16];
  return `M ${startX} ${startY} C ${startX + 14} ${startY}, ${childLeft - 14} ${endY}, ${childLeft} ${endY}`;
}

function nodeDrawing(nodes, i, [x, y], className) {
  const [parent, piece, logProbability, fate] = nodes[i];
  const isRoot = parent < 0;
  const probability = isRoot ? "" : formatPercent(Math.exp(logProbability - nodes[parent][2]), 1);
  const tooltip = isRoot
    ? gettext("start of every translation")
    : gettext("{piece}: probability {probability} here, log-probability of the prefix {logProbability}; {fate}", {
        piece: formatPiece(piece),
        probability,
        logProbability: formatNumber(logProbability, 4),
        fate: FATE_LABELS[fate],
      });
  return svg(
    "g",
    { class: `node ${className}`, transform: `translate(${x} ${y})` },
    svg("rect", { width: NODE_WIDTH, height: NODE_HEIGHT, rx: 6 }),
    svg("text", { x: NODE_PADDING, y: 15, class: "piece" }, formatPiece(piece)),
    svg("text", { x: NODE_PADDING, y: 28, class: "muted" }, probability),
    svg(
      "text",
      { x: NODE_WIDTH - NODE_PADDING, y: 28, "text-anchor": "end", class: "muted" },
      isRoot ? "" : formatNumber(logProbability),
    ),
    svg("title", {}, tooltip),
  );
}

// The hypotheses at a step, by their fate.
function stepSummary(nodes, step) {
  const depths = depthsOf(nodes);
  const current = [...nodes.keys()].filter((i) => depths[i] === step);
  const parts = FATE_LABELS.map((name, fate) => {
    const hypotheses = current.filter((i) => nodes[i][3] === fate);
    const texts = hypotheses.map((i) => `${textOf(nodes, i)} (${formatNumber(nodes[i][2])})`);
    return texts.length ? `${name}: ${texts.join(", ")}` : "";
  });
  return `${parts.filter(Boolean).join("; ")}.`;
}

// How much more probable a translation is than the greedy one.
function comparison(greedy, search) {
  if (search === greedy) return gettext("A beam of one is greedy search.");
  if (search.text === greedy.text) return gettext("This beam finds the same translation as greedy search.");
  const gain = search.log_probability - greedy.log_probability;
  const factor = formatNumber(Math.exp(Math.abs(gain)), 1);
  return gain >= 0
    ? gettext("This beam’s translation is {factor} times as probable as the greedy one.", { factor })
    : gettext("This beam’s translation is {factor} times less probable than the greedy one.", { factor });
}

// The number of pieces in the prefix of each node. A parent precedes its children.
function depthsOf(nodes) {
  const depths = [];
  nodes.forEach(([parent], i) => {
    depths[i] = parent < 0 ? 0 : depths[parent] + 1;
  });
  return depths;
}

// The row of each node. Nodes of a step are in the order of their parents, children of the same parent by probability.
function rowsOf(nodes, depths) {
  const rows = [0];
  for (let depth = 1; depth <= Math.max(...depths); depth += 1) {
    const column = [...nodes.keys()].filter((i) => depths[i] === depth);
    column.sort((a, b) => rows[nodes[a][0]] - rows[nodes[b][0]] || nodes[b][2] - nodes[a][2]);
    column.forEach((i, row) => {
      rows[i] = row;
    });
  }
  return rows;
}

// The nodes from a node up to the root, which is left out.
function pathTo(nodes, node) {
  const path = [];
  for (let i = node; i > 0; i = nodes[i][0]) path.push(i);
  return path;
}

function textOf(nodes, node) {
  const pieces = pathTo(nodes, node)
    .reverse()
    .map((i) => nodes[i][1]);
  return pieces.join("").replaceAll("▁", " ").replace("</s>", "").trim();
}

// What the text says about the record.
export function beamFacts({ candidates, differing, better, worse, gains }) {
  const values = { candidates, differing, better, worse };
  const changed = gettext("Of {candidates} held-out sentences, a beam of 5 changes {differing} translations.", values);
  const gaining = gains
    ? ngettext(
        "The first sentence is one of those that get better.",
        "The first {count} sentences are some of those that get better.",
        gains,
      )
    : "";
  return {
    found: `${changed} ${gaining}`,
    quality: gettext(
      "Of {candidates} held-out sentences, a beam of 5 changes {differing} translations: by chrF, {better} get better and " +
        "{worse} worse.",
      values,
    ),
  };
}
