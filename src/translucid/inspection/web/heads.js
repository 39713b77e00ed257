// All layers and heads as small multiples: layers down, heads across, for each kind of attention. One that is chosen is opened.
//
// showHeads(root, record, { open(map), chosen: map, of, off: names of heads that are off, turn(name): switch one off or on }): record as
// viewer_record gives it; `of` tells the kinds of attention, and what of a map is drawn small. Without `turn` there are no switches.

import { colours, drawn, element, picture } from "./elements.js";
import { RIBBONS } from "./maps.js";
import { roving } from "./roving.js";

const SIDE = 72; // pixels of a thumbnail
const TITLE = 24; // of what stands above a block in a picture

export function showHeads(root, record, { open, chosen, of, off = new Set(), turn }) {
  const { kinds, cells } = of;
  const buttons = new Map();
  const blocks = [];
  const lines = [];
  for (const kind of Object.keys(kinds)) {
    const rows = layers(record, kind);
    if (!rows.length) continue;
    const grid = element("div", { className: "thumbs", role: "group", ariaLabel: kinds[kind] });
    for (const { name, maps } of rows) {
      const line = maps.map((map) => {
        const button = element("button", { type: "button", className: "thumb", title: map.name, ariaLabel: map.name }, thumbnail(root, cells(map)), short(map));
        button.addEventListener("click", () => { press(map); open(map); });
        buttons.set(map, button);
        return button;
      });
      const heads = turn ? maps.map((map) => headName(record, map)) : [];
      const switches = heads.map((head, i) => head && headSwitch(maps[i], head));
      const parts = line.map((button, i) => element("div", { className: off.has(heads[i]) ? "head off" : "head" }, button, switches[i] ?? ""));
      lines.push(line, switches.filter(Boolean));
      grid.append(element("div", { className: "layer" }, element("span", { className: "name", textContent: name }), ...parts));
    }
    const kindName = element("p", { className: "kind", textContent: kinds[kind] });
    blocks.push(element("div", { className: "block", role: "group", ariaLabel: kinds[kind] }, kindName, grid));
  }
  root.replaceChildren(element("div", { className: "blocks" }, ...blocks));
  roving(lines.filter((line) => line.length));
  press(chosen);
  return { picture: whole };

  function headSwitch(map, head) {
    const on = !off.has(head);
    const button = element("button", { type: "button", className: "switch", role: "switch", textContent: on ? "on" : "off", ariaChecked: on, ariaLabel: `switch of ${map.name}`, title: on ? "switch this head off" : "switch this head on" });
    button.dataset.head = head;
    button.addEventListener("click", () => {
      const next = button.ariaChecked !== "true";
      Object.assign(button, { ariaChecked: next, textContent: next ? "on" : "off" });
      turn(head);
    });
    return button;
  }

  function press(map) {
    for (const [one, button] of buttons) button.setAttribute("aria-pressed", one === map);
  }

  function whole() {
    const colour = colours(root, "paper", "ink", "for");
    const parts = [];
    let y = 10;
    let most = 0;
    const text = (value, x, at) => drawn("text", { x, y: at, fill: colour.ink, "font-size": 12, "dominant-baseline": "central" }, value);
    for (const kind of Object.keys(kinds)) {
      const rows = layers(record, kind);
      if (rows.length) parts.push(text(kinds[kind], 10, y + TITLE / 2));
      y += rows.length ? TITLE : 0;
      for (const { name, maps } of rows) {
        parts.push(text(name, 10, y + SIDE / 2));
        maps.forEach((map, i) => parts.push(small(map, 80 + i * (SIDE + 8), y, colour.for)));
        most = Math.max(most, 80 + maps.length * (SIDE + 8));
        y += SIDE + 8;
      }
    }
    return picture(most + 10, y + 10, colour.paper, ...parts);
  }

  function small(map, x, y, fill) {
    const weights = cells(map);
    const [wide, high] = [SIDE / weights[0].length, SIDE / weights.length];
    const parts = weights.flatMap((row, t) => row.map((weight, s) => drawn("rect", {
      x: x + s * wide, y: y + t * high, width: wide, height: high, fill: `rgb(${fill})`, "fill-opacity": weight.toFixed(3),
    })));
    const frame = drawn("rect", { x, y, width: SIDE, height: SIDE, fill: "none", stroke: `rgb(${fill})`, "stroke-opacity": 0.4 });
    return drawn("g", {}, ...parts, frame);
  }
}

// Each layer's heads; the averages and the flow through all layers stand in lines of their own.
function layers(record, kind) {
  const own = record.maps.filter((one) => one.kind === kind);
  const numbers = [...new Set(own.map((one) => one.layer).filter((one) => one !== null))].sort((a, b) => a - b);
  const rows = numbers.map((number) => {
    const maps = own.filter((one) => one.layer === number);
    return { name: `layer ${number}`, maps: [...maps.filter((one) => one.head !== null), ...maps.filter((one) => one.head === null)] };
  });
  const whole = kind === "cross" ? record.maps.filter((one) => one.layer === null && RIBBONS.weights.kinds.includes(one.kind)) : [];
  return whole.length ? [{ name: "all layers", maps: whole }, ...rows] : rows;
}

// The name of the head that a map shows, such as decoder.1.cross.head.0; null for an average of several.
export function headName(record, { kind, layer, head }) {
  const others = record.maps.filter((one) => one.kind === kind && (layer === null || one.layer === layer));
  if (!["cross", "encoder", "decoder"].includes(kind) || (head === null && others.length > 1)) return null;
  const attention = kind === "cross" ? "cross" : "self";
  return `${kind === "encoder" ? "encoder" : "decoder"}.${layer ?? 0}.${attention}.head.${head ?? 0}`;
}

// What stands under a thumbnail, whose layer stands before it.
function short({ kind, head }) {
  if (kind === "rollout") return "rollout";
  return head === null ? "mean" : `head ${head}`;
}

function thumbnail(place, weights) {
  const [width, height] = [weights[0].length, weights.length];
  const canvas = element("canvas", { width, height, ariaHidden: true });
  const colour = colours(place, "for").for.split(",").map(Number);
  const pixels = new ImageData(width, height);
  weights.flat().forEach((weight, i) => pixels.data.set([...colour, Math.round(255 * Math.max(0, Math.min(1, weight)))], 4 * i));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

// Which heads are off, and what the model writes without them.
//
// showSwitched(root, without, { text: the translation with all heads, lang, reset(): switch all on }): without is { heads: names, text },
//   or nothing if all are on.
export function showSwitched(root, without, { text, lang, reset }) {
  root.ariaLive = "polite";
  if (!without) {
    root.replaceChildren(element("p", { className: "about", textContent: "All heads are on. Switch one off to see how the translation changes." }));
    return;
  }
  const { heads } = without;
  const count = heads.length === 1 ? "1 head is off" : `${heads.length} heads are off`;
  const same = without.text === text;
  const state = element("p", {}, element("strong", { textContent: `${count}. ` }), same ? "The translation stays the same." : "The model writes:");
  const button = element("button", { type: "button", textContent: "Switch all on" });
  button.addEventListener("click", reset);
  const texts = [[without.text, "without them"], ...(same ? [] : [[text, "with all heads"]])].map(([words, name]) => element("tr", {},
    element("th", { textContent: name, scope: "row" }), element("td", { textContent: words || "(empty)", lang, dir: "auto" })));
  const table = element("table", { className: "translations" }, element("tbody", {}, ...texts));
  root.replaceChildren(state, table, element("p", { className: "about names", textContent: heads.join(", ") }), button);
}
