// Lesson 7: random vectors of more and more numbers, and a head of the model, with other scales than 1 / √d.
import { el, svg, number, percent, shown } from "./dom.js";
import { dot, mean, softmax } from "./maths.js";
import { bar, choice, hint, room, said, slider } from "./parts.js";

export function scale(root, record) {
  let [sentence, step, head] = [null, 2, 0];
  const size = slider("dimensions d", { min: 0, max: 10, value: 6, show: (e) => String(2 ** e) }, () => draw());
  const exponent = slider("divide scores by d to the power", { min: 0, max: 1, step: 0.25, value: 0, show: (a) => `${number(a)}${a === 0.5 ? ", the paper’s √d" : ""}` }, () => draw());
  const drawn = el("div", {});
  const told = said();
  const words = el("div", {});
  const heads = el("div", {});
  const real = el("div", {});
  root.append(el("div", { class: "knobs" }, exponent.node), el("h3", {}, "Random queries and keys"), size.node, drawn, told, el("h3", {}, "A head of the translation model, d = ", el("span", { class: "width" })), words, heads, real);
  return (given) => {
    sentence = given;
    step = Math.min(step, sentence.target.length - 1);
    root.querySelector(".width").textContent = sentence.heads[0].query[0].length;
    words.replaceChildren(choice("next piece", sentence.target.map((piece, i) => ({ label: shown(piece), value: i })), (t) => { step = t; draw(); }, { chosen: step, kind: "words" }).node);
    heads.replaceChildren(choice("head", sentence.heads.map((_, i) => ({ label: String(i), value: i })), (h) => { head = h; draw(); }, { chosen: head }).node);
    draw();
  };

  function scoresAt(d, a) {
    const q = record.query.slice(0, d);
    return record.keys.map((key) => dot(q, key.slice(0, d)) / d ** a);
  }

  function draw() {
    const [d, a] = [2 ** size.value, exponent.value];
    const scores = scoresAt(d, a);
    drawn.replaceChildren(weighed(scores, scores.map((_, i) => `key ${i + 1}`)), el("h3", {}, "The steepest slope of the softmax, max α (1 − α)"), curve(a, d), hint(`Mean over ${record.draws} queries with ${record.keys.length} keys each.`));
    told.textContent = `The scores’ standard deviation is ${number(deviation(scores))}, the largest weight ${number(Math.max(...softmax(scores)))}, the steepest slope of the softmax ${number(slope(softmax(scores)), 4)}.`;
    const { query, key } = sentence.heads[head];
    const theirs = key.map((k) => dot(query[step], k) / k.length ** a);
    real.replaceChildren(weighed(theirs, sentence.source.map(shown)), hint("The model was trained with √d, so its scores are √d times too large at 0, and √d times too small at 1."));
  }

  function weighed(scores, names) {
    const weights = softmax(scores);
    return el("div", { class: "weighed", role: "table", "aria-label": "scores and weights" },
      el("div", { role: "row", class: "head" }, ...["key", "score", "weight"].map((text) => el("span", { role: "columnheader" }, text))),
      ...scores.map((score, i) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, names[i]), el("span", { role: "cell", class: "amount score" }, number(score)), el("span", { role: "cell" }, bar(weights[i])))));
  }

  function curve(a, d) {
    const [width, height, left] = [room(root), 190, 40];
    const x = (e) => left + (e / 10) * (width - left - 96);
    const y = (value) => 10 + (1 - value / 0.25) * (height - 46);
    const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "steepest slope of the softmax by number of dimensions" });
    for (const value of [0, 0.125, 0.25]) drawing.append(svg("line", { class: "grid", x1: left, x2: x(10), y1: y(value), y2: y(value) }), svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
    const lines = [[0, "c2", "not divided"], [0.5, "c1", "divided by √d"]];
    if (a !== 0 && a !== 0.5) lines.push([a, "c3", `by d^${number(a)}`]);
    for (const [b, mark, name] of lines) {
      const values = record.slopes[b.toFixed(2)];
      drawing.append(svg("polyline", { class: mark, points: values.map((value, e) => `${x(e)},${y(value)}`).join(" ") }), svg("text", { class: `${mark} name`, x: x(10) + 8, y: y(values[10]) + 4 }, name));
      if (b === a) drawing.append(svg("circle", { class: mark, cx: x(Math.log2(d)), cy: y(values[Math.log2(d)]), r: 6 }, svg("title", {}, number(values[Math.log2(d)], 3))));
    }
    for (const e of [0, 2, 4, 6, 8, 10]) drawing.append(svg("text", { x: x(e), y: height - 20, "text-anchor": "middle" }, 2 ** e));
    drawing.append(svg("text", { class: "quiet", x: (left + x(10)) / 2, y: height - 3, "text-anchor": "middle" }, "dimensions d"));
    return drawing;
  }
}

// How fast a weight can still change with its score: what the gradient is multiplied by.
function slope(weights) {
  return Math.max(...weights.map((w) => w * (1 - w)));
}

function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}
