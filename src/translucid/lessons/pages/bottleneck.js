// Lesson 1: the vectors that the decoder can use, one for the whole source or one for each piece; and BLEU by length.
import { el, svg } from "./dom.js";
import { formatNumber, formatPercent, formatPiece, joinedTexts } from "./formatting.js";
import { filled, gettext, ngettext } from "./messages.js";
import { drawingWidth, hint, strip, tableHead } from "./widgets.js";

const LOW_PROBABILITY = 0.3; // words below it are underlined

export function bottleneckFigure(container, record) {
  const models = el("div", { class: "comparison" });
  const bleu = el("div", {});
  container.append(models, bleu);
  return (sentence) => {
    const states = sentence.pieces.map((piece, i) => ({ name: formatPiece(piece), values: sentence.states[i] }));
    models.replaceChildren(
      modelColumn(
        gettext("Without attention"),
        [{ name: gettext("whole source"), values: sentence.vector }],
        sentence.without,
      ),
      modelColumn(gettext("With attention"), states, sentence.with),
    );
    if (sentence.reference) {
      const label = el("span", { class: "label" }, gettext("reference"));
      models.append(el("p", { class: "reference" }, label, sentence.reference));
    }
    bleu.replaceChildren(...bleuByLength(record, sentence.words, drawingWidth(container)));
  };
}

// The vectors that a model's decoder can use, and its translation: words with their probabilities.
function modelColumn(title, vectors, words) {
  const numbers = vectors.length * vectors[0].values.length;
  const strips = vectors.flatMap(({ name, values }) => [
    el("span", { class: "name" }, name),
    strip(values, 1, gettext("{name}: {count} numbers", { name, count: values.length })),
  ]);
  const translation = words.flatMap(([word, probability]) => {
    const className = probability < LOW_PROBABILITY ? "low-probability" : "";
    const title = gettext("probability {probability}", { probability: formatPercent(probability) });
    return [el("span", { class: className, title }, word), " "];
  });
  return el(
    "div",
    { class: "side" },
    el("h3", {}, title),
    el(
      "p",
      { class: "label" },
      ngettext(
        "the decoder can use {count} vector: {numbers} numbers",
        "the decoder can use {count} vectors: {numbers} numbers",
        vectors.length,
        { numbers },
      ),
    ),
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
    tableHead(gettext("words"), gettext("without attention"), gettext("with attention")),
    el("tbody", {}, ...rows),
  );
  return [
    el("h3", {}, gettext("BLEU by length, with attention and without")),
    bleuChart(chart, trained, sentenceLength, width),
    hint(
      gettext(
        "Two small recurrent models, trained on the same sentences of up to {words} words with the same number of updates. " +
          "Each point is for {count} held-out sentences. The line marks the sentence above.",
        { words: trained, count: chart[0].sentences },
      ),
    ),
    el("details", {}, el("summary", {}, gettext("Table")), table),
  ];
}

function bleuChart(rows, trained, sentenceLength, width) {
  const [height, marginLeft, marginBottom] = [240, 40, 36];
  const [minWords, maxWords] = [rows[0].words, rows.at(-1).words];
  const xOf = (words) => marginLeft + ((words - minWords) / (maxWords - minWords)) * (width - marginLeft - 60);
  const yOf = (bleu) => 12 + (1 - bleu / 100) * (height - marginBottom - 12);
  const right = xOf(maxWords);
  const label = gettext("BLEU by source words, without and with attention; the table below has the numbers");
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
    svg("text", { class: "muted", x: right - 6, y: yOf(42), "text-anchor": "end" }, gettext("longer than in training")),
    svg("line", { class: "current", x1: sentenceX, x2: sentenceX, y1: yOf(100), y2: yOf(0) }),
  );
  for (const [field, className, label, title] of [
    ["without", "c2", gettext("without"), gettext("{words} words, without attention: BLEU {bleu}")],
    ["with", "c1", gettext("with"), gettext("{words} words, with attention: BLEU {bleu}")],
  ]) {
    const points = rows.map((row) => `${xOf(row.words)},${yOf(row[field])}`).join(" ");
    drawing.append(svg("polyline", { class: className, points }));
    for (const row of rows) {
      const point = { class: className, cx: xOf(row.words), cy: yOf(row[field]), r: 4 };
      const tooltip = filled(title, { words: row.words, bleu: formatNumber(row[field], 1) });
      drawing.append(svg("circle", point, svg("title", {}, tooltip)));
    }
    drawing.append(svg("text", { class: `${className} name`, x: right + 10, y: yOf(rows.at(-1)[field]) + 4 }, label));
  }
  const labelY = height - marginBottom + 18;
  for (const { words } of rows)
    drawing.append(svg("text", { x: xOf(words), y: labelY, "text-anchor": "middle" }, words));
  const middle = (marginLeft + right) / 2;
  const axis = { x: middle, y: height - 4, "text-anchor": "middle", class: "muted" };
  drawing.append(svg("text", axis, gettext("source words")));
  return drawing;
}

// What the text says about the record.
export function bottleneckFacts({ chart }) {
  const [shortest, longest] = [chart[0], chart.at(-1)];
  const describe = ({ words, without }) =>
    gettext("{bleu} for sentences of {words} words", { bleu: formatNumber(without, 1), words });
  return { bleu: joinedTexts([describe(shortest), describe(longest)]) };
}
