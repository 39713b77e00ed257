// Lesson 1: the vectors that the decoder can use, one for the whole source or one for each piece; and BLEU by length.
import { el, svg } from "./dom.js";
import { formatNumber, formatPercent, formatPiece } from "./formatting.js";
import { drawingWidth, hint, strip, tableHead } from "./widgets.js";

const LOW_PROBABILITY = 0.3; // words below it are underlined

export function bottleneckFigure(container, record) {
  const models = el("div", { class: "comparison" });
  const bleu = el("div", {});
  container.append(models, bleu);
  return (sentence) => {
    const states = sentence.pieces.map((piece, i) => ({ name: formatPiece(piece), values: sentence.states[i] }));
    models.replaceChildren(
      modelColumn("Without attention", [{ name: "whole source", values: sentence.vector }], sentence.without),
      modelColumn("With attention", states, sentence.with),
    );
    if (sentence.reference) {
      models.append(el("p", { class: "reference" }, el("span", { class: "label" }, "reference"), sentence.reference));
    }
    bleu.replaceChildren(...bleuByLength(record, sentence.words, drawingWidth(container)));
  };
}

// The vectors that a model's decoder can use, and its translation: words with their probabilities.
function modelColumn(title, vectors, words) {
  const numberCount = vectors.length * vectors[0].values.length;
  const vectorCount = vectors.length === 1 ? "1 vector" : `${vectors.length} vectors`;
  const strips = vectors.flatMap(({ name, values }) => [
    el("span", { class: "name" }, name),
    strip(values, 1, `${name}: ${values.length} numbers`),
  ]);
  const translation = words.flatMap(([word, probability]) => {
    const className = probability < LOW_PROBABILITY ? "low-probability" : "";
    return [el("span", { class: className, title: `probability ${formatPercent(probability)}` }, word), " "];
  });
  return el(
    "div",
    { class: "side" },
    el("h3", {}, title),
    el("p", { class: "label" }, `the decoder can use ${vectorCount}: ${numberCount} numbers`),
    el("div", { class: "strips" }, ...strips),
    el("p", { class: "translation", lang: "es" }, ...translation),
  );
}

// A chart and a table. chart: [{ words, with, without, sentences }]; trained: the length of the longest training sentences.
function bleuByLength({ chart, trained }, sentenceLength, width) {
  const rows = chart.map((row) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, row.words),
      el("td", {}, formatNumber(row.without, 1)),
      el("td", {}, formatNumber(row.with, 1)),
    ),
  );
  const table = el(
    "table",
    { class: "data-table" },
    tableHead("words", "without attention", "with attention"),
    el("tbody", {}, ...rows),
  );
  return [
    el("h3", {}, "BLEU by length, with attention and without"),
    bleuChart(chart, trained, sentenceLength, width),
    hint(
      `Two small recurrent models, trained on the same sentences of up to ${trained} words with the same number of updates. Each point is for ${chart[0].sentences} held-out sentences. The line marks the sentence above.`,
    ),
    el("details", {}, el("summary", {}, "Table"), table),
  ];
}

function bleuChart(rows, trained, sentenceLength, width) {
  const [height, marginLeft, marginBottom] = [240, 40, 36];
  const [minWords, maxWords] = [rows[0].words, rows.at(-1).words];
  const xOf = (words) => marginLeft + ((words - minWords) / (maxWords - minWords)) * (width - marginLeft - 60);
  const yOf = (bleu) => 12 + (1 - bleu / 100) * (height - marginBottom - 12);
  const right = xOf(maxWords);
  const label = "BLEU by source words, without and with attention; the table below has the numbers";
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
  for (const bleu of [0, 25, 50, 75, 100]) {
    drawing.append(
      svg("line", { class: "grid", x1: marginLeft, x2: right, y1: yOf(bleu), y2: yOf(bleu) }),
      svg("text", { x: marginLeft - 8, y: yOf(bleu) + 4, "text-anchor": "end" }, bleu),
    );
  }
  const sentenceX = xOf(Math.min(Math.max(sentenceLength, minWords), maxWords));
  drawing.append(
    svg("rect", {
      class: "beyond-training",
      x: xOf(trained),
      y: yOf(100),
      width: right - xOf(trained),
      height: yOf(0) - yOf(100),
    }),
    svg("text", { class: "muted", x: xOf(trained) + 6, y: yOf(100) + 14 }, "longer than in training"),
    svg("line", { class: "current", x1: sentenceX, x2: sentenceX, y1: yOf(100), y2: yOf(0) }),
  );
  for (const [field, className] of [
    ["without", "c2"],
    ["with", "c1"],
  ]) {
    const points = rows.map((row) => `${xOf(row.words)},${yOf(row[field])}`).join(" ");
    drawing.append(svg("polyline", { class: className, points }));
    for (const row of rows) {
      const title = svg("title", {}, `${row.words} words, ${field} attention: BLEU ${row[field]}`);
      drawing.append(svg("circle", { class: className, cx: xOf(row.words), cy: yOf(row[field]), r: 4 }, title));
    }
    drawing.append(svg("text", { class: `${className} name`, x: right + 10, y: yOf(rows.at(-1)[field]) + 4 }, field));
  }
  const labelY = height - marginBottom + 18;
  for (const { words } of rows)
    drawing.append(svg("text", { x: xOf(words), y: labelY, "text-anchor": "middle" }, words));
  const middle = (marginLeft + right) / 2;
  drawing.append(svg("text", { x: middle, y: height - 4, "text-anchor": "middle", class: "muted" }, "source words"));
  return drawing;
}

// What the text says about the record.
export function bottleneckFacts({ chart }) {
  const [shortest, longest] = [chart[0], chart.at(-1)];
  const describe = ({ words, without }) => `${formatNumber(without, 1)} for sentences of ${words} words`;
  return { bleu: `${describe(shortest)} and ${describe(longest)}` };
}
