// Lesson 11: translations with one head off, and with more and more of them.
import { el, svg, number } from "./dom.js";
import { hint, picker, room, said, slider } from "./parts.js";

export function ablation(root, record) {
  let [sentence, chosen] = [null, 0];
  const table = el("div", {});
  const told = said();
  const count = slider("heads off, the least important first", { min: 0, max: 1, value: 0 }, () => several());
  const left = el("p", { class: "hint" });
  const [alone, together] = [el("p", { class: "written" }), el("p", { class: "written" })];
  root.append(el("h3", {}, "One head off"), table, told, alone, el("h3", {}, "Several heads off"), count.node, together, left,
    el("h3", {}, "BLEU with fewer and fewer heads"), chart(), hint(`${record.held_out} held-out sentences. A head is the more important, the more log-probability the references lose without it.`));
  return (given) => {
    sentence = given;
    chosen = sentence.losses.indexOf(Math.max(...sentence.losses));
    count.input.max = sentence.heads.length;
    count.value = Math.min(count.value, sentence.heads.length);
    draw();
    several();
  };

  function draw() {
    const names = [...new Set(sentence.heads.map((name) => name.split(".head.")[0]))];
    const widest = Math.max(...names.map((name) => of(name).length));
    const most = Math.max(...sentence.losses.map(Math.abs), 1e-9);
    const columns = [...Array(widest).keys()].map((head) => `head ${head}`);
    table.replaceChildren(picker(names, columns, (r, c) => {
      const i = of(names[r])[c];
      return { text: [number(sentence.losses[i])], name: `${sentence.heads[i]} off: ${number(sentence.losses[i])} nats lost`, weight: sentence.losses[i] / most };
    }, [names.indexOf(sentence.heads[chosen].split(".head.")[0]), of(sentence.heads[chosen].split(".head.")[0]).indexOf(chosen)], (r, c) => { chosen = of(names[r])[c]; one(); }, "attention ↓"),
    hint("The log-probability, in nats, that the translation loses without a head. Choose one to switch it off."));
    one();
  }

  // The numbers of the heads of an attention.
  function of(attention) {
    return [...sentence.heads.keys()].filter((i) => sentence.heads[i].startsWith(`${attention}.head.`));
  }

  function one() {
    const text = sentence.alone[chosen];
    told.textContent = `${sentence.heads[chosen]} is off: ${text === sentence.together[0] ? "the translation stays the same" : "the translation changes"}.`;
    alone.textContent = text || "(nothing)";
  }

  function several() {
    const [off, all] = [count.value, sentence.heads.length];
    together.textContent = sentence.together[off] || "(nothing)";
    const first = sentence.together.findIndex((text) => text !== sentence.together[0]);
    left.textContent = `${all - off} of ${all} heads are left. The translation ${first < 0 ? "never changes" : `changes first when ${first} are off`}.`;
  }

  function chart() {
    const [width, height, margin] = [room(root), 220, 40];
    const most = record.chart.at(-1).off;
    const x = (off) => margin + (off / most) * (width - margin - 110);
    const y = (bleu) => 10 + (1 - bleu / 100) * (height - 50);
    const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "BLEU by the number of heads that are off" });
    for (const bleu of [0, 50, 100]) drawing.append(svg("line", { class: "grid", x1: margin, x2: x(most), y1: y(bleu), y2: y(bleu) }), svg("text", { x: margin - 6, y: y(bleu) + 4, "text-anchor": "end" }, bleu));
    for (const [key, mark, name, at] of [["least", "c1", "least first", 0.55], ["most", "c2", "most first", 0.25]]) {
      drawing.append(svg("polyline", { class: mark, points: record.chart.map((row) => `${x(row.off)},${y(row[key])}`).join(" ") }), svg("text", { class: mark, x: x(most) + 8, y: y(100 * at) }, name));
      for (const row of record.chart) drawing.append(svg("circle", { class: mark, cx: x(row.off), cy: y(row[key]), r: 3 }, svg("title", {}, `${row.off} off: BLEU ${number(row[key], 1)}`)));
    }
    for (const { off } of record.chart) if (off % 4 === 0 || off === most) drawing.append(svg("text", { x: x(off), y: height - 22, "text-anchor": "middle" }, off));
    drawing.append(svg("text", { class: "quiet", x: (margin + x(most)) / 2, y: height - 4, "text-anchor": "middle" }, "heads off"));
    return drawing;
  }
}
