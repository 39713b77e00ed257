// Lesson 11: translations with one head off, and with more and more heads off.
import { el, svg } from "./dom.js";
import { formatNumber } from "./formatting.js";
import { maxAbs } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { cellPicker, drawingWidth, hint, liveRegion, slider } from "./widgets.js";

// The curves of the chart: a field of the record, a color, and a label.
const CURVES = [
  { field: "least", className: "c1", label: gettext("least first") },
  { field: "most", className: "c2", label: gettext("most first") },
];

export function ablationFigure(container, record) {
  let sentence;
  let selectedHead = 0; // an index into the heads of the sentence
  const table = el("div", {});
  const summary = liveRegion();
  const count = slider("heads-off", gettext("heads off, the least important first"), { min: 0, max: 1, value: 0 }, () =>
    showSeveralOff(),
  );
  const remaining = el("p", { class: "hint" });
  const [translationWithoutOne, translationWithoutSeveral] = [
    el("p", { class: "translation" }),
    el("p", { class: "translation" }),
  ];
  container.append(
    el("h3", {}, gettext("One head off")),
    table,
    summary,
    translationWithoutOne,
    el("h3", {}, gettext("Several heads off")),
    count.node,
    translationWithoutSeveral,
    remaining,
    el("h3", {}, gettext("BLEU with fewer and fewer heads")),
    el(
      "p",
      { class: "legend" },
      ...CURVES.map(({ className, label }) => el("span", { class: className }, `● ${label}`)),
    ),
    bleuChart(record.chart, drawingWidth(container)),
    hint(
      gettext(
        "{count} held-out sentences. The more log-probability the references lose without a head, the more important it is.",
        { count: record.held_out },
      ),
    ),
  );
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    selectedHead = sentence.losses.indexOf(Math.max(...sentence.losses));
    count.input.max = sentence.heads.length;
    count.value = Math.min(count.value, sentence.heads.length);
    drawTable();
    showOneOff();
    showSeveralOff();
  }

  // A row for each attention, such as decoder.1.cross, and a column for each of its heads.
  function drawTable() {
    const attentions = [...new Set(sentence.heads.map(attentionOf))];
    const mostHeads = Math.max(...attentions.map((attention) => headsOf(attention).length));
    const columns = Array.from({ length: mostHeads }, (_, number) => gettext("head {number}", { number }));
    const maxLoss = Math.max(maxAbs(sentence.losses), 1e-9); // not 0, which can't divide
    const describeCell = (row, column) => {
      const index = headsOf(attentions[row])[column];
      const loss = sentence.losses[index];
      const name = gettext("{head} off: {loss} nats lost", { head: sentence.heads[index], loss: formatNumber(loss) });
      return { text: [formatNumber(loss)], name, weight: loss / maxLoss };
    };
    const selectedAttention = attentionOf(sentence.heads[selectedHead]);
    const selected = [attentions.indexOf(selectedAttention), headsOf(selectedAttention).indexOf(selectedHead)];
    const onSelect = (row, column) => {
      selectedHead = headsOf(attentions[row])[column];
      showOneOff();
    };
    table.replaceChildren(
      cellPicker(attentions, columns, describeCell, selected, onSelect, `${gettext("attention")} ↓`),
      hint(
        gettext(
          "The log-probability, in nats, that the translation loses without a head. Choose one to switch it off.",
        ),
      ),
    );
  }

  // The indices of the heads of an attention.
  function headsOf(attention) {
    return [...sentence.heads.keys()].filter((i) => attentionOf(sentence.heads[i]) === attention);
  }

  function showOneOff() {
    const translation = sentence.alone[selectedHead];
    const isSame = translation === sentence.together[0];
    const head = sentence.heads[selectedHead];
    summary.textContent = isSame
      ? gettext("{head} is off: the translation stays the same.", { head })
      : gettext("{head} is off: the translation changes.", { head });
    translationWithoutOne.textContent = translation || gettext("(nothing)");
  }

  function showSeveralOff() {
    const total = sentence.heads.length;
    translationWithoutSeveral.textContent = sentence.together[count.value] || gettext("(nothing)");
    const firstChange = sentence.together.findIndex((translation) => translation !== sentence.together[0]);
    const change =
      firstChange < 0
        ? gettext("The translation never changes.")
        : gettext("The translation first changes when {count} are off.", { count: firstChange });
    remaining.textContent = `${gettext("{left} of {total} heads are left.", { left: total - count.value, total })} ${change}`;
  }
}

// The attention of a head, such as decoder.1.cross of decoder.1.cross.head.0.
function attentionOf(head) {
  return head.split(".head.")[0];
}

// BLEU by the number of heads that are off. rows: [{ off, least, most }]
function bleuChart(rows, width) {
  const [height, marginLeft] = [220, 40];
  const maxOff = rows.at(-1).off;
  const xOf = (off) => marginLeft + (off / maxOff) * (width - marginLeft - 16);
  const yOf = (bleu) => 10 + (1 - bleu / 100) * (height - 50);
  const drawing = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": gettext("BLEU by the number of heads that are off"),
  });
  for (const bleu of [0, 50, 100]) {
    drawing.append(
      svg("line", { class: "grid", x1: marginLeft, x2: xOf(maxOff), y1: yOf(bleu), y2: yOf(bleu) }),
      svg("text", { x: marginLeft - 6, y: yOf(bleu) + 4, "text-anchor": "end" }, bleu),
    );
  }
  for (const { field, className } of CURVES) {
    const points = rows.map((row) => `${xOf(row.off)},${yOf(row[field])}`).join(" ");
    drawing.append(svg("polyline", { class: className, points }));
    for (const row of rows) {
      const title = svg(
        "title",
        {},
        gettext("{count} off: BLEU {bleu}", { count: row.off, bleu: formatNumber(row[field], 1) }),
      );
      drawing.append(svg("circle", { class: className, cx: xOf(row.off), cy: yOf(row[field]), r: 3 }, title));
    }
  }
  for (const { off } of rows) {
    const isLabeled = off % 4 === 0 || off === maxOff;
    if (isLabeled) drawing.append(svg("text", { x: xOf(off), y: height - 22, "text-anchor": "middle" }, off));
  }
  drawing.append(
    svg(
      "text",
      { class: "muted", x: (marginLeft + xOf(maxOff)) / 2, y: height - 4, "text-anchor": "middle" },
      gettext("heads off"),
    ),
  );
  return drawing;
}

// What the text says about the record.
export function ablationFacts({ sentences: [sentence], chart }) {
  const total = sentence.heads.length;
  const unchanged = sentence.alone.filter((translation) => translation === sentence.together[0]).length;
  const row = chart.findLast(({ off }) => off <= Math.max(total / 3, chart[1].off)); // a third of the heads
  const [least, most] = [row.least, row.most].map((bleu) => formatNumber(bleu, 1));
  return {
    sentence: sentence.text,
    unchanged: gettext("{count} of {total}", { count: unchanged, total }),
    off: gettext(
      "The curves show what a model needs: without its {count} least important heads of {total}, the demo has a BLEU of {least}; " +
        "without the {count} most important ones, of {most}.",
      { count: row.off, total, least, most },
    ),
  };
}
