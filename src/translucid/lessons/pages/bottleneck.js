// Lesson 1: what the decoder is given of a sentence, one vector or one for each piece; BLEU by length.
import { el, svg, number, percent, shown } from "./dom.js";
import { hint, room, strip } from "./parts.js";

export function bottleneck(root, record) {
  const given = el("div", { class: "pair" });
  const chart = el("div", {});
  root.append(given, chart);
  return (sentence) => {
    given.replaceChildren(
      side("Without attention", sentence, [["whole source", sentence.vector]], sentence.without),
      side("With attention", sentence, sentence.pieces.map((piece, i) => [shown(piece), sentence.states[i]]), sentence.with),
    );
    if (sentence.reference) given.append(el("p", { class: "reference" }, el("span", { class: "label" }, "reference"), sentence.reference));
    chart.replaceChildren(...lines(record, sentence.words, room(root)));
  };
}

function side(title, sentence, vectors, words) {
  const count = vectors.length * vectors[0][1].length;
  return el("div", { class: "side" }, el("h3", {}, title),
    el("p", { class: "label" }, `the decoder can use ${vectors.length === 1 ? "1 vector" : `${vectors.length} vectors`}: ${count} numbers`),
    el("div", { class: "strips" }, ...vectors.flatMap(([name, values]) => [el("span", { class: "name" }, name), strip(values, 1, `${name}: ${values.length} numbers`)])),
    el("p", { class: "written", lang: "es" }, ...words.flatMap(([word, p]) => [el("span", { class: p < 0.3 ? "unsure" : "", title: `probability ${percent(p)}` }, word), " "])));
}

function lines({ chart, trained }, words, width) {
  const [height, left, bottom] = [240, 40, 36];
  const x = (n) => left + ((n - chart[0].words) / (chart.at(-1).words - chart[0].words)) * (width - left - 60);
  const y = (bleu) => 12 + (1 - bleu / 100) * (height - bottom - 12);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": "BLEU by source words, without and with attention; the table below has the numbers" });
  for (const bleu of [0, 25, 50, 75, 100]) {
    drawing.append(svg("line", { class: "grid", x1: left, x2: x(chart.at(-1).words), y1: y(bleu), y2: y(bleu) }), svg("text", { x: left - 8, y: y(bleu) + 4, "text-anchor": "end" }, bleu));
  }
  const here = Math.min(Math.max(words, chart[0].words), chart.at(-1).words);
  drawing.append(svg("rect", { class: "beyond", x: x(trained), y: y(100), width: x(chart.at(-1).words) - x(trained), height: y(0) - y(100) }),
    svg("text", { class: "quiet", x: x(trained) + 6, y: y(100) + 14 }, "longer than in training"),
    svg("line", { class: "here", x1: x(here), x2: x(here), y1: y(100), y2: y(0) }));
  for (const [key, mark] of [["without", "c2"], ["with", "c1"]]) {
    drawing.append(svg("polyline", { class: mark, points: chart.map((row) => `${x(row.words)},${y(row[key])}`).join(" ") }));
    for (const row of chart) drawing.append(svg("circle", { class: mark, cx: x(row.words), cy: y(row[key]), r: 4 }, svg("title", {}, `${row.words} words, ${key} attention: BLEU ${row[key]}`)));
    drawing.append(svg("text", { class: `${mark} name`, x: x(chart.at(-1).words) + 10, y: y(chart.at(-1)[key]) + 4 }, key));
  }
  for (const row of chart) drawing.append(svg("text", { x: x(row.words), y: height - bottom + 18, "text-anchor": "middle" }, row.words));
  drawing.append(svg("text", { x: (left + x(chart.at(-1).words)) / 2, y: height - 4, "text-anchor": "middle", class: "quiet" }, "source words"));
  const table = el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ...["words", "without attention", "with attention"].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...chart.map((row) => el("tr", {}, el("th", { scope: "row" }, row.words), el("td", {}, number(row.without, 1)), el("td", {}, number(row.with, 1))))));
  return [el("h3", {}, "BLEU by length, with attention and without"), drawing,
    hint(`Two small recurrent models, trained on the same sentences of up to ${trained} words with the same number of updates. Each point is for ${chart[0].sentences} held-out sentences. The line marks the sentence above.`),
    el("details", {}, el("summary", {}, "Table"), table)];
}
