// Lesson 4: a mask whose cells can be switched on and off, and the weights that remain.
import { el } from "./dom.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { dot, softmax, sum } from "./linear_algebra.js";
import { gettext, ngettext } from "./messages.js";
import { choice, headChoice, hint, liveRegion, matrix } from "./widgets.js";

// Whether a row, the query, may attend to a column, the key. length: the number of tokens without padding.
const MASKS = [
  { label: gettext("none"), value: () => true },
  { label: gettext("padding"), value: (_row, column, length) => column < length },
  { label: gettext("causal"), value: (row, column) => column <= row },
  { label: gettext("both: the target mask"), value: (row, column, length) => column < length && column <= row },
];
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function masksFigure(container) {
  let sentence;
  let head = 0;
  let mask = []; // [row][column]: whether the weight is kept
  const kinds = choice("mask", gettext("mask"), MASKS, () => {
    resetMask();
    draw();
  });
  const heads = el("div", {});
  const table = el("div", {});
  const summary = liveRegion();
  container.append(el("div", { class: "controls" }, kinds.node, heads), table, summary);
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    heads.replaceChildren(
      headChoice(sentence.heads.length, head, (index) => {
        head = index;
        draw();
      }),
    );
    resetMask();
    draw();
  }

  function lengthWithoutPadding() {
    return sentence.tokens.length - sentence.padding;
  }

  function resetMask() {
    const length = lengthWithoutPadding();
    mask = sentence.tokens.map((_, row) => sentence.tokens.map((__, column) => kinds.value(row, column, length)));
  }

  // Draw the table. focus: the [row, column] of the button that gets the focus, if any.
  function draw(focus) {
    const { query: queries, key: keys } = sentence.heads[head];
    const scores = queries.map((query) => keys.map((key) => dot(query, key) / Math.sqrt(query.length)));
    const weights = scores.map((row, r) => softmax(row, mask[r]));
    const names = sentence.tokens.map(formatPiece);
    const [focusRow, focusColumn] = focus ?? [0, 0];
    const renderCell = (row, column) => {
      const isOpen = mask[row][column];
      const button = el(
        "button",
        {
          type: "button",
          "aria-pressed": isOpen,
          "aria-label": gettext("{query} may attend to {key}", { query: names[row], key: names[column] }),
          title: gettext("score {number}", { number: formatNumber(scores[row][column]) }),
          tabindex: row === focusRow && column === focusColumn ? 0 : -1,
          on: {
            click: () => toggle(row, column),
            keydown: (event) => onKeydown(event, row, column),
          },
        },
        isOpen ? formatNumber(weights[row][column]) : "",
      );
      return el(
        "td",
        { class: isOpen ? "weight" : "weight masked", style: { "--weight": weights[row][column] } },
        button,
      );
    };
    table.replaceChildren(
      matrix(names, names, renderCell, `${gettext("query")} ↓ ${gettext("key")} →`),
      hint(
        gettext(
          "Each row is a decoder position and its weights over the previous ones. Click a square, or move with the arrow keys and " +
            "press Space, to unmask or mask it: the other squares of the row share its weight.",
        ),
      ),
    );
    if (focus) buttonAt(...focus).focus();
    summary.textContent = maskSummary(weights, lengthWithoutPadding());
  }

  function toggle(row, column) {
    mask[row][column] = !mask[row][column];
    draw([row, column]);
  }

  function buttonAt(row, column) {
    return table.querySelectorAll("button")[row * mask.length + column];
  }

  // Move the focus with the arrow keys.
  function onKeydown(event, row, column) {
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    const clamp = (index) => Math.min(mask.length - 1, Math.max(0, index));
    const next = buttonAt(clamp(row + direction[0]), clamp(column + direction[1]));
    buttonAt(row, column).tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

// How much weight goes to positions that a decoder should not see. length: the number of tokens without padding.
function maskSummary(weights, length) {
  const rows = weights.slice(0, length);
  const future = sum(rows.flatMap((row, r) => row.slice(r + 1, length))) / length;
  const padding = sum(rows.flatMap((row) => row.slice(length))) / length;
  const maskedRows = weights.filter((row) => row.every((weight) => weight === 0)).length;
  const shares = gettext("Of all weight, {future} goes to the future and {padding} to padding.", {
    future: formatPercent(future),
    padding: formatPercent(padding),
  });
  if (!maskedRows) return shares;
  const warning = ngettext(
    "One row is fully masked: all weights are 0, and so is the context.",
    "{count} rows are fully masked: all weights are 0, and so is the context.",
    maskedRows,
  );
  return `${shares} ${warning}`;
}
