// The tree of a beam search: at each step the prefixes that are kept, finished or pruned; more probable ones are higher up.
//
// showBeam(root, tree, { choose(tokens, text): what a click does, lang, noun: what is written }): tree as beam_record gives it.
// `grow(step)` shows the tree as it was after so many steps; null shows all of it. winner(tree) is the text that it comes to, or null.

import { colours, direction, drawn, element, fit, isolated, percent, picture, signed } from "./elements.js";
import { roving } from "./roving.js";

const [WIDE, HIGH] = [104, 40]; // pixels from step to step, and from one to the next in a step
const BOX = [88, 30]; // of a node
const EDGE = 14;

export function showBeam(root, tree, options = {}) {
  const { nodes, finished } = tree;
  const { noun = "translation" } = options;
  const steps = [0];
  const rows = new Map([[0, 1]]);
  const at = nodes.map((node, i) => {
    if (i) steps[i] = steps[node.parent] + 1;
    const row = i ? rows.get(steps[i]) ?? 0 : 0;
    rows.set(steps[i], row + 1);
    return [EDGE + BOX[0] / 2 + steps[i] * WIDE, EDGE + BOX[1] / 2 + row * HIGH];
  });
  const width = 2 * EDGE + BOX[0] + Math.max(...steps) * WIDE;
  const height = 2 * EDGE + BOX[1] + (Math.max(...rows.values()) - 1) * HIGH;
  const chosen = new Set(tree.best === null ? [] : path(tree.best));
  const told = element("p", { className: "said", ariaLive: "polite" });
  let names = []; // what stands in the boxes
  const svg = drawn("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "beam search tree" });
  const parts = nodes.map((node, i) => {
    const group = drawn("g", { class: `node ${node.fate}${chosen.has(i) ? " best" : ""}` }, ...shape(i));
    if (i) listen(group, i);
    return group;
  });
  svg.append(...nodes.map((node, i) => link(i)).filter(Boolean), ...parts);
  const scroll = element("div", { className: "scroll" }, svg);
  if (!options.choose) Object.assign(scroll, { tabIndex: 0, role: "region", ariaLabel: "steps of the beam search" }); // else the boxes are reached by Tab
  root.replaceChildren(scroll, told, table());
  names = parts.map((one) => one.querySelector(".name"));
  for (const name of names) fit(name, BOX[0] - 8);
  tell(null);
  return { grow, picture: whole };

  function path(node) {
    const found = [];
    for (let i = node; i > 0; i = nodes[i].parent) found.unshift(i);
    return found;
  }

  function probability(i) {
    return Math.exp(nodes[i].log_prob - nodes[nodes[i].parent].log_prob);
  }

  function text(i) {
    return path(i).map((j) => nodes[j].name).join("").replaceAll("▁", " ").trim();
  }

  function shape(i, paint = {}) {
    const [x, y] = at[i];
    const name = names[i]?.textContent ?? nodes[i].name.replaceAll("▁", "·"); // of a saved picture as short as on the page
    const box = drawn("rect", { x: x - BOX[0] / 2, y: y - BOX[1] / 2, width: BOX[0], height: BOX[1], rx: 5, ...paint.box });
    const word = drawn("text", { x, y: i ? y - 5 : y, class: "name", "text-anchor": "middle", "dominant-baseline": "central", "font-size": 12, ...paint.text }, name);
    if (!i) return [box, word];
    const sure = drawn("text", { x, y: y + 8, class: "sure", "text-anchor": "middle", "dominant-baseline": "central", "font-size": 10, ...paint.soft }, percent(probability(i)));
    return [box, word, sure];
  }

  function link(i, paint = {}) {
    if (!i) return null;
    const [[x, y], [to, down]] = [at[nodes[i].parent], at[i]];
    const [from, into] = [x + BOX[0] / 2, to - BOX[0] / 2];
    const d = `M${from} ${y} C${(from + into) / 2} ${y} ${(from + into) / 2} ${down} ${into} ${down}`;
    const line = drawn("path", { d, class: `link ${nodes[i].fate}${chosen.has(i) ? " best" : ""}`, fill: "none", ...paint });
    line.dataset.node = i;
    return line;
  }

  function listen(group, i) {
    group.dataset.node = i;
    for (const event of ["mouseenter", "focus"]) group.addEventListener(event, () => tell(i));
    for (const event of ["mouseleave", "blur"]) group.addEventListener(event, () => tell(null));
    if (!options.choose) return;
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", i === 1 ? 0 : -1);
    group.setAttribute("aria-label", `continue after ${text(i)}`);
    const choose = () => options.choose(path(i).map((j) => nodes[j].token).slice(tree.opening), text(i), nodes[i].fate === "ended");
    group.addEventListener("click", choose);
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
      const next = beside(i, event.key);
      if (!next) return;
      event.preventDefault();
      for (const one of parts.slice(1)) one.setAttribute("tabindex", one === parts[next] ? 0 : -1);
      parts[next].focus();
    });
  }

  // The node that an arrow key goes to: the parent, the likeliest child, the one above or below.
  function beside(i, key) {
    if (key === "ArrowLeft") return nodes[i].parent || undefined;
    const found = (test) => nodes.map((_, j) => j).filter((j) => j && !parts[j].classList.contains("later") && test(j));
    if (key === "ArrowRight") return found((j) => nodes[j].parent === i)[0];
    if (key === "ArrowUp") return found((j) => steps[j] === steps[i] && j < i).at(-1);
    return key === "ArrowDown" ? found((j) => steps[j] === steps[i] && j > i)[0] : undefined;
  }

  function tell(i) {
    const hint = options.choose ? " Choose a box to continue from it." : "";
    const fates = { kept: "kept", ended: `a finished ${noun}`, dropped: "pruned" };
    told.textContent = i === null
      ? `Each box is a piece of a word with its probability; · begins a word. More probable prefixes are higher up.${hint}`
      : `“${isolated(text(i))}”: log-probability ${signed(nodes[i].log_prob)}, ${fates[nodes[i].fate]}`;
  }

  function table() {
    const head = element("tr", {}, ...["hypothesis", "log p", "score"].map((textContent) => element("th", { textContent, scope: "col" })));
    const lines = finished.map((one) => {
      const words = element("td", { dir: "auto", lang: options.lang ?? "", textContent: one.text || "(empty)" });
      const row = element("tr", {}, words, element("td", { textContent: signed(one.log_prob) }), element("td", { textContent: signed(one.score) }));
      row.classList.toggle("best", one.node === tree.best);
      return row;
    });
    const caption = element("p", { className: "title", textContent: "Finished hypotheses" });
    const note = element("p", { className: "about", textContent: "The highest score wins. The score is the log-probability, normalised by length." });
    const whole = element("table", { className: "finished" }, element("thead", {}, head), element("tbody", {}, ...lines));
    return element("div", {}, caption, note, element("div", { className: "scroll" }, whole));
  }

  function grow(step) {
    const later = (i) => step !== null && steps[i] > step;
    parts.forEach((one, i) => one.classList.toggle("later", later(i)));
    for (const line of svg.querySelectorAll(".link")) line.classList.toggle("later", later(Number(line.dataset.node)));
    if (step === null) return;
    const smooth = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
    scroll.scrollTo({ left: EDGE + (step + 1) * WIDE + BOX[0] - scroll.clientWidth, behavior: smooth });
  }

  function whole() {
    const colour = colours(root, "paper", "ink", "soft", "for", "good", "line");
    const edges = { kept: `rgb(${colour.for})`, ended: colour.good, dropped: colour.line };
    const paint = (i) => ({
      box: { fill: colour.paper, stroke: i ? edges[nodes[i].fate] : colour.line, "stroke-width": chosen.has(i) ? 2.5 : 1 },
      text: { fill: colour.ink }, soft: { fill: colour.soft },
    });
    const links = nodes.map((node, i) => link(i, { stroke: edges[node.fate], "stroke-width": chosen.has(i) ? 2.5 : 1 })).filter(Boolean);
    return picture(width, height, colour.paper, ...links, ...nodes.flatMap((_, i) => shape(i, paint(i))));
  }
}

export function winner({ finished, best }) {
  return finished.find((one) => one.node === best)?.text ?? null;
}

// The likeliest ways to go on from a place of the translation; one that is chosen becomes the translation.
//
// showWays(root, found, { title, lang, choose(text) }): found as /continue answers.
export function showWays(root, found, { title, lang = "", choose }) {
  const buttons = found.map((way) => {
    const likely = Math.exp(way.probability);
    const button = element("button", { type: "button", disabled: !way.text.trim() });
    const bar = element("span", { className: "room" }, element("span", { className: "fill own" }));
    bar.firstChild.style.setProperty("--part", likely);
    button.append(
      element("span", { className: "probability", textContent: percent(likely), dir: "ltr" }), bar,
      element("span", { className: "next", textContent: way.next || "(the end)", dir: "auto", lang }),
      element("span", { className: "rest", textContent: way.text, dir: "auto", lang }),
    );
    button.addEventListener("click", () => choose(way.text));
    return button;
  });
  roving([buttons.filter((one) => !one.disabled)], () => true);
  const list = element("ul", { dir: direction(found.map((way) => way.text)) }, ...buttons.map((button) => element("li", {}, button)));
  root.replaceChildren(element("p", { className: "title", textContent: title }), list);
}
