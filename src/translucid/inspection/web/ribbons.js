// Words, words below them, and between them ribbons as wide as the weights. They are there at rest; a word that is pointed at, or gone
// to with the arrow keys, shows its own ribbons alone, with percentages. Where the lines are too long they stand upright.
//
// record: { above: [words], below: [words], weights: [below][above], probabilities: [below] or null, languages: [code, code],
//   verbs: [what a word below did, what was done to a word above], scale: what its per cents are of, marked: { above: Set, below: Set } or null,
//   unknown: { above: indices, below: indices } or nothing, context: { above, below }: how many of the first words are of previous
//   sentences, or nothing,
//   prefix: { words, weights: [below][words] }: a third line, below the others, which the words of the middle line also come from,
//   shares: [below], what part of each comes from the words above; null where it is undefined }
// options: { choose(side, index): what Enter or a click does, hint: what is said of that }

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
  const { prefix, shares: parts } = record;
  const others = prefix ? ["above", "prefix"] : ["above"]; // the lines whose ribbons lead to the words below
  const texts = { above: record.above, below: record.below, prefix: prefix?.words };
  let [lit, step, upright] = [null, null, false];
  const [from, into] = record.languages ?? ["", ""];
  const line = (side, lang, probabilities) => chips(side, texts[side], {
    lang, probabilities, marked: record.marked?.[side], unknown: record.unknown?.[side], context: record.context?.[side],
    light: (i) => light(i === null ? null : { side, i }),
    choose: (i) => options.choose?.(side, i),
  });
  const lines = { above: line("above", from), below: line("below", into, record.probabilities) };
  if (prefix) lines.prefix = line("prefix", into);
  parts?.forEach((part, i) => { lines.below.words[i].classList.add("parted"); lines.below.words[i].style.setProperty("--part", part ?? 0); });
  const gaps = Object.fromEntries(others.map((side) => [side, drawn("svg", { class: `gap of-${side}`, "aria-hidden": "true" })]));
  const said = element("p", { className: "said", id: `said-${number}`, ariaLive: "polite" });
  const box = element("div", { className: prefix ? "ribbons prefixed" : "ribbons", role: "group", ariaLabel: "words and attention" });
  box.setAttribute("aria-describedby", said.id);
  box.append(lines.above.box, gaps.above, lines.below.box, ...(prefix ? [gaps.prefix, lines.prefix.box] : []));
  root.replaceChildren(box, said);
  roving(Object.values(lines).map(({ words }) => words), () => upright);
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
    for (const side of Object.keys(lines)) {
      lines[side].words.forEach((one, i) => {
        one.classList.toggle("chosen", at?.side === side && at.i === i);
        one.style.removeProperty("--weight");
        lines[side].shares[i].textContent = side === "below" && parts ? share(i) : "";
      });
    }
    box.classList.toggle("lit", at !== null);
    for (const side of others) {
      for (const ribbon of gaps[side].children) {
        const own = (at?.side === "below" && Number(ribbon.dataset.t) === at.i) || (at?.side === side && Number(ribbon.dataset.s) === at.i);
        ribbon.classList.toggle("on", own);
        ribbon.classList.toggle("later", step !== null && Number(ribbon.dataset.t) > step);
      }
    }
    if (at === null) return tell(null);
    const connected = at.side === "below"
      ? others.flatMap((side) => weightsOf(side)[at.i].map((weight, i) => ({ side, i, weight })))
      : weightsOf(at.side).map((row, i) => ({ side: "below", i, weight: row[at.i] }));
    for (const { side, i, weight } of connected) {
      if (side === "below" && step !== null && i > step) continue;
      lines[side].words[i].style.setProperty("--weight", Math.max(0, Math.min(1, weight)));
      if (Math.abs(weight) >= 0.01) lines[side].shares[i].textContent = percent(weight);
    }
    return tell(at, connected);
  }

  function weightsOf(side) {
    return side === "prefix" ? prefix.weights : weights;
  }

  function share(i) {
    return parts[i] === null ? "?" : percent(parts[i]);
  }

  function tell(at, connected) {
    if (at === null) {
      const bar = record.probabilities && !parts ? "The bar under a word shows its probability. " : "";
      const legend = parts ? "Blue ribbons come from the source, orange ones from the translation so far. Under each word: the part that comes from the source. " : "";
      invite(said, `${pointing()} to see what it ${verbs[0]}, in per cent${scale}. ${bar}${legend}${options.hint ?? ""}`);
      return;
    }
    const best = connected.filter(({ weight }) => weight >= 0.05).sort((a, b) => b.weight - a.weight).slice(0, 3);
    const list = best.map(({ side, i, weight }) => `${isolated(texts[side][i])}${side === "prefix" ? " (translation so far)" : ""} ${percent(weight)}`).join(", ");
    const sure = at.side === "below" && record.probabilities ? ` (probability ${percent(record.probabilities[at.i])})` : "";
    const part = at.side === "below" && parts ? `; from the source ${parts[at.i] === null ? "an undefined part" : percent(parts[at.i])}` : "";
    const text = isolated(texts[at.side][at.i]);
    const sign = SIGNS[text] ?? (record.unknown?.[at.side]?.includes(at.i) ? UNKNOWN : "");
    said.textContent = `${sign ? `${text} (${sign})` : text}${sure} ${verbs[at.side === "below" ? 0 : 1]} ${list || "nothing in particular"}${part}`;
  }

  // Stand upright if a line does not fit, then draw.
  function lay() {
    box.classList.remove("upright");
    upright = Object.values(lines).some(({ box: one }) => one.scrollWidth > box.clientWidth + 1);
    box.classList.toggle("upright", upright);
    draw();
    light(lit);
  }

  function measured(side, gap) {
    const origin = gap.getBoundingClientRect();
    return lines[side].words.map((one) => {
      const { left, width, top, height } = one.getBoundingClientRect();
      return upright ? { at: top + height / 2 - origin.top, size: height } : { at: left + width / 2 - origin.left, size: width };
    });
  }

  // The ribbons between the words below and those of another line.
  function shapes(side) {
    const gap = gaps[side];
    const { width, height } = gap.getBoundingClientRect();
    const least = record.below.length * texts[side].length > 400 ? 2 * LEAST : LEAST;
    return bands(weightsOf(side), measured(side, gap), measured("below", gap), MOST, least)
      .sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight))
      .map((band) => {
        const across = side === "prefix" ? { from: band.into, into: band.from } : band; // the line of the prefix is on the other side
        return { ...band, side, d: outline(across, upright ? width : height, upright) };
      });
  }

  function draw() {
    for (const side of others) {
      gaps[side].replaceChildren(...shapes(side).map(({ s, t, weight, d }) => {
        const ribbon = drawn("path", { d, class: `ribbon${weight < 0 || side === "prefix" ? " against" : ""}`, "data-s": s, "data-t": t });
        ribbon.style.setProperty("--weight", Math.min(1, Math.abs(weight)).toFixed(3));
        return ribbon;
      }));
    }
  }

  // The same as a picture that stands by itself.
  function whole() {
    const colour = colours(box, "paper", "ink", "soft", "for", "against", "doubt");
    const outer = box.getBoundingClientRect();
    const ribbons = others.map((side) => {
      const inner = gaps[side].getBoundingClientRect();
      const paths = shapes(side).map(({ weight, d }) => drawn("path", {
        d, fill: `rgb(${weight < 0 || side === "prefix" ? colour.against : colour.for})`, "fill-opacity": (0.15 + 0.6 * Math.min(1, Math.abs(weight))).toFixed(3),
      }));
      return drawn("g", { transform: `translate(${inner.left - outer.left} ${inner.top - outer.top})` }, ...paths);
    });
    const words = Object.keys(lines).flatMap((side) => lines[side].words.flatMap((one, i) => {
      const { left, width, top, height } = one.getBoundingClientRect();
      const [x, y] = [left - outer.left, top - outer.top];
      const text = drawn("text", {
        x: x + width / 2, y: y + height / 2, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 15,
        fill: one.matches(".sign, .context") ? colour.soft : colour.ink,
      }, texts[side][i]);
      if (side !== "below") return [text];
      const bar = (from, p, fill) => drawn("rect", { x: x + 6 + (width - 12) * from, y: y + height - 3, width: Math.max(0, (width - 12) * p), height: 3, fill });
      if (parts) return [text, bar(0, parts[i] ?? 0, `rgb(${colour.for})`), bar(parts[i] ?? 0, parts[i] === null ? 0 : 1 - parts[i], `rgb(${colour.against})`)];
      const p = record.probabilities?.[i];
      return p === undefined ? [text] : [text, bar(0, p, p < UNSURE ? colour.doubt : colour.soft)];
    }));
    const moved = drawn("g", { transform: "translate(12 12)" }, ...ribbons, ...words);
    return picture(outer.width + 24, outer.height + 24, colour.paper, moved);
  }
}

// The shapes of ribbons between two lines of words.
//
// weights: [below][above]; above, below: for each word { at, size } along the line. A ribbon is as wide as its weight where it comes
// to the word below, `most` for a weight of 1; side by side, in the order of the words above, they do not cover each other there.
// Where many come from one word above they are pressed together to its size.
function bands(weights, above, below, most, least) {
  const found = [];
  weights.forEach((row, t) => {
    const total = Math.max(1, sum(row.map(Math.abs)));
    const unit = Math.min(most, below[t].size) / total;
    row.forEach((weight, s) => { if (Math.abs(weight) >= least) found.push({ s, t, weight, wide: Math.abs(weight) * unit }); });
  });
  place(found, below, "t", "into", (band) => above[band.s].at, false);
  place(found, above, "s", "from", (band) => below[band.t].at, true);
  return found;
}

// Give each band its two edges at its word, side by side.
function place(found, words, side, end, order, press) {
  words.forEach(({ at, size }, i) => {
    const own = found.filter((band) => band[side] === i).sort((a, b) => order(a) - order(b));
    const total = sum(own.map((band) => band.wide));
    const scale = press ? Math.min(1, size / Math.max(total, 1e-9)) : 1;
    let edge = at - (scale * total) / 2;
    for (const band of own) {
      band[end] = [edge, edge + scale * band.wide];
      edge += scale * band.wide;
    }
  });
}

// The outline of a band across a gap, downwards or, `upright`, from left to right.
function outline({ from, into }, gap, upright) {
  const point = (along, across) => (upright ? `${round(across)} ${round(along)}` : `${round(along)} ${round(across)}`);
  const curve = (a, b, start, end) => `${point(a, (start + end) / 2)}, ${point(b, (start + end) / 2)}, ${point(b, end)}`;
  return `M${point(from[0], 0)} C${curve(from[0], into[0], 0, gap)} L${point(into[1], gap)} C${curve(into[1], from[1], gap, 0)} Z`;
}

function round(value) {
  return Math.round(10 * value) / 10;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
