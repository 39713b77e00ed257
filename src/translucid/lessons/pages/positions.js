// Lesson 5: a position to drag, the waves it is read off, the clocks they make, and how like other positions it is.
import { el, svg, number } from "./dom.js";
import { dot } from "./maths.js";
import { choice, hint, room, said, slider, strip } from "./parts.js";

const LAST = 60;
const WAVES = [[Math.sin, "c1", "sin"], [Math.cos, "c2", "cos"]];
const CLOCKS = [0, 4, 8, 12, 16, 24];
const [HEIGHT, LEFT] = [160, 34];
const [TOP, FOOT] = [10, 26]; // pixels above and below the curves; the numbers of the positions stand below

export function positions(root, { width }) {
  const across = room(root);
  const angle = (p, i) => p / 10000 ** (2 * i / width);
  const vector = (p) => Array.from({ length: width }, (_, k) => (k % 2 ? Math.cos : Math.sin)(angle(p, k >> 1)));
  const all = Array.from({ length: LAST + 1 }, (_, p) => vector(p));
  const x = (p) => LEFT + (p / LAST) * (across - LEFT - 10);
  let pair = 4;
  const place = slider("position p", { min: 0, max: LAST, value: 10 }, () => draw());
  const shift = slider("shift k", { min: 0, max: 20, value: 3 }, () => draw());
  const pairs = choice("pair i", CLOCKS.map((i) => ({ label: String(i), value: i })), (i) => { pair = i; draw(); }, { chosen: CLOCKS.indexOf(pair) });
  const row = el("div", { class: "strips" });
  const waves = svg("svg", { class: "chart drag", viewBox: `0 0 ${across} ${HEIGHT}`, role: "img", "aria-label": "sine and cosine of the chosen pair by position" });
  const title = el("h3", {});
  const values = el("p", { class: "legend" });
  const products = el("p", { class: "legend" });
  const clocks = el("div", { class: "clocks" });
  const likeness = svg("svg", { class: "chart drag", viewBox: `0 0 ${across} ${HEIGHT}`, role: "img", "aria-label": "dot product of this position with every other" });
  const told = said();
  root.append(el("div", { class: "knobs" }, place.node, shift.node, pairs.node), row,
    title, values, waves,
    el("h3", {}, "The same pairs as clocks"), clocks, told,
    el("h3", {}, "P[p] · P[q]: similarity of positions"), products, likeness,
    hint("Drag in the pictures, or use the sliders. The curve moves with p and keeps its shape: it depends only on the distance q − p."));
  for (const drawing of [waves, likeness]) {
    const follow = (event) => {
      const box = drawing.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * across;
      place.value = Math.max(0, Math.min(LAST, Math.round(((at - LEFT) / (across - LEFT - 10)) * LAST)));
      draw();
    };
    drawing.addEventListener("pointerdown", (event) => { drawing.setPointerCapture(event.pointerId); follow(event); });
    drawing.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
  }
  draw();
  return () => {};

  function draw() {
    const [p, k] = [place.value, shift.value];
    row.replaceChildren(el("span", { class: "name" }, `P[${p}]`), strip(all[p], 1, `position ${p}: ${width} numbers`, (j) => `dimension ${j}: ${number(all[p][j], 3)}`),
      el("span", { class: "name" }, `P[${p + k}]`), strip(vector(p + k), 1, `position ${p + k}: ${width} numbers`));
    const y = (value) => TOP + ((1 - value) / 2) * (HEIGHT - TOP - FOOT);
    const fine = Array.from({ length: 4 * LAST + 1 }, (_, q) => q / 4);
    const dots = Array.from({ length: LAST + 1 }, (_, q) => q);
    waves.replaceChildren(...axis(y, [-1, 0, 1]),
      ...WAVES.flatMap(([f, mark]) => [
        svg("polyline", { class: `${mark} thin`, points: fine.map((q) => `${x(q)},${y(f(angle(q, pair)))}`).join(" ") }),
        ...dots.map((q) => svg("circle", { class: mark, cx: x(q), cy: y(f(angle(q, pair))), r: q === p ? 6 : 1.6 })),
      ]), svg("line", { class: "here", x1: x(p), x2: x(p), y1: TOP, y2: HEIGHT - FOOT }));
    values.replaceChildren(...WAVES.map(([f, mark, name]) => el("span", { class: mark }, `● ${name} ${number(f(angle(p, pair)), 3)}`)));
    title.textContent = `Two waves of the table: dimensions ${2 * pair} and ${2 * pair + 1}`;
    clocks.replaceChildren(...CLOCKS.map((i) => clock(i, p, k)));
    const turn = angle(k, pair);
    const [s, c] = [Math.sin(angle(p, pair)), Math.cos(angle(p, pair))];
    told.textContent = `Pair ${pair}: from p to p + k the hand turns by ${number(turn, 3)} radians, for every p. (sin, cos) goes from (${number(s, 3)}, ${number(c, 3)}) to (${number(s * Math.cos(turn) + c * Math.sin(turn), 3)}, ${number(c * Math.cos(turn) - s * Math.sin(turn), 3)}).`;
    const top = width / 2;
    const level = (value) => HEIGHT - FOOT - ((value + 0.1 * top) / (1.1 * top)) * (HEIGHT - TOP - FOOT);
    const marked = [[p, "p", "c3"], [p + k, "p + k", "c3 shifted"]];
    likeness.replaceChildren(...axis(level, [0, top]), svg("polyline", { class: "c3", points: dots.map((q) => `${x(q)},${level(dot(all[p], all[q]))}`).join(" ") }),
      ...marked.filter(([q]) => q <= LAST).reverse().map(([q, , mark]) => svg("circle", { class: mark, cx: x(q), cy: level(dot(all[p], all[q])), r: 5 })));
    products.replaceChildren(...marked.map(([q, name, mark]) => el("span", { class: "c3" }, `${mark === "c3" ? "●" : "○"} q = ${name}: ${number(dot(all[p], vector(q)))}`)));
  }

  function axis(y, levels) {
    return [...levels.flatMap((value) => [svg("line", { class: "grid", x1: LEFT, x2: across - 10, y1: y(value), y2: y(value) }), svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, number(value, 0))]),
      ...[0, 20, 40, 60].map((q) => svg("text", { class: "quiet", x: x(q), y: HEIGHT - 6, "text-anchor": "middle" }, q))];
  }

  function clock(i, p, k) {
    const hand = (q, mark) => svg("line", { class: mark, x1: 0, y1: 0, x2: 40 * Math.sin(angle(q, i)), y2: -40 * Math.cos(angle(q, i)) });
    return el("figure", { class: i === pair ? "chosen" : "" }, svg("svg", { viewBox: "-50 -50 100 100", role: "img", "aria-label": `pair ${i}: the hand turns by ${number(angle(k, i), 3)}` },
      svg("circle", { class: "face", r: 44 }), hand(p + k, "after"), hand(p, "hand")),
    el("figcaption", {}, `i = ${i}`, el("br"), `turned by ${number(angle(k, i), 2)}`));
  }
}
