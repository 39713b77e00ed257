// The weights of a map as a table: who looked down, what was looked at across, the darker the more, and the figures.

import { colours, drawn, element, percent, picture } from "./elements.js";

const SIDE = 26; // pixels of a cell in a picture

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
  return { picture: () => squares(root, { down, across, weights }) };
}

// A table as a picture.
export function squares(place, { down, across, weights }) {
  const colour = colours(place, "paper", "ink", "for", "against");
  const [left, top] = [7.5, 7.5].map((letter, i) => 16 + letter * Math.max(...(i ? across : down).map((word) => word.length)));
  const text = (value, x, y, more) => drawn("text", { x, y, fill: colour.ink, "font-size": 13, "dominant-baseline": "central", ...more }, value);
  const words = [
    ...down.map((word, t) => text(word, left - 6, top + SIDE * (t + 0.5), { "text-anchor": "end" })),
    ...across.map((word, s) => text(word, 0, 0, { transform: `translate(${left + SIDE * (s + 0.5)} ${top - 6}) rotate(-90)` })),
  ];
  const cells = weights.flatMap((row, t) => row.map((weight, s) => drawn("rect", {
    x: left + SIDE * s, y: top + SIDE * t, width: SIDE - 1, height: SIDE - 1,
    fill: `rgb(${weight < 0 ? colour.against : colour.for})`, "fill-opacity": Math.min(1, Math.abs(weight)).toFixed(3),
  })));
  return picture(left + SIDE * across.length + 10, top + SIDE * down.length + 10, colour.paper, ...cells, ...words);
}
