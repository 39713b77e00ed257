// Heat maps as tables.

import { element, formatPercent, standaloneSvg, svgElement, textDirection, themeColors } from "./elements.js";
import { gettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

const SVG_MARGIN = 12; // pixels

// Show a heat map whose cells are buttons, with a description of the current cell.
//
// label: the accessible name of the table.
// rows, columns: their names.
// cells: [row][column], { text, value: from -1 to 1, description, isMarked: whether it has a frame }.
// hint: the text while no cell is pointed at or focused.
// lang: the language code of the texts in the cells.
// onHighlightRow(index or null): the pointer or the focus enters or leaves a cell.
// Returns { svg() }.
export function showHeatmap(
  root,
  { label, rows, columns, cells, hint = "", lang = "", onHighlightRow = (_row) => {} },
) {
  const description = element("p", { className: "description", textContent: hint });
  const buttons = cells.map((row, r) => row.map((cell) => cellButton(cell, r)));
  const columnHeaders = columns.map((textContent) => element("th", { textContent, scope: "col", dir: "auto" }));
  const rowHeaders = rows.map((textContent) => element("th", { textContent, scope: "row", dir: "auto" }));
  const tableHead = element("thead", {}, element("tr", {}, element("td"), ...columnHeaders));
  const tableRows = buttons.map((rowButtons, r) => {
    const tableCells = rowButtons.map((button) => element("td", {}, button));
    return element("tr", {}, rowHeaders[r], ...tableCells);
  });
  const table = element(
    "table",
    { className: "heatmap", ariaLabel: label },
    tableHead,
    element("tbody", {}, ...tableRows),
  );
  root.replaceChildren(element("div", { className: "scroll" }, table), description);
  if (hint) root.prepend(description);
  addRovingTabindex(buttons);
  return { svg: () => heatmapSvg(table, { cells, buttons, headers: [...columnHeaders, ...rowHeaders] }) };

  function cellButton(cell, row) {
    const button = element("button", {
      type: "button",
      textContent: cell.text,
      title: cell.description,
      ariaLabel: cell.description,
      dir: "auto",
      lang,
    });
    button.style.setProperty("--weight", Math.min(1, Math.abs(cell.value)).toFixed(3));
    button.classList.toggle("negative", cell.value < 0);
    button.classList.toggle("marked", Boolean(cell.isMarked));
    for (const event of ["mouseenter", "focus", "click"])
      button.addEventListener(event, () => describe(cell.description, row));
    for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => describe(hint, null));
    return button;
  }

  function describe(text, row) {
    description.textContent = text;
    onHighlightRow(row);
  }
}

// Draw a heat map, at the positions of its elements in the page.
function heatmapSvg(table, { cells, buttons, headers }) {
  const colors = themeColors(table, "background", "text", "highlight", "negative");
  const outer = table.getBoundingClientRect();
  const cellShapes = cells.flatMap((row, r) =>
    row.flatMap((cell, c) => {
      const position = relativePosition(buttons[r][c], outer);
      return [cellRect(cell, position, colors), svgText(cell.text, position, colors.text)];
    }),
  );
  const labels = headers.map((header) => svgText(header.textContent, relativePosition(header, outer), colors.text));
  return standaloneSvg(
    outer.width + 2 * SVG_MARGIN,
    outer.height + 2 * SVG_MARGIN,
    colors.background,
    ...labels,
    ...cellShapes,
  );
}

function cellRect({ value, isMarked }, position, colors) {
  const [color, maxOpacity] = value < 0 ? [colors.negative, 0.5] : [colors.highlight, 0.85];
  const opacity = maxOpacity * Math.min(1, Math.abs(value));
  const frame = isMarked ? { stroke: colors.text, "stroke-width": 2 } : {};
  return svgElement("rect", { ...position, fill: `rgb(${color})`, "fill-opacity": opacity.toFixed(3), ...frame });
}

function svgText(text, { x, y, width, height }, fill) {
  const attributes = {
    x: x + width / 2,
    y: y + height / 2,
    "text-anchor": "middle",
    "dominant-baseline": "central",
    "font-size": 13,
    fill,
    direction: textDirection([text]),
  };
  return svgElement("text", attributes, text);
}

function relativePosition(child, outer) {
  const { left, top, width, height } = child.getBoundingClientRect();
  return { x: left - outer.left + SVG_MARGIN, y: top - outer.top + SVG_MARGIN, width, height };
}

// Show the weights of a map as a table of percentages.
//
// down, across: the words of the rows and of the columns.
// weights: [down][across].
export function showWeightTable(root, { down, across, weights }) {
  const columnHeaders = across.map((textContent) => element("th", { textContent, scope: "col" }));
  const rows = weights.map((row, t) => {
    const cells = row.map((weight, s) => weightCell(weight, `${down[t]} → ${across[s]}: ${formatPercent(weight)}`));
    return element("tr", {}, element("th", { textContent: down[t], scope: "row" }), ...cells);
  });
  const tableHead = element("thead", {}, element("tr", {}, element("td"), ...columnHeaders));
  const table = element("table", { className: "weight-table" }, tableHead, element("tbody", {}, ...rows));
  // A scrolling region needs a Tab stop, so that the arrow keys can scroll it.
  const region = {
    className: "scroll",
    tabIndex: 0,
    role: "region",
    ariaLabel: gettext("table of weights, in per cent"),
  };
  root.replaceChildren(element("div", region, table));
}

function weightCell(weight, title) {
  const cell = element("td", { textContent: Math.round(100 * weight), title });
  cell.style.setProperty("--weight", Math.max(0, weight));
  if (weight < 0) cell.classList.add("negative");
  return cell;
}
