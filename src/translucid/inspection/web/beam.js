// Beam search: its tree, its finished hypotheses, and alternative continuations of a prefix.
//
// A tree is what beam_record in inspection/rendering/html.py returns. Each column holds the nodes of one step, the more probable ones higher up.

import {
  element,
  formatPercent,
  formatSigned,
  isolateText,
  standaloneSvg,
  svgElement,
  textDirection,
  themeColors,
  truncateToWidth,
} from "./elements.js";
import { gettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

// Pixels
const [STEP_WIDTH, ROW_HEIGHT] = [104, 40];
const [NODE_WIDTH, NODE_HEIGHT] = [88, 30];
const MARGIN = 14;
const MAX_NAME_WIDTH = NODE_WIDTH - 8;

// Show the tree of a beam search and its finished hypotheses.
//
// options: {
//   onChoose(tokens, text, isFinished): a node is clicked, with the tokens and the text of its path; without it, nodes are no buttons,
//   lang: the language code of the hypotheses,
//   finished: the description of a finished hypothesis }
// Returns { showSteps(count), svg() }: showSteps shows the tree as it is after so many steps.
export function showBeam(root, tree, options = {}) {
  const layout = layOut(tree);
  const { width, height } = layout;
  const description = element("p", { className: "description", ariaLive: "polite" });
  const edges = tree.nodes.map((_, i) => edgeElement(layout, i)).filter(Boolean);
  const nodes = tree.nodes.map((_, i) => nodeElement(layout, i));
  const svg = svgElement(
    "svg",
    {
      class: "tree",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": gettext("beam search tree"),
    },
    ...edges,
    ...nodes,
  );
  const scroll = element("div", { className: "scroll" }, svg);
  // A scrolling region needs a Tab stop; if nodes are buttons, they are the Tab stop.
  if (!options.onChoose)
    Object.assign(scroll, { tabIndex: 0, role: "region", ariaLabel: gettext("steps of the beam search") });
  nodes.forEach((node, i) => {
    if (i === 0) return;
    addDescription(node, i);
    if (options.onChoose) makeButton(node, i);
  });
  root.replaceChildren(scroll, description, hypothesisTable(tree, options.lang));
  for (const node of nodes) truncateToWidth(node.querySelector(".name"), MAX_NAME_WIDTH);
  describe(null);
  return { showSteps, svg: () => treeSvg(root, layout, nodes) };

  function addDescription(node, i) {
    for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => describe(i));
    for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => describe(null));
  }

  function describe(i) {
    description.textContent = i === null ? hint(options.onChoose) : describeNode(tree, i, options.finished);
  }

  function makeButton(node, i) {
    const attributes = {
      role: "button",
      tabindex: i === 1 ? 0 : -1,
      "aria-label": gettext("continue after {text}", { text: nodeText(tree, i) }),
    };
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    const choose = () => {
      const tokens = pathTo(tree, i).map((ancestor) => tree.nodes[ancestor].token);
      options.onChoose(tokens.slice(tree.opening), nodeText(tree, i), tree.nodes[i].fate === "ended");
    };
    node.addEventListener("click", choose);
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose();
      }
      const isVisible = (candidate) => !nodes[candidate].classList.contains("upcoming");
      const next = neighbor(layout, i, event.key, isVisible);
      if (!next) return;
      event.preventDefault();
      focusNode(nodes[next]);
    });
  }

  function focusNode(target) {
    for (const node of nodes.slice(1)) node.setAttribute("tabindex", node === target ? 0 : -1);
    target.focus();
  }

  function showSteps(count) {
    for (const part of [...edges, ...nodes.slice(1)]) {
      part.classList.toggle("upcoming", layout.steps[Number(part.dataset.node)] > count);
    }
    const isMotionReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const rightEnd = MARGIN + (count + 1) * STEP_WIDTH + NODE_WIDTH;
    scroll.scrollTo({ left: rightEnd - scroll.clientWidth, behavior: isMotionReduced ? "auto" : "smooth" });
  }
}

// Return the step of each node, the center of its box, and the size of the tree.
function layOut(tree) {
  const steps = [];
  const nodesPerStep = [];
  const centers = tree.nodes.map((node, i) => {
    const step = i === 0 ? 0 : steps[node.parent] + 1;
    const row = nodesPerStep[step] ?? 0;
    steps[i] = step;
    nodesPerStep[step] = row + 1;
    return { x: MARGIN + NODE_WIDTH / 2 + step * STEP_WIDTH, y: MARGIN + NODE_HEIGHT / 2 + row * ROW_HEIGHT };
  });
  return {
    tree,
    steps,
    centers,
    best: new Set(tree.best === null ? [] : pathTo(tree, tree.best)),
    width: 2 * MARGIN + NODE_WIDTH + Math.max(...steps) * STEP_WIDTH,
    height: 2 * MARGIN + NODE_HEIGHT + (Math.max(...nodesPerStep) - 1) * ROW_HEIGHT,
  };
}

// Return the indices of the nodes from the root, which is left out, to a node.
function pathTo({ nodes }, target) {
  const path = [];
  for (let i = target; i > 0; i = nodes[i].parent) path.unshift(i);
  return path;
}

function nodeText(tree, i) {
  const pieces = pathTo(tree, i).map((ancestor) => tree.nodes[ancestor].name);
  return pieces.join("").replaceAll("▁", " ").trim();
}

// Return the probability of a node's token, given its prefix.
function tokenProbability({ nodes }, i) {
  return Math.exp(nodes[i].log_prob - nodes[nodes[i].parent].log_prob);
}

function hint(hasButtons) {
  const text = gettext(
    "Each box is a word piece with its probability; · marks the start of a word. More probable prefixes are higher up.",
  );
  return hasButtons ? `${text} ${gettext("Choose a box to continue from it.")}` : text;
}

function describeNode(tree, i, finished = gettext("a finished translation")) {
  const fates = { kept: gettext("kept"), ended: finished, dropped: gettext("pruned") };
  const { log_prob, fate } = tree.nodes[i];
  return gettext("“{text}”: log-probability {value}, {fate}", {
    text: isolateText(nodeText(tree, i)),
    value: formatSigned(log_prob),
    fate: fates[fate],
  });
}

// Return the node to which an arrow key moves from a node: its parent, its most probable child, or the node above or below.
function neighbor({ tree: { nodes }, steps }, i, key, isVisible) {
  const candidates = nodes.map((_, j) => j).filter((j) => j > 0 && isVisible(j));
  const ofSameStep = candidates.filter((j) => steps[j] === steps[i]);
  switch (key) {
    case "ArrowLeft":
      return nodes[i].parent || undefined; // the root cannot be focused
    case "ArrowRight":
      return candidates.find((j) => nodes[j].parent === i);
    case "ArrowUp":
      return ofSameStep.findLast((j) => j < i);
    case "ArrowDown":
      return ofSameStep.find((j) => j > i);
    default:
      return undefined;
  }
}

function nodeElement(layout, i) {
  const classes = ["node", layout.tree.nodes[i].fate, ...(layout.best.has(i) ? ["best"] : [])];
  const node = svgElement("g", { class: classes.join(" ") }, ...nodeShapes(layout, i));
  if (i > 0) node.dataset.node = i;
  return node;
}

// Return the box, the name and the probability of a node.
//
// attributes: further attributes of each, for pictures that are saved without a style sheet.
function nodeShapes({ tree, centers }, i, name = displayName(tree.nodes[i]), attributes = {}) {
  const { x, y } = centers[i];
  const box = { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 };
  const centered = { x, "text-anchor": "middle", "dominant-baseline": "central" };
  const isRoot = i === 0;
  const shapes = [
    svgElement("rect", { ...box, ...attributes.box }),
    svgElement(
      "text",
      { ...centered, y: isRoot ? y : y - 5, class: "name", "font-size": 12, ...attributes.name },
      name,
    ),
  ];
  if (isRoot) return shapes;
  const probability = formatPercent(tokenProbability(tree, i));
  const probabilityAttributes = {
    ...centered,
    y: y + 8,
    class: "probability",
    "font-size": 10,
    ...attributes.probability,
  };
  return [...shapes, svgElement("text", probabilityAttributes, probability)];
}

function displayName({ name }) {
  return name.replaceAll("▁", "·");
}

// Return the curve from the parent of a node to the node; null for the root.
function edgeElement({ tree: { nodes }, centers, best }, i, attributes = {}) {
  if (i === 0) return null;
  const { parent, fate } = nodes[i];
  const start = { x: centers[parent].x + NODE_WIDTH / 2, y: centers[parent].y };
  const end = { x: centers[i].x - NODE_WIDTH / 2, y: centers[i].y };
  const middle = (start.x + end.x) / 2;
  const d = `M${start.x} ${start.y} C${middle} ${start.y} ${middle} ${end.y} ${end.x} ${end.y}`;
  const edge = svgElement("path", {
    d,
    class: `edge ${fate}${best.has(i) ? " best" : ""}`,
    fill: "none",
    ...attributes,
  });
  edge.dataset.node = i;
  return edge;
}

// Return the whole tree as a picture, with the names as they are shortened on the page.
function treeSvg(root, layout, nodeElements) {
  const { tree, width, height, best } = layout;
  const colors = themeColors(root, "background", "text", "muted", "positive", "success", "line");
  const strokes = { kept: `rgb(${colors.positive})`, ended: colors.success, dropped: colors.line };
  const edges = tree.nodes.map(({ fate }, i) =>
    edgeElement(layout, i, { stroke: strokes[fate], "stroke-width": best.has(i) ? 2.5 : 1 }),
  );
  const shapes = tree.nodes.flatMap(({ fate }, i) =>
    nodeShapes(layout, i, nodeElements[i].querySelector(".name").textContent, {
      box: {
        fill: colors.background,
        stroke: i === 0 ? colors.line : strokes[fate],
        "stroke-width": best.has(i) ? 2.5 : 1,
      },
      name: { fill: colors.text },
      probability: { fill: colors.muted },
    }),
  );
  return standaloneSvg(width, height, colors.background, ...edges.filter(Boolean), ...shapes);
}

function hypothesisTable({ finished, best }, lang = "") {
  const headers = [gettext("hypothesis"), gettext("log p"), gettext("score")].map((textContent) =>
    element("th", { textContent, scope: "col" }),
  );
  const rows = finished.map(({ node, text, log_prob, score }) =>
    element(
      "tr",
      { className: node === best ? "best" : "" },
      element("td", { dir: "auto", lang, textContent: text || gettext("(empty)") }),
      element("td", { textContent: formatSigned(log_prob) }),
      element("td", { textContent: formatSigned(score) }),
    ),
  );
  const tableHead = element("thead", {}, element("tr", {}, ...headers));
  const table = element("table", { className: "finished" }, tableHead, element("tbody", {}, ...rows));
  const title = element("p", { className: "title", textContent: gettext("Finished hypotheses") });
  const note = element("p", {
    className: "note",
    textContent: gettext("The highest score wins. The score is the log-probability, normalized by length."),
  });
  return element("div", {}, title, note, element("div", { className: "scroll" }, table));
}

// Return the text of the best hypothesis; null if there is none.
export function bestText({ finished, best }) {
  return finished.find(({ node }) => node === best)?.text ?? null;
}

// Show alternative continuations of a prefix.
//
// continuations: as in the response of /continue, [{ next: the next word, text: the whole text, probability: its logarithm }, …].
// onChoose(text): a continuation is clicked.
export function showContinuations(root, continuations, { title, lang = "", onChoose }) {
  const buttons = continuations.map((continuation) => {
    const button = continuationButton(continuation, lang);
    button.addEventListener("click", () => onChoose(continuation.text));
    return button;
  });
  addRovingTabindex([buttons.filter((button) => !button.disabled)], () => true);
  const items = buttons.map((button) => element("li", {}, button));
  const list = element("ul", { dir: textDirection(continuations.map(({ text }) => text)) }, ...items);
  root.replaceChildren(element("p", { className: "title", textContent: title }), list);
}

function continuationButton({ next, text, probability: logProbability }, lang) {
  const probability = Math.exp(logProbability);
  const fill = element("span", { className: "bar-fill" });
  fill.style.setProperty("--bar-length", probability);
  return element(
    "button",
    { type: "button", disabled: !text.trim() },
    element("span", { className: "probability", textContent: formatPercent(probability), dir: "ltr" }),
    element("span", { className: "bar-track" }, fill),
    element("span", { className: "next", textContent: next || gettext("(the end)"), dir: "auto", lang }),
    element("span", { className: "rest", textContent: text, dir: "auto", lang }),
  );
}
