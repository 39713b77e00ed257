// A box of the figure "Pass": a picture of the numbers that the model computes at a point, and the numbers themselves when it is open.

import { createBar, createSwitch, element, formatPercent } from "./elements.js";
import { argmax, softmax } from "./linear_algebra.js";
import { gettext } from "./messages.js";

const SHOWN = 8; // pieces of the distribution
const DENSE = 12; // rows without labels

// Return the element of a box.
//
// box: see pass_boxes.js
// pass: what is shown of its side: { side, pieces: the labels of the rows, ids, points: the rows by name, row: the selected one,
//   tokens: the translation, pieceOf(id), keyPieces(name of an attention): the labels of its keys,
//   scoreTerms(attention, key): { terms, formula }, a score as a sum,
//   notes: by the ids of pieces, what a beam search does with them; instead, the piece of the translation is marked if not given }
// view: what the user has opened: { open: the names of boxes, heads: the chosen head by box, keys: the chosen key by box },
//   and the colors of numbers: { positive, negative }, each "red,green,blue"
// actions: { onSelectRow(index), onSwitch(name of a point), isOff(name), onChange(): draws the boxes again }
export function createBox(box, pass, view, actions) {
  const name = `${box.point || `${pass.side}.pieces`}`;
  const body = element("div", { className: "numbers-of-box" });
  const isOpen = view.open.has(name);
  const root = element("div", { className: isOpen ? "pass-box open" : "pass-box" });
  root.dataset.point = name;
  const title = element("button", { type: "button", className: "box-title", ariaExpanded: isOpen }, box.title);
  const header = element("div", { className: "box-header" }, title);
  const draw = { pieces: drawPieces, states: drawStates, attention: drawAttention, distribution: drawDistribution }[
    box.kind
  ];
  if (box.kind === "pieces") header.replaceChildren(element("span", { textContent: box.title }));
  if (box.canSwitch) header.append(switchButton(box.title, name, actions));
  title.addEventListener("click", () => {
    view.open[isOpen ? "delete" : "add"](name);
    actions.onChange();
  });
  const equation = element("p", { className: "equation", textContent: box.equation });
  root.replaceChildren(header, ...(box.equation ? [equation] : []), body);
  draw(body, { box, name, pass, view, actions, isOpen });
  return root;
}

function switchButton(label, name, actions) {
  const button = createSwitch(gettext("switch of {name}", { name: label }), !actions.isOff(name), () =>
    actions.onSwitch(name),
  );
  button.dataset.switch = name;
  return button;
}

function drawPieces(body, { pass, actions }) {
  const chips = pass.pieces.map((piece, row) => {
    const id = element("small", { textContent: pass.ids[row] });
    const chip = element(
      "button",
      { type: "button", className: "chip", ariaPressed: row === pass.row },
      piece,
      " ",
      id,
    );
    chip.addEventListener("click", () => actions.onSelectRow(row));
    return chip;
  });
  body.replaceChildren(element("div", { className: "chips", dir: "auto" }, ...chips));
}

function drawStates(body, { box, pass, view, isOpen }) {
  const rows = pass.points[box.point];
  body.replaceChildren(picture(view, rows, pass.pieces, pass.row));
  if (isOpen)
    body.append(
      numbers(
        gettext("“{piece}”, {count} numbers", { piece: pass.pieces[pass.row], count: rows[0].length }),
        rows[pass.row],
      ),
    );
}

function drawAttention(body, { box, name, pass, view, actions, isOpen }) {
  const chosen = view.heads.get(name) ?? 0;
  const heads = Array.from({ length: box.heads }, (_, h) => {
    const point = `${box.point}.head.${h}`;
    const rows = pass.points[point].map(({ weights }) => weights);
    const label = gettext("head {number}", { number: h });
    const thumbnail = element("button", {
      type: "button",
      className: "thumbnail",
      ariaLabel: `${box.title}, ${label}`,
    });
    thumbnail.append(heatmap(view, rows, 1), label);
    thumbnail.setAttribute("aria-pressed", String(isOpen && h === chosen));
    thumbnail.addEventListener("click", () => {
      view.heads.set(name, h);
      view.open.add(name);
      actions.onChange();
    });
    const className = actions.isOff(point) ? "head off" : "head";
    return element("div", { className }, thumbnail, switchButton(`${box.title}, ${label}`, point, actions));
  });
  body.replaceChildren(element("div", { className: "heads" }, ...heads));
  if (isOpen) body.append(...attentionNumbers({ box, name, pass, view, actions, chosen }));
}

// Return the queries, keys and values of a head, the weights of the selected query, and one score as a sum.
function attentionNumbers({ box, name, pass, view, actions, chosen }) {
  const attentions = pass.points[`${box.point}.head.${chosen}`];
  const attention = attentions[pass.row];
  const { keys, values, scores, weights, context } = attention;
  const keyPieces = pass.keyPieces(box.point);
  const key = Math.min(view.keys.get(name) ?? argmax(weights), keys.length - 1);
  const strips = [
    [gettext("Queries of head {number}", { number: chosen }), attentions.map(({ query }) => query), pass.pieces],
    [gettext("Keys of head {number}", { number: chosen }), keys, keyPieces],
    [gettext("Values of head {number}", { number: chosen }), values, keyPieces],
  ].map(([title, rows, labels], i) => {
    const heading = element("p", { className: "title", textContent: title });
    return element("div", {}, heading, picture(view, rows, labels, i === 0 ? pass.row : key));
  });
  const { terms, formula } = pass.scoreTerms(attention, key);
  const table = element("table", { className: "scores" }, element("tbody", {}, ...keys.map(keyRow)));
  const pieces = { query: pass.pieces[pass.row], key: keyPieces[key] };
  const title = (textContent) => element("p", { className: "title", textContent });
  return [
    element("div", { className: "strips" }, ...strips),
    title(gettext("Scores and weights of “{query}”", pieces)),
    table,
    title(gettext("The score of “{query}” and “{key}”", pieces)),
    element("p", { className: "equation formula", textContent: formula }),
    list("numbers terms", gettext("terms of the score of “{query}”", pieces), terms),
    numbers(gettext("Context of “{query}”: the mean of the values by these weights", pieces), context),
  ];

  function keyRow(_, s) {
    const button = element("button", { type: "button", ariaPressed: s === key }, keyPieces[s]);
    button.addEventListener("click", () => {
      view.keys.set(name, s);
      actions.onChange();
    });
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, button),
      element("td", { className: "value", textContent: format(scores[s]) }),
      element("td", {}, createBar("bar-fill", weights[s], { minimum: 0, maximum: 1 })),
      element("td", { className: "value", textContent: format(weights[s]) }),
    );
  }
}

function drawDistribution(body, { pass }) {
  const logits = pass.points.logits[pass.row];
  const probabilities = softmax(logits);
  const mostProbable = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
  const notes = pass.notes ?? new Map([[pass.tokens[pass.row], ""]]);
  const shown = new Set([...mostProbable.slice(0, SHOWN), ...notes.keys()]);
  const rows = [...shown].map((id) =>
    element(
      "tr",
      { className: notes.has(id) ? "written" : "" },
      element("th", { scope: "row", textContent: [pass.pieceOf(id), notes.get(id)].filter(Boolean).join(" ") }),
      element("td", { className: "value", textContent: format(logits[id]) }),
      element("td", {}, createBar("bar-fill", probabilities[id], { minimum: 0, maximum: 1 })),
      element("td", { className: "value", textContent: formatPercent(probabilities[id]) }),
    ),
  );
  const table = element("table", { className: "scores", ariaLabel: gettext("the most probable pieces") });
  table.append(element("tbody", {}, ...rows));
  body.replaceChildren(table);
}

// Return a picture of rows of numbers with their labels; blue is positive, orange negative.
function picture(colors, rows, labels, selected) {
  const largest = rows.reduce((most, row) => row.reduce((value, x) => Math.max(value, Math.abs(x)), most), 1e-9);
  const names = labels.slice(0, rows.length).map((label, row) => {
    return element("span", { className: row === selected ? "selected" : "", textContent: label, dir: "auto" });
  });
  const properties = { className: rows.length > DENSE ? "row-names dense" : "row-names", ariaHidden: "true" };
  const root = element("div", { className: "matrix" }, element("div", properties, ...names));
  root.style.setProperty("--rows", String(rows.length));
  root.append(heatmap(colors, rows, largest));
  return root;
}

// Return a canvas with a pixel for each number; rows may have different lengths.
function heatmap({ positive, negative }, rows, largest) {
  const width = Math.max(...rows.map((row) => row.length));
  const canvas = element("canvas", { width, height: rows.length, ariaHidden: "true" });
  const [plus, minus] = [positive, negative].map((color) => color.split(",").map(Number));
  const pixels = new ImageData(width, rows.length);
  rows.forEach((row, r) => {
    row.forEach((value, c) => {
      const first = 4 * (r * width + c);
      const color = value < 0 ? minus : plus;
      for (let i = 0; i < 3; i += 1) pixels.data[first + i] = color[i];
      pixels.data[first + 3] = Math.round((255 * Math.abs(value)) / largest);
    });
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function numbers(title, row) {
  const heading = element("p", { className: "title", textContent: title });
  return element("div", {}, heading, list("numbers", title, Array.from(row, format)));
}

function list(className, ariaLabel, texts) {
  const items = texts.map((textContent) => element("li", { textContent }));
  return element("ol", { className, ariaLabel, tabIndex: 0 }, ...items); // the focus lets arrow keys scroll it
}

export function format(value) {
  return value.toFixed(4).replace("-", "\u2212");
}
