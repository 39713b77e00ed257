// The tab "Pass": one pass through the whole model as a figure, from the pieces of the text to the probabilities of the next word.
//
// All numbers are those that the engine computes for this sentence. Parts of the model can be switched off to see how the
// translation changes, and a translation can be given (teacher forcing).

import { createSwitch, element, formatPercent, themeColors } from "./elements.js";
import { nextTask, unpack } from "./engine_client.js";
import { mean } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { createBox, format } from "./pass_box.js";
import { createParts, hypothesisBoxes } from "./pass_boxes.js";
import { showPlayback } from "./playback.js";

const HINT = gettext(
  "Each box shows what the model computes: a row for each piece, a column for each dimension; blue is positive, orange negative. " +
    "Open a box to see its numbers. Choose a piece to see those of its row.",
);
const SLICE_MILLISECONDS = 5; // of drawing, after which the page can react

// Of the continuations of a hypothesis.
const FATES = { kept: `✓ ${gettext("is kept")}`, ended: `■ ${gettext("ends")}`, dropped: `✗ ${gettext("is dropped")}` };

// What changes nothing of a model, see engine/translator.js and `inspect` there.
export const UNCHANGED = { off: [], isScaled: true, isMasked: true };

// Show the figure in the panel of an inspector.
//
// engine: { ask(question, fields): see engine/worker.js, options of the model, start: the id of the start token, sourcePieces,
//   targetPieces: the pieces by id, note: what to know about its numbers, if anything }
// place: what the link to the figure says, { step, points: the names of open boxes, with their heads, onChange() }
export async function showPass(inspector, engine, place) {
  const isCurrent = inspector.currentState();
  await nextTask();
  if (isCurrent()) new Pass(inspector, engine, place);
}

class Pass {
  /** @type {any} */
  answer; // to "pass": tokens, points, logProbs and more
  /** @type {number[]} */
  tokens; // of the translation

  constructor(inspector, engine, place) {
    this.inspector = inspector;
    this.engine = engine;
    this.place = place;
    this.parts = createParts(engine.options);
    this.view = { open: new Set(), heads: new Map(), keys: new Map() };
    this.openBoxes(place.points);
    this.off = new Set(); // the names of points whose rows are 0
    this.isScaled = true; // whether scores are divided by √d
    this.isMasked = true; // whether the decoder reads no later words
    this.showsBeam = false; // whether the hypotheses of the beam search are shown side by side
    this.row = 0; // of the source
    this.step = place.step;
    this.ids = inspector.sentence.ids;
    this.boxes = new Map(); // elements by side and name
    this.jobs = new Map(); // functions that draw these elements, by the same keys
    this.latestRequestId = 0;
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
    const toolbar = element("div", { className: "toolbar" });
    toolbar.append(
      element("label", { className: "forced" }, `${gettext("Teacher forcing: your translation")} `, forced),
    );
    if (this.engine.options.kind === "transformer") {
      toolbar.append(
        this.switchOf(gettext("Scale 1/√d"), gettext("switch of the scale 1/√d"), "isScaled"),
        this.switchOf(gettext("Mask"), gettext("switch of the decoder’s mask"), "isMasked"),
      );
    }
    toolbar.append(
      this.switchOf(gettext("Beam search"), gettext("switch of the hypotheses of the beam search"), "showsBeam"),
    );
    this.summary = element("p", { className: "pass-summary", ariaLive: "polite" });
    this.controls = element("div");
    this.beam = element("div", { className: "hypotheses" });
    this.figure = element("div", { className: "pass" }, this.beam);
    const textContent = [HINT, this.engine.note].filter(Boolean).join(" ");
    const hint = element("p", { className: "note", textContent });
    this.sections = this.parts.map(({ title, groups }) => {
      const sections = groups.map((group) => element("section", {}, element("h4", { textContent: group.title })));
      const heading = element("h3", { textContent: title });
      this.figure.append(
        element("div", { className: "pass-part", role: "group", ariaLabel: title }, heading, ...sections),
      );
      return sections;
    });
    this.inspector.panel.replaceChildren(hint, toolbar, this.summary, this.controls, this.figure);
  }

  // Create a labelled switch of one of our properties.
  switchOf(label, ariaLabel, property) {
    const button = createSwitch(ariaLabel, this[property], (isOn) => {
      this[property] = isOn;
      this.compute();
    });
    return element("span", { className: "scale" }, `${label} `, button);
  }

  // Let the engine compute all rows anew, and show them.
  async compute() {
    const requestId = ++this.latestRequestId;
    this.figure.ariaBusy = "true";
    const { ids, isScaled, isMasked } = this;
    const forced = this.forced.value.trim();
    const isChanged = this.off.size > 0 || !isScaled;
    const changes = { off: [...this.off], isScaled, isMasked };
    this.changes = changes;
    const tokens = isChanged ? null : this.inspector.sentence.tokens;
    const answer = await this.engine.ask("pass", { ids, forced, tokens, changes });
    await nextTask();
    const isOutdated = requestId !== this.latestRequestId || !this.figure.isConnected;
    if (isOutdated) return;
    this.answer = { ...answer, points: unpack(answer.points) };
    this.tokens = answer.tokens;
    this.parts = createParts(this.engine.options, isMasked);
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
    const { logProbs, masked, text } = this.answer;
    const loss = format(-mean(logProbs));
    if (masked) {
      const [withMask, count] = [format(-mean(masked.logProbs)), this.tokens.length];
      const [right, rightWithMask] = [this.answer, masked].map(({ isBest }) => isBest.filter(Boolean).length);
      const values = { loss, withMask, right, count, rightWithMask };
      return [
        gettext("Without the mask, each position also reads the later pieces, and so the one that it has to predict."),
        forced
          ? gettext("Loss of your translation: {loss} nats for each piece, {withMask} with the mask.", values)
          : gettext("Loss of the model’s translation: {loss} nats for each piece, {withMask} with the mask.", values),
        gettext(
          "The most probable piece is the right one {right} of {count} times, {rightWithMask} times with the mask.",
          values,
        ),
      ].join(" ");
    }
    if (forced)
      return gettext(
        "Loss of your translation: {loss} nats for each piece. The decoder reads your pieces, not its own.",
        { loss },
      );
    if (!isChanged) return "";
    if (text === this.inspector.sentence.text) return gettext("The translation stays the same.");
    return gettext("With this change, the model writes: {text}", { text: text || gettext("(nothing)") });
  }

  describe(step, forced) {
    const label = (id) => labelOf(this.engine.targetPieces, id);
    const read = this.read(step + 1)
      .map(label)
      .join(" ");
    const values = {
      read,
      next: label(this.tokens[step]),
      probability: formatPercent(Math.exp(this.answer.logProbs[step])),
      number: step + 1,
      total: this.tokens.length,
    };
    let effect = gettext("after “{read}”, it writes “{next}” ({probability})", values);
    if (!this.isMasked)
      effect = forced
        ? gettext(
            "after “{read}”, and with all later pieces, your next piece “{next}” has a probability of {probability}",
            values,
          )
        : gettext(
            "after “{read}”, and with all later pieces, its next piece “{next}” has a probability of {probability}",
            values,
          );
    else if (forced)
      effect = gettext("after “{read}”, your next piece “{next}” has a probability of {probability}", values);
    return gettext("Word piece {number} of {total}: {effect}.", { ...values, effect });
  }

  // Return the ids of the first pieces that the decoder reads.
  read(count) {
    return [this.engine.start, ...this.tokens].slice(0, count);
  }

  // Draw the boxes on these sides, and change the link.
  draw(sides) {
    const passes = this.passes();
    this.parts.forEach(({ side, groups }, part) => {
      if (!sides.includes(side)) return;
      const pass = this.passOf(side, passes);
      const actions = this.actionsOf(side);
      groups.forEach((group, i) => {
        for (const box of group.boxes) this.add(this.sections[part][i], `${side} ${box.point}`, box, pass, actions);
      });
    });
    const { open, heads } = this.view;
    this.place.step = this.step;
    this.place.points = [...open].map((name) => (heads.has(name) ? `${name}.head.${heads.get(name)}` : name));
    this.place.onChange();
    this.drawSlices();
    this.drawBeam();
  }

  // Draw small figures of the hypotheses that the beam search continues at this step, side by side.
  async drawBeam() {
    for (const key of this.jobs.keys()) if (key.startsWith("beam")) this.jobs.delete(key);
    if (!this.showsBeam) {
      this.beam.replaceChildren();
      return;
    }
    const { step, changes, ids, engine } = this;
    const hypotheses = await engine.ask("hypotheses", { ids, step, changes: { ...changes, isMasked: true } });
    const isOutdated = step !== this.step || changes !== this.changes || !this.beam.isConnected;
    if (isOutdated) return;
    const boxes = hypothesisBoxes(this.parts);
    const passes = this.passes();
    const sections = hypotheses.map((hypothesis, i) => {
      const section = element(
        "section",
        { ariaLabel: gettext("hypothesis {number}", { number: i + 1 }) },
        ...this.describeHypothesis(hypothesis, i),
      );
      section.setAttribute("role", "group");
      const target = this.targetOf(hypothesis, passes);
      boxes.forEach((box) => {
        this.boxes.delete(`beam ${i} ${box.point}`);
        this.add(
          section,
          `beam ${i} ${box.point}`,
          box,
          this.passOf("target", { ...passes, target }),
          this.actionsOf("target"),
        );
      });
      return section;
    });
    this.beam.replaceChildren(...sections);
    this.drawSlices();
  }

  // Return what the boxes show of a hypothesis, see pass_box.js.
  targetOf({ tokens, continuations, points }, { target }) {
    const ids = [this.engine.start, ...tokens];
    const notes = new Map(continuations.map(({ token, fate }) => [token, FATES[fate]]));
    return { ...target, ids, pieces: ids.map(target.pieceOf), points: unpack(points), notes };
  }

  describeHypothesis({ tokens, logProb, continuations }, i) {
    const label = (id) => labelOf(this.engine.targetPieces, id);
    const text = [this.engine.start, ...tokens].map(label).join(" ");
    const items = continuations.map(({ token, log_prob, score, fate }) => {
      const value =
        fate === "ended" ? `${gettext("score")} ${format(score)}` : `${gettext("log p")} ${format(log_prob)}`;
      return element("li", { textContent: `“${label(token)}” ${FATES[fate]}, ${value}` });
    });
    return [
      element("h4", {
        textContent: gettext("Hypothesis {number}: log p {value}", { number: i + 1, value: format(logProb) }),
      }),
      element("p", { textContent: text, dir: "auto" }),
      items.length
        ? element("ul", {}, ...items)
        : element("p", { textContent: gettext("None of its continuations is in the beam.") }),
    ];
  }

  // Plan the drawing of a box, in place of the element that shows it. The button that has the focus keeps it.
  add(section, key, box, pass, actions) {
    this.jobs.set(key, () => {
      const previous = this.boxes.get(key);
      const root = createBox(box, pass, this.view, actions);
      this.boxes.set(key, root);
      if (!previous) return section.append(root);
      const buttons = (parent) => [...parent.querySelectorAll("button")];
      const focused = /** @type {Document} */ (this.figure.getRootNode()).activeElement;
      const index = buttons(previous).indexOf(focused);
      previous.replaceWith(root);
      return buttons(root)[index]?.focus();
    });
  }

  // Draw the planned boxes, those in view first, a few at a time, so that the page reacts meanwhile.
  async drawSlices() {
    this.jobs = new Map([...this.jobs].sort(([a], [b]) => this.isHidden(a) - this.isHidden(b)));
    if (this.isDrawing) return;
    this.isDrawing = true;
    this.figure.ariaBusy = "true";
    while (this.jobs.size) {
      await nextTask();
      Object.assign(this.view, themeColors(this.figure, "positive", "negative"));
      const end = performance.now() + SLICE_MILLISECONDS;
      for (const [key, job] of this.jobs) {
        this.jobs.delete(key);
        job();
        if (performance.now() > end) break;
      }
    }
    this.isDrawing = false;
    this.figure.ariaBusy = "false";
  }

  // Return 1 if the element of a box is out of view, else 0.
  isHidden(key) {
    const rectangle = this.boxes.get(key)?.getBoundingClientRect();
    return rectangle && (rectangle.bottom < 0 || rectangle.top > innerHeight) ? 1 : 0;
  }

  // Return what the boxes show of each side, see pass_box.js.
  passes() {
    const { tokens, step, engine } = this;
    const { points } = this.answer;
    const pieceOf = (id) => labelOf(engine.targetPieces, id);
    const sourcePieces = this.ids.map((id) => labelOf(engine.sourcePieces, id));
    const count = this.isMasked ? step + 1 : tokens.length;
    const read = this.read(count);
    const source = { side: "source", pieces: sourcePieces, ids: this.ids, row: this.row, points, tokens, pieceOf };
    const target = { pieces: read.map(pieceOf), ids: read, row: step, points: rowsUpTo(points, count) };
    return { source, target: { ...source, side: "target", ...target } };
  }

  passOf(side, passes) {
    return {
      ...passes[side],
      keyPieces: (point) => passes[point.endsWith(".cross") ? "source" : side].pieces,
      scoreTerms: (attention, key) => this.scoreTerms(attention, key),
    };
  }

  actionsOf(side) {
    return {
      isOff: (name) => this.off.has(name),
      onSwitch: (name) => this.toggle(name),
      onSelectRow: (row) => this.selectRow(side, row),
      onChange: () => this.draw([side]),
    };
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
    const { v } = this.answer;
    const key = keys[s];
    if (v) {
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

// Return the rows of all points without those of later target positions.
function rowsUpTo(points, count) {
  const isOfDecoder = (name) => name.startsWith("decoder.") || name.startsWith("target.") || name === "logits";
  const rowsOf = ([name, rows]) => [name, isOfDecoder(name) ? rows.slice(0, count) : rows];
  return Object.fromEntries(Object.entries(points).map(rowsOf));
}

// Return a piece as a label.
function labelOf(pieces, id) {
  return pieces[id].replaceAll("▁", " ").trim() || "▁";
}
