// The tab "Pass": one pass through the whole model as a figure, from the pieces of the text to the probabilities of the next word.
//
// All numbers are those that the engine computes for this sentence. Parts of the model can be switched off to see how the
// translation changes, and a translation can be given (teacher forcing).

import { createSwitch, element, formatPercent } from "./elements.js";
import { createBox, format } from "./pass_box.js";
import { createParts } from "./pass_boxes.js";
import { showPlayback } from "./playback.js";

const HINT =
  "Each box shows what the model computes: a row for each piece, a column for each dimension; blue is positive, orange negative. " +
  "Open a box to see its numbers. Choose a piece to see those of its row.";

// Show the figure in the panel of an inspector.
//
// translator: a WebTranslator
// place: what the link to the figure says, { step, points: the names of open boxes, with their heads, onChange() }
export function showPass(inspector, translator, place) {
  new Pass(inspector, translator, place);
}

class Pass {
  /** @type {Record<string, any[]>} */
  points; // the rows that the engine computed, by the names of points
  /** @type {number[]} */
  logProbs; // of the pieces of the translation
  /** @type {HTMLElement[]} */
  columns = []; // the elements of the parts

  constructor(inspector, translator, place) {
    this.inspector = inspector;
    this.translator = translator;
    this.place = place;
    this.parts = createParts(translator.model.options);
    this.view = { open: new Set(), heads: new Map(), keys: new Map() };
    this.openBoxes(place.points);
    this.off = new Set(); // the names of points whose rows are 0
    this.isScaled = true; // whether scores are divided by √d
    this.row = 0; // of the source
    this.step = place.step;
    this.ids = translator.encode(inspector.sentence.source_text);
    this.createElements();
    this.compute();
  }

  // Open the boxes that a link names; points that the model lacks are ignored.
  openBoxes(points) {
    const boxes = this.parts.flatMap(({ groups }) => groups.flatMap((group) => group.boxes));
    for (const point of points) {
      const [name, head] = point.split(".head.");
      const box = boxes.find((candidate) => candidate.point === name);
      if (!box) continue;
      this.view.open.add(name);
      if (/^\d+$/.test(head) && Number(head) < box.heads) this.view.heads.set(name, Number(head));
    }
  }

  createElements() {
    const forced = element("input", { type: "text", maxLength: 300 });
    this.forced = forced;
    forced.lang = this.inspector.content.languages[1];
    forced.addEventListener("change", () => this.compute());
    const label = element("label", { className: "forced" }, "Teacher forcing: your translation ", forced);
    const scale = createSwitch("switch of the scale 1/√d", true, (isOn) => {
      this.isScaled = isOn;
      this.compute();
    });
    const isTransformer = this.translator.model.options.kind === "transformer";
    const scaleLabel = element("span", { className: "scale" }, "Scale 1/√d ", scale);
    const toolbar = element("div", { className: "toolbar" }, label, ...(isTransformer ? [scaleLabel] : []));
    this.summary = element("p", { className: "pass-summary", ariaLive: "polite" });
    this.controls = element("div");
    this.figure = element("div", { className: "pass" });
    const hint = element("p", { className: "note", textContent: HINT });
    this.inspector.panel.replaceChildren(hint, toolbar, this.summary, this.controls, this.figure);
  }

  // Compute all rows anew, and show them.
  compute() {
    const { translator, ids, off, isScaled } = this;
    const forced = this.forced.value.trim();
    const isChanged = off.size > 0 || !isScaled;
    const at = isChanged ? changed(off, isScaled, translator.model.options) : unchanged;
    const { end } = translator.search;
    this.tokens = this.inspector.sentence.tokens;
    if (forced) this.tokens = [...translator.target.encode(forced), end];
    else if (isChanged) this.tokens = translator.translate(ids, at).tokens;
    ({ points: this.points, logProbs: this.logProbs } = translator.inspect(ids, this.tokens, at));
    this.summary.textContent = this.summarize(forced, isChanged);
    this.drawnSides = ["source", "target"];
    this.inspector.playback?.stop();
    this.inspector.playback = showPlayback(this.controls, this.tokens.length, {
      first: Math.min(this.step, this.tokens.length - 1),
      describe: (step) => this.describe(step, forced),
      onStep: (step) => {
        this.step = step;
        this.draw(this.drawnSides);
        this.drawnSides = ["target"]; // a step does not change the encoder
      },
    });
  }

  summarize(forced, isChanged) {
    const loss = -this.logProbs.reduce((sum, value) => sum + value, 0) / this.logProbs.length;
    if (forced)
      return `Loss of your translation: ${format(loss)} nats for each piece. The decoder reads your pieces, not its own.`;
    if (!isChanged) return "";
    const text = this.translator.target.decode(this.tokens);
    if (text === this.inspector.sentence.text) return "The translation stays the same.";
    return `With this change, the model writes: ${text || "(nothing)"}`;
  }

  describe(step, forced) {
    const pieces = this.read(step + 1).map((id) => label(this.translator.target, id));
    const next = `“${label(this.translator.target, this.tokens[step])}”`;
    const probability = formatPercent(Math.exp(this.logProbs[step]));
    const effect = forced
      ? `your next piece ${next} has a probability of ${probability}`
      : `it writes ${next} (${probability})`;
    return `Word piece ${step + 1} of ${this.tokens.length}: after “${pieces.join(" ")}”, ${effect}.`;
  }

  // Return the ids of the first pieces that the decoder reads.
  read(count) {
    return [this.translator.search.start, ...this.tokens].slice(0, count);
  }

  // Draw the parts of the figure on these sides. The button that has the focus keeps it.
  draw(sides = ["source", "target"]) {
    const focused = /** @type {Document} */ (this.figure.getRootNode()).activeElement;
    const point = focused?.closest(".pass-box")?.getAttribute("data-point");
    const buttons = () => [...this.figure.querySelectorAll(`[data-point="${point}"] button`)];
    const index = buttons().indexOf(focused);
    const passes = this.passes();
    this.columns = this.parts.map((part, i) =>
      sides.includes(part.side) ? this.column(part, passes) : this.columns[i],
    );
    this.figure.replaceChildren(...this.columns);
    /** @type {any} */ (buttons()[index])?.focus();
    const { open, heads } = this.view;
    this.place.step = this.step;
    this.place.points = [...open].map((name) => (heads.has(name) ? `${name}.head.${heads.get(name)}` : name));
    this.place.onChange();
  }

  // Return what the boxes show of each side, see pass_box.js.
  passes() {
    const { points, tokens, translator, step } = this;
    const sourcePieces = this.ids.map((id) => label(translator.source, id));
    const common = { points, tokens, pieceOf: (id) => label(translator.target, id) };
    const read = this.read(step + 1);
    const readPieces = read.map(common.pieceOf);
    return {
      source: { ...common, side: "source", pieces: sourcePieces, ids: this.ids, row: this.row },
      target: { ...common, side: "target", pieces: readPieces, ids: read, row: step, points: this.rowsUpTo(step + 1) },
    };
  }

  column({ title, side, groups }, passes) {
    const pass = {
      ...passes[side],
      keyPieces: (point) => passes[point.endsWith(".cross") ? "source" : side].pieces,
      scoreTerms: (attention, key) => this.scoreTerms(attention, key),
    };
    const actions = {
      isOff: (name) => this.off.has(name),
      onSwitch: (name) => this.toggle(name),
      onSelectRow: (row) => this.selectRow(side, row),
      onChange: () => this.draw([side]),
    };
    const sections = groups.map((group) => {
      const boxes = group.boxes.map((box) => createBox(box, pass, this.view, actions));
      return element("section", {}, element("h4", { textContent: group.title }), ...boxes);
    });
    const heading = element("h3", { textContent: title });
    return element("div", { className: "pass-part", role: "group", ariaLabel: title }, heading, ...sections);
  }

  // Return the rows of all points without those of later target positions.
  rowsUpTo(count) {
    const isOfDecoder = (name) => name.startsWith("decoder.") || name.startsWith("target.") || name === "logits";
    const rowsOf = ([name, rows]) => [name, isOfDecoder(name) ? rows.slice(0, count) : rows];
    return Object.fromEntries(Object.entries(this.points).map(rowsOf));
  }

  selectRow(side, row) {
    if (side === "target") this.inspector.playback.show(row);
    else {
      this.row = row;
      this.draw([side]);
    }
  }

  toggle(name) {
    this.off[this.off.has(name) ? "delete" : "add"](name);
    this.compute();
  }

  // Return the terms whose sum is the score of a query and a key, as texts, and the equation with their sum.
  scoreTerms({ query, keys, scores }, s) {
    const { model } = this.translator;
    const key = keys[s];
    if (model.options.kind !== "transformer") {
      const v = model.weights["decoder.score.v"];
      const term = (_, i) => `${format(v[i])} · ${format(Math.tanh(query[i] + key[i]))}`;
      return { terms: Array.from(query, term), formula: `vᵀ tanh(query + key) = ${format(scores[s])}` };
    }
    const width = Math.sqrt(query.length);
    const factor = this.isScaled ? 1 : width; // an unscaled score is that of queries times √d
    const terms = Array.from(query, (q, i) => `${format(q / factor)} · ${format(key[i])}`);
    const product = format((scores[s] * width) / factor);
    const scaled = this.isScaled ? `; q · k / √${query.length} = ${format(scores[s])}` : "";
    return { terms, formula: `q · k = ${product}${scaled}` };
  }
}

// Return a piece as a label.
function label({ pieces }, id) {
  return pieces[id].replaceAll("▁", " ").trim() || "▁";
}

// Return what changes the model: the rows of some points become 0, and scores are not divided by √d, as queries are multiplied by it.
function changed(off, isScaled, { width, heads }) {
  const factor = Math.sqrt(width / heads);
  return (name, value) => {
    if (!isScaled && name.endsWith(".queries")) return value.map((row) => row.map((x) => x * factor));
    if (!off.has(name)) return value;
    if (!Array.isArray(value)) return { ...value, context: new Float64Array(value.context.length) };
    return value.map((row) => new Float64Array(row.length));
  };
}
