// A picture and the words that were written about it: a word that is pointed at, or gone to with the arrow keys, lights up where the
// model looked. The same light as that of inspection/saliency_overlay.py.
//
// showLit(root, record, options): record is { words, weights: [words][rows][columns] or null, probabilities, image: the canvas with
//   the picture, veil: one that lies over it }; options are those of ribbons.js, and it gives back what they give.

import { chips, invite, pointing } from "./chips.js";
import { colours, drawn, element, percent, picture } from "./elements.js";
import { roving } from "./roving.js";

const [SHADE, DARKEST] = [[10, 14, 24], 0.82]; // what lies over the dark parts, and how much of it at most
const [GLOW, BRIGHTEST] = [[255, 214, 90], 0.12]; // and over the bright ones; on a dark picture nothing else would be seen
const LEAST = 0.1; // of the light in a ninth of the picture that is told of
const [UP_DOWN, ACROSS] = [["top", "", "bottom"], ["left", "", "right"]];
const PANEL = 150; // pixels of a panel's longer side in a saved picture
const ROW = 5; // panels
const LONG = 18; // letters of a word, of which no more are drawn
const BLIND = "This model has no attention: it reads the image as a whole.";

export function showLit(root, record, options = {}) {
  let [weights, step, verb] = [record.weights, null, "attends to"];
  const { box, words, showStep: show } = chips("below", record.words, { ...record, light, choose: (i) => options.choose?.("below", i) });
  const said = element("p", { className: "said", ariaLive: "polite" });
  const group = element("div", { className: "ribbons told", role: "group", ariaLabel: "words and attention" }, box);
  root.replaceChildren(group, said);
  roving([words]);
  light(null);
  return { update, light, lightBelow: light, showStep, picture: panels, words: { below: words } };

  // Show other weights for the same words; verbs: what the words do, if they did not look.
  function update({ weights: other, verbs = ["attends to"] }) {
    [weights, verb] = [other, verbs[0]];
    light(null);
  }

  // Show where it looked for one word, none of those after it; null shows all words and lights up nothing.
  function showStep(index) {
    step = index;
    show(index);
    light(null);
  }

  function light(i) {
    const at = i ?? step;
    words.forEach((one, w) => one.classList.toggle("chosen", w === at));
    const pen = record.veil.getContext("2d");
    pen.clearRect(0, 0, record.veil.width, record.veil.height);
    if (at !== null && weights) shine(pen, weights[at]);
    if (at === null) invite(said, hint());
    else said.textContent = tell(at);
  }

  function hint() {
    if (!words.length) return "The caption is empty.";
    const what = verb === "attends to" ? "where the model looks" : `what it ${verb}`;
    const first = weights ? `${pointing()}: the image shows ${what}.` : BLIND;
    return `${first} The bar under a word shows its probability. ${options.hint ?? ""}`;
  }

  function tell(i) {
    const sure = `${record.words[i]} (probability ${percent(record.probabilities[i])})`;
    if (!weights) return sure;
    const found = places(weights[i]).filter(([, share]) => share >= LEAST).slice(0, 3);
    return `${sure} ${verb} ${found.map(([name, share]) => `${name} ${percent(share)}`).join(", ") || "nothing in particular"}`;
  }

  // The figure of Xu et al. 2015: the picture as it is, then lit for each word.
  function panels() {
    const colour = colours(root, "paper", "ink", "soft");
    const factor = PANEL / Math.max(record.image.width, record.image.height);
    const [wide, high] = [record.image.width, record.image.height].map((side) => Math.max(1, Math.round(factor * side)));
    const [across, down] = [Math.max(wide, PANEL * 0.7) + 12, high + 48];
    const all = [null, ...record.words.keys()].map((i, n) => {
      const [x, y] = [12 + (n % ROW) * across, 12 + Math.floor(n / ROW) * down];
      const place = { x: x + wide / 2, "text-anchor": "middle" };
      const image = drawn("image", { x, y: y + 34, width: wide, height: high, href: panel(i, 2 * wide, 2 * high) });
      if (i === null) return drawn("g", {}, image);
      const word = drawn("text", { ...place, y: y + 14, fill: colour.ink, "font-size": 14 }, cut(record.words[i]));
      const note = drawn("text", { ...place, y: y + 28, fill: colour.soft, "font-size": 11 }, percent(record.probabilities[i]));
      return drawn("g", {}, word, note, image);
    });
    return picture(12 + Math.min(ROW, all.length) * across, 12 + Math.ceil(all.length / ROW) * down, colour.paper, ...all);
  }

  function panel(i, width, height) {
    const canvas = element("canvas", { width, height });
    const pen = canvas.getContext("2d");
    pen.drawImage(record.image, 0, 0, width, height);
    if (i !== null && weights) shine(pen, weights[i]);
    return canvas.toDataURL("image/jpeg", 0.85);
  }
}

function cut(word) {
  return word.length > LONG ? `${word.slice(0, LONG - 1)}…` : word;
}

// Darken what a pen draws on where weights [rows][columns] are small.
function shine(pen, weights) {
  const flat = weights.flat();
  const most = flat.reduce((one, other) => Math.max(one, other), 1e-9);
  const cells = element("canvas", { width: weights[0].length, height: weights.length });
  for (const [colour, opacity] of [[SHADE, (x) => DARKEST * (1 - x)], [GLOW, (x) => BRIGHTEST * x * x]]) {
    const pixels = new ImageData(cells.width, cells.height);
    flat.forEach((weight, i) => pixels.data.set([...colour, Math.round(255 * opacity(weight / most))], 4 * i));
    cells.getContext("2d").putImageData(pixels, 0, 0);
    pen.drawImage(cells, 0, 0, pen.canvas.width, pen.canvas.height); // made larger, it is smoothed
  }
}

// The ninths of a picture by name, and their shares of the weights [rows][columns], the greatest first.
function places(weights) {
  const shares = new Map();
  weights.forEach((row, r) => row.forEach((weight, c) => {
    const [down, across] = [third(r, weights.length), third(c, row.length)];
    const name = [UP_DOWN[down], ACROSS[across]].filter(Boolean).join(" ") || "middle";
    shares.set(name, (shares.get(name) ?? 0) + weight);
  }));
  return [...shares].sort((a, b) => b[1] - a[1]);
}

// Which third of a line the middle of a cell lies in.
function third(i, cells) {
  return Math.floor(((2 * i + 1) * 3) / (2 * cells));
}
