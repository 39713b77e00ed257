// A heat map as a table: each cell is a button, the darker the larger its value. What is known of a cell is above the table.
//
// showGrid(root, { label, rows: [names], columns: [names], cells: [row][column], hint, lang, light(row or null) }): a cell is { text,
//   value: from -1 to 1, about: the text of its tooltip, marked: whether it has a frame }.

import { colours, direction, drawn, element, percent, picture } from "./elements.js";
import { roving } from "./roving.js";

const EDGE = 12; // pixels around a picture

export function showGrid(root, { label, rows, columns, cells, hint = "", lang = "", light = () => {} }) {
  const said = element("p", { className: "said", textContent: hint });
  const lines = cells.map((row, r) => row.map((cell) => {
    const button = element("button", { type: "button", textContent: cell.text, title: cell.about, ariaLabel: cell.about, dir: "auto", lang });
    button.style.setProperty("--weight", Math.min(1, Math.abs(cell.value)).toFixed(3));
    button.classList.toggle("against", cell.value < 0);
    button.classList.toggle("marked", Boolean(cell.marked));
    for (const event of ["mouseenter", "focus", "click"]) button.addEventListener(event, () => tell(cell.about, r));
    for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => tell(hint, null));
    return button;
  }));
  const heads = columns.map((textContent) => element("th", { textContent, scope: "col", dir: "auto" }));
  const names = rows.map((textContent) => element("th", { textContent, scope: "row", dir: "auto" }));
  const body = lines.map((line, r) => element("tr", {}, names[r], ...line.map((button) => element("td", {}, button))));
  const table = element("table", { className: "grid", ariaLabel: label }, element("thead", {}, element("tr", {}, element("td"), ...heads)), element("tbody", {}, ...body));
  root.replaceChildren(element("div", { className: "scroll" }, table), said);
  if (hint) root.prepend(said);
  roving(lines);
  return { picture: whole };

  function tell(text, row) {
    said.textContent = text;
    light(row);
  }

  // The same as a picture that stands by itself.
  function whole() {
    const colour = colours(root, "paper", "ink", "light", "against");
    const outer = table.getBoundingClientRect();
    const place = (one) => {
      const { left, top, width, height } = one.getBoundingClientRect();
      return { x: left - outer.left + EDGE, y: top - outer.top + EDGE, width, height };
    };
    const text = (one, value) => {
      const { x, y, width, height } = place(one);
      const middle = { x: x + width / 2, y: y + height / 2, "text-anchor": "middle", "dominant-baseline": "central" };
      return drawn("text", { ...middle, "font-size": 13, fill: colour.ink, direction: direction([value]) }, value);
    };
    const shapes = cells.flatMap((row, r) => row.flatMap((cell, c) => {
      const fill = cell.value < 0 ? colour.against : colour.light;
      const opacity = (cell.value < 0 ? 0.5 : 0.85) * Math.min(1, Math.abs(cell.value));
      const frame = cell.marked ? { stroke: colour.ink, "stroke-width": 2 } : {};
      const box = drawn("rect", { ...place(lines[r][c]), fill: `rgb(${fill})`, "fill-opacity": opacity.toFixed(3), ...frame });
      return [box, text(lines[r][c], cell.text)];
    }));
    const labels = [...heads, ...names].map((one) => text(one, one.textContent));
    return picture(outer.width + 2 * EDGE, outer.height + 2 * EDGE, colour.paper, ...labels, ...shapes);
  }
}

// The weights of a map as a table: who looked down, what was looked at across, the darker the more, and the figures.
// record: { down: [words], across: [words], weights: [down][across] }
export function showTable(root, { down, across, weights }) {
  const head = element("tr", {}, element("td"), ...across.map((textContent) => element("th", { textContent, scope: "col" })));
  const rows = weights.map((row, t) => {
    const cells = row.map((weight, s) => {
      const cell = element("td", { textContent: Math.round(100 * weight), title: `${down[t]} → ${across[s]}: ${percent(weight)}` });
      cell.style.setProperty("--weight", Math.max(0, weight));
      if (weight < 0) cell.classList.add("against");
      return cell;
    });
    return element("tr", {}, element("th", { textContent: down[t], scope: "row" }), ...cells);
  });
  const table = element("table", { className: "weights" }, element("thead", {}, head), element("tbody", {}, ...rows));
  const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "table of weights, in per cent" }, table);
  root.replaceChildren(scroll);
}
