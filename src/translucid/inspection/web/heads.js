// The attention maps of all layers and heads as thumbnails, and the ablation of heads.

import { RIBBON_METHODS, translatedName } from "./attention_maps.js";
import { createSwitch, element, formatPercent, standaloneSvg, svgElement, themeColors } from "./elements.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

const THUMBNAIL_SIDE = 72; // pixels, in a saved picture
const THUMBNAIL_PITCH = THUMBNAIL_SIDE + 8;
const TITLE_HEIGHT = 24;
const LABEL_WIDTH = 80;
const SVG_MARGIN = 10;

// Show a block of thumbnails for each kind of attention: a row for each layer, and a column for each head.
//
// record: see viewer_record in inspection/rendering/html.py.
// view: see translation_view.js.
// selectedMap: the map whose thumbnail is pressed at first.
// ablatedHeads: a Set of the names of heads that are off.
// onSelect(map): a thumbnail is clicked.
// onToggle(name of a head): a head is switched off or on; without it, there are no switches.
// Returns { svg() }.
export function showHeads(root, record, { view, selectedMap, ablatedHeads = new Set(), onSelect, onToggle }) {
  const thumbnails = new Map(); // buttons by map
  const blocks = [];
  const buttonRows = [];
  for (const kind of Object.keys(view.kindLabels)) {
    const rows = layerRows(record, kind);
    if (rows.length) blocks.push(block(view.kindLabels[kind], rows));
  }
  root.replaceChildren(element("div", { className: "blocks" }, ...blocks));
  addRovingTabindex(buttonRows.filter((row) => row.length));
  press(selectedMap);
  return { svg: () => headsSvg(root, record, view) };

  function block(label, rows) {
    const grid = element("div", { className: "thumbnails", role: "group", ariaLabel: label }, ...rows.map(layerRow));
    const title = element("p", { className: "kind", textContent: label });
    return element("div", { className: "block", role: "group", ariaLabel: label }, title, grid);
  }

  function layerRow({ label, maps }) {
    const buttons = maps.map(thumbnailButton);
    const heads = maps.map((map) => (onToggle ? headName(record, map) : null));
    const switches = maps.map((map, i) => (heads[i] ? headSwitch(map, heads[i]) : null));
    buttonRows.push(buttons, switches.filter(Boolean));
    const cells = buttons.map((button, i) => {
      const className = ablatedHeads.has(heads[i]) ? "head off" : "head";
      return element("div", { className }, button, switches[i] ?? "");
    });
    return element("div", { className: "layer" }, element("span", { className: "name", textContent: label }), ...cells);
  }

  function thumbnailButton(map) {
    const canvas = thumbnailCanvas(root, view.thumbnailWeights(map, record));
    const properties = {
      type: "button",
      className: "thumbnail",
      title: translatedName(map.name),
      ariaLabel: translatedName(map.name),
    };
    const button = element("button", properties, canvas, shortName(map));
    button.addEventListener("click", () => {
      press(map);
      onSelect(map);
    });
    thumbnails.set(map, button);
    return button;
  }

  function headSwitch(map, head) {
    const isOn = !ablatedHeads.has(head);
    const button = createSwitch(gettext("switch of {name}", { name: translatedName(map.name) }), isOn, () =>
      onToggle(head),
    );
    button.title = isOn ? gettext("switch this head off") : gettext("switch this head on");
    button.dataset.head = head;
    return button;
  }

  function press(selected) {
    for (const [map, button] of thumbnails) button.setAttribute("aria-pressed", map === selected);
  }
}

// Return the rows of a kind of attention, { label, maps }: one per layer, whose average comes last. Cross-attention has a first row
// for the averages over all layers.
function layerRows(record, kind) {
  const maps = record.maps.filter((map) => map.kind === kind);
  const layers = [...new Set(maps.map(({ layer }) => layer))].filter((layer) => layer !== null).sort((a, b) => a - b);
  const rows = layers.map((layer) => {
    const ofLayer = maps.filter((map) => map.layer === layer);
    const heads = ofLayer.filter(({ head }) => head !== null);
    const averages = ofLayer.filter(({ head }) => head === null);
    return { label: gettext("layer {number}", { number: layer }), maps: [...heads, ...averages] };
  });
  if (kind !== "cross") return rows;
  const overLayers = record.maps.filter((map) => map.layer === null && RIBBON_METHODS.weights.kinds.includes(map.kind));
  return overLayers.length ? [{ label: gettext("all layers"), maps: overLayers }, ...rows] : rows;
}

// Return the name of the head that a map shows, such as decoder.1.cross.head.0; null if the map is an average of several heads.
export function headName(record, { kind, layer, head }) {
  if (!["cross", "encoder", "decoder"].includes(kind)) return null;
  const mapsOfLayer = record.maps.filter((map) => map.kind === kind && (layer === null || map.layer === layer));
  const isAverage = head === null && mapsOfLayer.length > 1;
  if (isAverage) return null;
  const [side, attention] = kind === "cross" ? ["decoder", "cross"] : [kind, "self"];
  return `${side}.${layer ?? 0}.${attention}.head.${head ?? 0}`;
}

const SHARE_LABELS = {
  ends: gettext("start and end of the text"),
  punctuation: gettext("punctuation"),
  language: gettext("language tokens"),
  itself: gettext("the word itself"),
};

// Return where the head of a map looks besides words, as a text, with uniform attention for comparison; none for an average of heads.
export function describeShares(record, map) {
  const name = headName(record, map);
  if (!name || !record.shares?.[name]) return "";
  const shares = record.shares[name];
  const [side, , attention] = name.split(".");
  const uniform = record.shares[`${side}.${attention}`];
  const parts = Object.entries(SHARE_LABELS)
    .filter(([share]) => shares[share] || uniform[share])
    .map(([share, label]) => `${label} ${formatPercent(shares[share])} (${formatPercent(uniform[share])})`);
  return gettext("Attention to {list}; entropy {entropy} nats ({uniform}). In parentheses: uniform attention.", {
    list: parts.join(", "),
    entropy: formatNumber(shares.entropy, 2),
    uniform: formatNumber(uniform.entropy, 2),
  });
}

// Return the label below a thumbnail; its layer is named at the beginning of the row.
function shortName({ kind, head }) {
  if (kind === "rollout") return gettext("rollout");
  return head === null ? gettext("mean") : gettext("head {number}", { number: head });
}

function thumbnailCanvas(container, weights) {
  const [width, height] = [weights[0].length, weights.length];
  const canvas = element("canvas", { width, height, ariaHidden: true });
  const color = themeColors(container, "positive").positive.split(",").map(Number);
  const pixels = new ImageData(width, height);
  weights.flat().forEach((weight, i) => {
    const alpha = Math.round(255 * Math.max(0, Math.min(1, weight)));
    pixels.data.set([...color, alpha], 4 * i);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function headsSvg(root, record, { kindLabels, thumbnailWeights }) {
  const colors = themeColors(root, "background", "text", "positive");
  const parts = [];
  let y = SVG_MARGIN;
  let width = 0;
  const label = (text, centerY) =>
    svgElement(
      "text",
      {
        x: SVG_MARGIN,
        y: centerY,
        fill: colors.text,
        "font-size": 12,
        "dominant-baseline": "central",
      },
      text,
    );
  for (const kind of Object.keys(kindLabels)) {
    const rows = layerRows(record, kind);
    if (!rows.length) continue;
    parts.push(label(kindLabels[kind], y + TITLE_HEIGHT / 2));
    y += TITLE_HEIGHT;
    for (const row of rows) {
      parts.push(label(row.label, y + THUMBNAIL_SIDE / 2));
      row.maps.forEach((map, i) => {
        parts.push(thumbnailSvg(thumbnailWeights(map, record), LABEL_WIDTH + i * THUMBNAIL_PITCH, y, colors.positive));
      });
      width = Math.max(width, LABEL_WIDTH + row.maps.length * THUMBNAIL_PITCH);
      y += THUMBNAIL_PITCH;
    }
  }
  return standaloneSvg(width + SVG_MARGIN, y + SVG_MARGIN, colors.background, ...parts);
}

function thumbnailSvg(weights, x, y, color) {
  const [cellWidth, cellHeight] = [THUMBNAIL_SIDE / weights[0].length, THUMBNAIL_SIDE / weights.length];
  const cells = weights.flatMap((row, r) =>
    row.map((weight, c) =>
      svgElement("rect", {
        x: x + c * cellWidth,
        y: y + r * cellHeight,
        width: cellWidth,
        height: cellHeight,
        fill: `rgb(${color})`,
        "fill-opacity": weight.toFixed(3),
      }),
    ),
  );
  const frame = svgElement("rect", {
    x,
    y,
    width: THUMBNAIL_SIDE,
    height: THUMBNAIL_SIDE,
    fill: "none",
    stroke: `rgb(${color})`,
    "stroke-opacity": 0.4,
  });
  return svgElement("g", {}, ...cells, frame);
}

// Show which heads are off, and how the translation changes.
//
// ablation: { heads: the names of the heads that are off, text: the translation without them }, or nothing if all heads are on.
// text: the translation with all heads.
// lang: its language code.
// onReset(): the user switches all heads on.
export function showAblation(root, ablation, { text, lang, onReset }) {
  root.ariaLive = "polite";
  if (!ablation) {
    const hint = gettext("All heads are on. Switch one off to see how the translation changes.");
    root.replaceChildren(element("p", { className: "note", textContent: hint }));
    return;
  }
  const { heads } = ablation;
  const isSame = ablation.text === text;
  const count = ngettext("{count} head is off.", "{count} heads are off.", heads.length);
  const effect = isSame ? gettext("The translation stays the same.") : gettext("The model writes:");
  const summary = element("p", {}, element("strong", { textContent: `${count} ` }), effect);
  const rows = [translationRow(gettext("without them"), ablation.text, lang)];
  if (!isSame) rows.push(translationRow(gettext("with all heads"), text, lang));
  const table = element("table", { className: "translations" }, element("tbody", {}, ...rows));
  const resetButton = element("button", { type: "button", textContent: gettext("Switch all on") });
  resetButton.addEventListener("click", onReset);
  root.replaceChildren(
    summary,
    table,
    element("p", { className: "note head-names", textContent: heads.join(", ") }),
    resetButton,
  );
}

export function translationRow(name, text, lang) {
  const header = element("th", { textContent: name, scope: "row" });
  return element("tr", {}, header, element("td", { textContent: text || gettext("(empty)"), lang, dir: "auto" }));
}
