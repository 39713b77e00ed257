// Words, words below them, and between them ribbons as wide as the weights. They are there at rest; a word that is pointed at, or gone
// to with the arrow keys, shows its own ribbons alone, with percentages. Where the lines are too long they stand upright.
//
// record: { above: [words], below: [words], weights: [below][above], probabilities: [below] or null, languages: [code, code],
//   verbs: [what a word below did, what was done to a word above], scale: what its per cents are of, marked: { above: Set, below: Set } or null,
//   unknown: { above: indices, below: indices } or nothing }
// options: { choose(side, index): what Enter or a click does, hint: what is said of that }

import { bands, outline } from "./bands.js";
import { chips, invite, pointing, SIGNS, UNKNOWN, UNSURE } from "./chips.js";
import { colours, drawn, element, isolated, percent, picture } from "./elements.js";
import { roving } from "./roving.js";

const LEAST = 0.02; // of a weight that is drawn
const MOST = 30; // pixels of a ribbon of weight 1
const VERBS = ["attends to", "is attended to by"];
let ribbonViews = 0; // so that every view has names of its own

export function showRibbons(root, record, options = {}) {
  const number = ++ribbonViews;
  let { weights, verbs = VERBS, scale = "" } = record;
  let [lit, step, upright] = [null, null, false];
  const [from, into] = record.languages ?? ["", ""];
  const line = (side, lang, probabilities) => chips(side, record[side], {
    lang, probabilities, marked: record.marked?.[side], unknown: record.unknown?.[side],
    light: (i) => light(i === null ? null : { side, i }),
    choose: (i) => options.choose?.(side, i),
  });
  const lines = { above: line("above", from), below: line("below", into, record.probabilities) };
  const gap = drawn("svg", { class: "gap", "aria-hidden": "true" });
  const said = element("p", { className: "said", id: `said-${number}`, ariaLive: "polite" });
  const box = element("div", { className: "ribbons", role: "group", ariaLabel: "words and attention" });
  box.setAttribute("aria-describedby", said.id);
  box.append(lines.above.box, gap, lines.below.box);
  root.replaceChildren(box, said);
  roving([lines.above.words, lines.below.words], () => upright);
  new ResizeObserver(lay).observe(box);
  lay();
  light(null);
  return { update, light, lightBelow: (i) => light({ side: "below", i }), showStep, picture: whole, words: { above: lines.above.words, below: lines.below.words } };

  // Show other weights between the same words; `said` is of them.
  function update(next) {
    ({ weights, verbs = VERBS, scale = "" } = next);
    draw();
    light(lit);
  }

  // Show what is looked at for one word below, none of those after it; null shows all.
  function showStep(index) {
    step = index;
    lines.below.showStep(step);
    light(null);
  }

  function light(what) {
    lit = what;
    const at = what ?? (step === null ? null : { side: "below", i: step });
    for (const side of ["above", "below"]) {
      lines[side].words.forEach((one, i) => {
        one.classList.toggle("chosen", at?.side === side && at.i === i);
        one.style.removeProperty("--weight");
        lines[side].shares[i].textContent = "";
      });
    }
    box.classList.toggle("lit", at !== null);
    for (const ribbon of gap.children) {
      const own = at !== null && Number(ribbon.dataset[at.side === "below" ? "t" : "s"]) === at.i;
      ribbon.classList.toggle("on", own);
      ribbon.classList.toggle("later", step !== null && Number(ribbon.dataset.t) > step);
    }
    if (at === null) return tell(null);
    const other = at.side === "below" ? "above" : "below";
    const own = at.side === "below" ? weights[at.i] : weights.map((row) => row[at.i]);
    own.forEach((weight, i) => {
      if (other === "below" && step !== null && i > step) return;
      lines[other].words[i].style.setProperty("--weight", Math.max(0, Math.min(1, weight)));
      if (Math.abs(weight) >= 0.01) lines[other].shares[i].textContent = percent(weight);
    });
    return tell(at, own, other);
  }

  function tell(at, own, other) {
    if (at === null) {
      const bar = record.probabilities ? "The bar under a word shows its probability. " : "";
      invite(said, `${pointing()} to see what it ${verbs[0]}, in per cent${scale}. ${bar}${options.hint ?? ""}`);
      return;
    }
    const best = own.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w >= 0.05);
    const list = best.map(([weight, i]) => `${isolated(record[other][i])} ${percent(weight)}`).join(", ");
    const sure = at.side === "below" && record.probabilities ? ` (probability ${percent(record.probabilities[at.i])})` : "";
    const text = isolated(record[at.side][at.i]);
    const sign = SIGNS[text] ?? (record.unknown?.[at.side].includes(at.i) ? UNKNOWN : "");
    said.textContent = `${sign ? `${text} (${sign})` : text}${sure} ${verbs[at.side === "below" ? 0 : 1]} ${list || "nothing in particular"}`;
  }

  // Stand upright if a line does not fit, then draw.
  function lay() {
    box.classList.remove("upright");
    upright = [lines.above.box, lines.below.box].some((one) => one.scrollWidth > box.clientWidth + 1);
    box.classList.toggle("upright", upright);
    draw();
    light(lit);
  }

  function measured(side) {
    const origin = gap.getBoundingClientRect();
    return lines[side].words.map((one) => {
      const { left, width, top, height } = one.getBoundingClientRect();
      return upright ? { at: top + height / 2 - origin.top, size: height } : { at: left + width / 2 - origin.left, size: width };
    });
  }

  function shapes() {
    const { width, height } = gap.getBoundingClientRect();
    const least = record.below.length * record.above.length > 400 ? 2 * LEAST : LEAST;
    return bands(weights, measured("above"), measured("below"), MOST, least)
      .sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight))
      .map((band) => ({ ...band, d: outline(band, upright ? width : height, upright) }));
  }

  function draw() {
    gap.replaceChildren(...shapes().map(({ s, t, weight, d }) => {
      const ribbon = drawn("path", { d, class: `ribbon${weight < 0 ? " against" : ""}`, "data-s": s, "data-t": t });
      ribbon.style.setProperty("--weight", Math.min(1, Math.abs(weight)).toFixed(3));
      return ribbon;
    }));
  }

  // The same as a picture that stands by itself.
  function whole() {
    const colour = colours(box, "paper", "ink", "soft", "for", "against", "doubt");
    const outer = box.getBoundingClientRect();
    const inner = gap.getBoundingClientRect();
    const ribbons = shapes().map(({ weight, d }) => drawn("path", {
      d, fill: `rgb(${weight < 0 ? colour.against : colour.for})`, "fill-opacity": (0.15 + 0.6 * Math.min(1, Math.abs(weight))).toFixed(3),
    }));
    const texts = ["above", "below"].flatMap((side) => lines[side].words.flatMap((one, i) => {
      const { left, width, top, height } = one.getBoundingClientRect();
      const [x, y] = [left - outer.left, top - outer.top];
      const text = drawn("text", {
        x: x + width / 2, y: y + height / 2, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 15,
        fill: one.classList.contains("sign") ? colour.soft : colour.ink,
      }, record[side][i]);
      const p = side === "below" ? record.probabilities?.[i] : undefined;
      if (p === undefined) return [text];
      const bar = drawn("rect", { x: x + 6, y: y + height - 3, width: Math.max(0, (width - 12) * p), height: 2, fill: p < UNSURE ? colour.doubt : colour.soft });
      return [text, bar];
    }));
    const place = drawn("g", { transform: `translate(${inner.left - outer.left} ${inner.top - outer.top})` }, ...ribbons);
    const moved = drawn("g", { transform: "translate(12 12)" }, place, ...texts);
    return picture(outer.width + 24, outer.height + 24, colour.paper, moved);
  }
}
