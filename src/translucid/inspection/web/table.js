// The weights of a map as a table: who looked down, what was looked at across, the darker the more, and the figures.

import { element, percent } from "./elements.js";

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
