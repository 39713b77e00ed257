// Lesson 3: a query reads a memory of keys and values. A slider multiplies the scores, which makes the weights sharper.
import { el } from "./dom.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { argmax, dot, maxAbs, softmax, weightedSum } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import {
  bar,
  gridCell,
  gridHeader,
  gridRow,
  gridTable,
  hint,
  liveRegion,
  queryChoice,
  slider,
  strip,
} from "./widgets.js";

export function memoryFigure(container) {
  let sentence;
  const selected = queryChoice(() => draw());
  const sharpness = slider(
    "sharpness",
    gettext("sharpness"),
    { min: 0, max: 8, step: 0.25, value: 1, format: (factor) => `× ${formatNumber(factor)}` },
    () => draw(),
  );
  const table = el("div", {});
  const summary = liveRegion();
  container.append(selected.pieces, el("div", { class: "controls" }, selected.heads, sharpness.node), table, summary);
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    selected.showSentence(sentence);
    draw();
  }

  function draw() {
    const { query: queries, key: keys, value: values } = sentence.heads[selected.head];
    const query = queries[selected.step];
    const width = query.length;
    const scores = keys.map((key) => dot(query, key) / Math.sqrt(width));
    const weights = softmax(scores.map((score) => sharpness.value * score));
    const context = weightedSum(weights, values);
    // Queries and keys share a scale of colors; so do values and the context.
    const maxKey = Math.max(maxAbs(keys.flat()), maxAbs(queries.flat()));
    const maxValue = maxAbs(values.flat());
    const memoryRows = sentence.source.map((piece, s) =>
      gridRow(
        formatPiece(piece),
        gridCell(strip(keys[s], maxKey, gettext("key of {count} numbers", { count: width }))),
        gridCell(el("span", { class: "amount score" }, formatNumber(scores[s]))),
        gridCell(bar(weights[s])),
        gridCell(
          el(
            "span",
            { class: "faded", style: { "--weight": weights[s] } },
            strip(values[s], maxValue, gettext("value of {count} numbers", { count: width })),
          ),
        ),
      ),
    );
    table.replaceChildren(
      gridTable(
        "memory",
        gettext("memory"),
        gridRow(
          gettext("query"),
          gridCell(strip(query, maxKey, gettext("query of {count} numbers", { count: width }))),
        ),
        gridHeader(gettext("piece"), gettext("key"), "q · k / √d", gettext("weight"), gettext("value")),
        ...memoryRows,
        gridRow(
          gettext("context"),
          gridCell(""),
          gridCell(""),
          gridCell(""),
          gridCell(strip(context, maxValue, gettext("context of {count} numbers", { count: width }))),
        ),
      ),
      hint(
        gettext(
          "{name}, head {head}: vectors of {count} numbers; blue is positive, orange negative. The context is the weighted average " +
            "of the values.",
          { name: sentence.name, head: selected.head, count: width },
        ),
      ),
    );
    const best = argmax(weights);
    const distance = Math.hypot(...context.map((x, k) => x - values[best][k]));
    summary.textContent = gettext(
      "The largest weight, {weight}, is that of “{piece}”; the context is {distance} away from its value.",
      {
        weight: formatPercent(weights[best]),
        piece: formatPiece(sentence.source[best]),
        distance: formatNumber(distance),
      },
    );
  }
}
