// The parts of which figures are made: radio groups, sliders, tables, bars, and vectors as strips of cells.
import { el, svg } from "./dom.js";
import { formatNumber, formatPiece } from "./formatting.js";
import { gettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

let groupCount = 0; // gives each radio group a name of its own

// A radio group. It returns { node, value: that of the selected option }.
//
// linkName: its name in links to the page, in every language
// options: [{ label, value, title }]
// onChange: is called with the value and the index of the new option
// selectedIndex: the option that is selected at first
// className: the layout, a class of lesson.css
export function choice(linkName, legend, options, onChange, { selectedIndex = 0, className = "choice" } = {}) {
  groupCount += 1;
  const name = `choice-${groupCount}`;
  const inputs = options.map((option, i) =>
    el("input", {
      type: "radio",
      name,
      value: i,
      checked: i === selectedIndex,
      on: { change: () => onChange(option.value, i) },
    }),
  );
  const labels = inputs.map((input, i) =>
    el("label", { title: options[i].title }, input, el("span", {}, options[i].label)),
  );
  const node = el("fieldset", { class: className, "data-name": linkName }, el("legend", {}, legend), ...labels);
  return {
    node,
    get value() {
      return options[inputs.findIndex((input) => input.checked)].value;
    },
  };
}

// A radio group of the pieces of a translation. onChange is called with the index of the selected piece.
export function pieceChoice(pieces, selectedIndex, onChange) {
  const options = pieces.map((piece, i) => ({ label: formatPiece(piece), value: i }));
  return choice("next-piece", gettext("next piece"), options, onChange, { selectedIndex, className: "words" }).node;
}

// A radio group of heads. onChange is called with the number of the selected head.
export function headChoice(count, selectedIndex, onChange) {
  const options = Array.from({ length: count }, (_, head) => ({ label: String(head), value: head }));
  return choice("head", gettext("head"), options, onChange, { selectedIndex }).node;
}

// The choices of a query: the piece that is predicted, and the head. onChange is called when the user selects another one.
// It returns { pieces, heads: the nodes, showSentence(sentence), step, head: the selected indices }.
export function queryChoice(onChange) {
  let step = 2;
  let head = 0;
  const pieces = el("div", {});
  const heads = el("div", {});
  return {
    pieces,
    heads,
    showSentence,
    get step() {
      return step;
    },
    get head() {
      return head;
    },
  };

  // Show the pieces and heads of a sentence; the selected head stays, and the piece if the sentence is long enough.
  function showSentence(sentence) {
    step = Math.min(step, sentence.target.length - 1);
    pieces.replaceChildren(
      pieceChoice(sentence.target, step, (index) => {
        step = index;
        onChange();
      }),
    );
    heads.replaceChildren(
      headChoice(sentence.heads.length, head, (index) => {
        head = index;
        onChange();
      }),
    );
  }
}

// A slider with its value beside it, formatted by `format`. onInput is called with the number; linkName: as for `choice`.
// It returns { node, input, value }; assigning to `value` does not call onInput.
export function slider(linkName, label, { min, max, step = 1, value, format = (number) => String(number) }, onInput) {
  const output = el("output", {}, format(value));
  const input = el("input", {
    type: "range",
    "data-name": linkName,
    min,
    max,
    step,
    value,
    "aria-label": label,
    "aria-valuetext": format(value),
  });
  const updateText = () => {
    output.textContent = format(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    updateText();
    onInput(Number(input.value));
  });
  return {
    node: el("label", { class: "slider" }, el("span", {}, label), input, output),
    input,
    get value() {
      return Number(input.value);
    },
    set value(number) {
      input.value = number;
      updateText();
    },
  };
}

// A vector as a row of cells: positive numbers are blue, negative ones orange, and larger ones are stronger.
//
// maximum: the absolute value that has the full color
// describeCell: returns the tooltip of the cell with an index; by default its number
export function strip(values, maximum, label, describeCell = (i) => `${i}: ${formatNumber(values[i])}`) {
  const cells = values.map((value, i) => {
    const sign = value < 0 ? "negative" : "positive";
    const opacity = Math.min(1, Math.abs(value) / maximum);
    // The cells overlap a little, so that no gap is visible between them.
    const cell = svg("rect", { x: i, y: 0, width: 1.02, height: 1, class: sign, "fill-opacity": opacity });
    cell.append(svg("title", {}, describeCell(i)));
    return cell;
  });
  const viewBox = `0 0 ${values.length} 1`;
  return svg(
    "svg",
    { class: "strip", viewBox, preserveAspectRatio: "none", role: "img", "aria-label": label },
    ...cells,
  );
}

// A weight between 0 and 1 as a bar and a number.
export function bar(weight) {
  return el(
    "span",
    { class: "bar" },
    el("span", { class: "fill", style: { "--weight": weight } }),
    el("span", { class: "amount" }, formatNumber(weight)),
  );
}

// A table whose columns are laid out by CSS. className: the layout, a class of lesson.css.
export function gridTable(className, label, ...rows) {
  return el("div", { class: className, role: "table", "aria-label": label }, ...rows);
}

export function gridHeader(...names) {
  const headers = names.map((name) => el("span", { role: "columnheader" }, name));
  return el("div", { role: "row", class: "head" }, ...headers);
}

// A row of a grid table. cells: those of gridCell.
export function gridRow(name, ...cells) {
  return el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, name), ...cells);
}

export function gridCell(content, className = "") {
  return el("span", { role: "cell", class: className }, content);
}

// The header of an HTML table.
export function tableHead(...names) {
  return el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name))));
}

// A table with a name for each row and column. renderCell(row, column) returns a td; corner: the text above the row names.
export function matrix(rowNames, columnNames, renderCell, corner = "") {
  const headers = columnNames.map((name) => el("th", { scope: "col" }, el("span", {}, name)));
  const rows = rowNames.map((name, r) => {
    const cells = columnNames.map((_, c) => renderCell(r, c));
    return el("tr", {}, el("th", { scope: "row" }, name), ...cells);
  });
  const table = el(
    "table",
    { class: "matrix" },
    el("thead", {}, el("tr", {}, el("td", {}, corner), ...headers)),
    el("tbody", {}, ...rows),
  );
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": gettext("table") }, table);
}

// A table of buttons, one of which is pressed.
//
// describeCell(row, column): { text: the content, an array; name: the content in words; weight: the color, from −1 to 1 }
// selected: [row, column]
// onSelect: is called with the row and the column of a button that is clicked
export function cellPicker(rowNames, columnNames, describeCell, selected, onSelect, corner) {
  const buttonRows = rowNames.map(() => []);
  const table = matrix(rowNames, columnNames, renderCell, corner);
  addRovingTabindex(buttonRows);
  return table;

  function renderCell(row, column) {
    const { text, name, weight } = describeCell(row, column);
    const isSelected = row === selected[0] && column === selected[1];
    const button = el("button", { type: "button", "aria-label": name, "aria-pressed": String(isSelected) }, ...text);
    button.addEventListener("click", () => {
      press(button);
      onSelect(row, column);
    });
    buttonRows[row].push(button);
    const className = `weight selectable${weight < 0 ? " negative" : ""}`;
    return el("td", { class: className, style: { "--weight": Math.min(1, Math.abs(weight)) } }, button);
  }

  function press(pressed) {
    for (const button of buttonRows.flat()) button.setAttribute("aria-pressed", String(button === pressed));
  }
}

export function hint(...text) {
  return el("p", { class: "hint" }, ...text);
}

// A paragraph whose changes screen readers announce.
export function liveRegion() {
  return el("p", { class: "live-region", "aria-live": "polite" });
}

// The width in pixels of a drawing that fills a container. A drawing that is not scaled has letters of the usual size.
export function drawingWidth(container) {
  return Math.min(820, Math.max(300, container.clientWidth || 640));
}
