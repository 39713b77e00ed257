// Lesson 8: the tree that a beam search grows, step by step, beside what greedy search finds.
import { el, svg, number, percent, shown } from "./dom.js";
import { fit } from "./elements.js";
import { hint, said, slider } from "./parts.js";

const FATES = ["kept", "ended", "dropped"];
const [ACROSS, DOWN] = [140, 46]; // pixels from step to step, and from one node to the next in a step
const [WIDE, HIGH] = [116, 34]; // of a node
const PAD = 7; // pixels beside what stands in a node

export function beam(root) {
  let sentence = null;
  const width = slider("beam K", { min: 1, max: 5, value: 3, show: (k) => (k === 1 ? "1, greedy" : String(k)) }, () => { begin(); });
  const step = slider("step", { min: 1, max: 2, value: 2 }, () => draw());
  const play = el("button", { type: "button", on: { click: run } }, "Play");
  const tree = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "search tree" });
  const told = said();
  const found = el("div", {});
  root.append(el("div", { class: "knobs" }, width.node, step.node, play), tree, told, el("h3", {}, "Result of each beam size"), found);
  let timer = null;
  return (given) => { sentence = given; begin(); };

  function begin() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    const depths = depthsOf(search().nodes);
    step.input.max = Math.max(...depths);
    step.value = step.input.max;
    draw({ fromTheStart: true });
    compare();
  }

  function search() {
    return sentence.searches[width.value - 1];
  }

  function run() {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    step.value = 1;
    draw();
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (step.value >= Number(step.input.max)) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
      step.value += 1;
      draw();
    }, 900);
  }

  // Draw the tree up to the step; what belongs to that step is scrolled into view unless the tree is a new one.
  function draw({ fromTheStart = false } = {}) {
    const { nodes, best } = search();
    const depths = depthsOf(nodes);
    const at = step.value;
    const final = at === Number(step.input.max);
    const path = new Set(final ? pathTo(nodes, best) : []);
    const rows = places(nodes, depths);
    const high = Math.max(...rows) + 1;
    const drawing = svg("svg", { class: "search", width: Number(step.input.max) * ACROSS + WIDE + 8, height: high * DOWN + 8, role: "img", "aria-label": "search tree; the text below lists the hypotheses at this step" });
    const xy = (i) => [depths[i] * ACROSS + 4, rows[i] * DOWN + 6];
    nodes.forEach(([parent], i) => {
      if (parent < 0 || depths[i] > at) return;
      const [[x1, y1], [x2, y2]] = [xy(parent), xy(i)];
      drawing.append(svg("path", { class: path.has(i) ? "edge best" : `edge ${fate(i, at)}`, d: `M ${x1 + WIDE} ${y1 + 16} C ${x1 + WIDE + 14} ${y1 + 16}, ${x2 - 14} ${y2 + 16}, ${x2} ${y2 + 16}` }));
    });
    nodes.forEach(([parent, name, total], i) => {
      if (depths[i] > at) return;
      const [x, y] = xy(i);
      const own = parent < 0 ? "" : percent(Math.exp(total - nodes[parent][2]), 1);
      drawing.append(svg("g", { class: `node ${path.has(i) ? "best" : fate(i, at)}`, transform: `translate(${x} ${y})` }, svg("rect", { width: WIDE, height: HIGH, rx: 6 }),
        svg("text", { x: PAD, y: 15, class: "piece" }, shown(name)), svg("text", { x: PAD, y: 28, class: "quiet" }, own), svg("text", { x: WIDE - PAD, y: 28, "text-anchor": "end", class: "quiet" }, parent < 0 ? "" : number(total)),
        svg("title", {}, parent < 0 ? "start of every translation" : `${shown(name)}: probability ${own} here, log-probability of the prefix ${number(total, 4)}; ${FATES[nodes[i][3]]}`)));
    });
    tree.replaceChildren(drawing);
    for (const piece of drawing.querySelectorAll(".piece")) fit(piece, WIDE - 2 * PAD);
    tree.scrollLeft = fromTheStart ? 0 : Math.max(0, at * ACROSS + WIDE + 8 - tree.clientWidth);
    const now = nodes.map((_, i) => i).filter((i) => depths[i] === at);
    const names = (which) => now.filter((i) => nodes[i][3] === which).map((i) => `“${sentenceOf(nodes, i)}” ${number(nodes[i][2])}`);
    told.textContent = [["kept", 0], ["ended", 1], ["dropped", 2]].filter(([, which]) => names(which).length).map(([word, which]) => `${word}: ${names(which).join(", ")}`).join("; ") + ".";

    function fate(i) { return FATES[nodes[i][3]]; }
  }

  function compare() {
    const greedy = sentence.searches[0];
    found.replaceChildren(el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ...["K", "translation", "log p", "score"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...sentence.searches.map((one, i) => el("tr", { class: i + 1 === width.value ? "chosen" : "" }, el("th", { scope: "row" }, i + 1), el("td", { lang: "es", class: "text" }, one.text), el("td", {}, number(one.log_probability, 3)), el("td", {}, number(one.score, 3)))))),
    hint(verdict(greedy, search()), ` The score is log p divided by ((5 + tokens) / 6)${sentence.alpha === 1 ? "" : ` to the power of ${sentence.alpha}`}, including the end token, so that longer sentences may have a lower p.`));
  }

  function verdict(greedy, wide) {
    if (wide === greedy) return "A beam of one is greedy search.";
    const gain = wide.log_probability - greedy.log_probability;
    if (wide.text === greedy.text) return "This beam finds the same translation as greedy search.";
    return `This beam’s translation is ${gain >= 0 ? `${number(Math.exp(gain), 1)} times as probable as` : `${number(Math.exp(-gain), 1)} times less probable than`} the greedy one.`;
  }
}

function depthsOf(nodes) {
  const depths = [];
  nodes.forEach(([parent], i) => { depths[i] = parent < 0 ? 0 : depths[parent] + 1; });
  return depths;
}

// The row of each node: in its column, in the order of its parents' rows, the likeliest first.
function places(nodes, depths) {
  const rows = [0];
  for (let depth = 1; depth <= Math.max(...depths); depth += 1) {
    const here = nodes.map((_, i) => i).filter((i) => depths[i] === depth);
    here.sort((a, b) => rows[nodes[a][0]] - rows[nodes[b][0]] || nodes[b][2] - nodes[a][2]);
    here.forEach((i, row) => { rows[i] = row; });
  }
  return rows;
}

function pathTo(nodes, node) {
  const path = [];
  for (let i = node; i > 0; i = nodes[i][0]) path.push(i);
  return path;
}

function sentenceOf(nodes, node) {
  return pathTo(nodes, node).reverse().map((i) => nodes[i][1]).join("").replaceAll("▁", " ").replace("</s>", "").trim();
}
