// Two or three lines of words, and between them ribbons as wide as the weights.
//
// A word that is pointed at or focused shows its own ribbons only, with percentages. If a line is too long for the page, the lines
// run from top to bottom.

import { element, formatPercent, isolateText, standaloneSvg, svgElement, themeColors } from "./elements.js";
import { filled, gettext } from "./messages.js";
import { layOutRibbons, ribbonPath } from "./ribbon_shapes.js";
import { addRovingTabindex } from "./roving.js";
import {
  createWordChips,
  LOW_PROBABILITY,
  pointingHint,
  SPECIAL_TOKEN_LABELS,
  showHint,
  UNKNOWN_LABEL,
} from "./word_chips.js";

const MIN_WEIGHT = 0.02; // smaller weights have no ribbon
const MANY_WEIGHTS = 400; // from which on the least weight is twice as large, to keep the page responsive
const MAX_RIBBON_WIDTH = 30; // pixels
const MIN_SHARE = 0.01; // smaller weights have no percentage
const [MIN_DESCRIBED_WEIGHT, MAX_DESCRIBED_WORDS] = [0.05, 3];
const SVG_MARGIN = 12; // pixels
const CAPTION_HEIGHT = 24; // pixels
const [BAR_HEIGHT, BAR_PADDING] = [3, 6]; // pixels, in a saved picture
// What a word below does to words above, and the reverse: { sentence, hint: what pointing at a word shows }.
export const ATTENTION_VERBS = [
  {
    sentence: gettext("{word} attends to {list}"),
    hint: gettext("{point} to see what it attends to, in per cent."),
  },
  { sentence: gettext("{word} is attended to by {list}") },
];
export const CONTRIBUTION_VERBS = [
  {
    sentence: gettext("{word} comes from {list}"),
    hint: gettext("{point} to see what it comes from, in per cent."),
  },
  { sentence: gettext("{word} contributes to {list}") },
];
let viewCount = 0; // for unique ids

// Show words with ribbons in `root`.
//
// content: {
//   above, below: the words of the two lines,
//   weights: [below][above],
//   probabilities: of the words below, or null,
//   languages: the language codes of the lines above and below,
//   verbs: in the form of ATTENTION_VERBS,
//   marked: { above: Set, below: Set } of the indices of words with a frame, or null,
//   unknown: { above, below }, the indices of words with unknown characters,
//   contextCount: { above, below }, how many of the first words belong to previous sentences,
//   prefix: { words, weights: [below][words] }, a third line, below the others, from which the words in the middle come, too,
//   caption: a line below a saved picture,
//   sourceShares: the share of each word below that comes from the words above, or null where it is undefined }
// options: {
//   onChoose(side, index): a word is clicked or activated with Enter,
//   hint: what choosing a word does,
//   layOutLater: whether to draw the ribbons in a task of its own, as slow devices need time for them }
// Returns { words: the buttons above and below, update(content), highlightBelow(index), showStep(index), svg() }.
export function showRibbons(root, content, options = {}) {
  return new RibbonView(root, content, options);
}

class RibbonView {
  verbs = ATTENTION_VERBS;
  size = ""; // of the box when it was laid out

  constructor(root, content, options) {
    this.content = content;
    this.options = options;
    this.setWeights(content);
    this.texts = { above: content.above, below: content.below, prefix: content.prefix?.words ?? [] };
    this.ribbonSides = content.prefix ? ["above", "prefix"] : ["above"]; // the lines whose ribbons lead to the words below
    this.highlighted = null; // { side, i }: the word that is pointed at or focused
    this.step = null; // the index of the word that the model has just written
    this.isVertical = false;
    this.lines = this.createLines();
    this.words = { above: this.lines.above.words, below: this.lines.below.words };
    this.gaps = {};
    for (const side of this.ribbonSides) {
      this.gaps[side] = svgElement("svg", { class: `gap of-${side}`, "aria-hidden": "true" });
    }
    viewCount += 1;
    this.description = element("p", { className: "description", id: `description-${viewCount}`, ariaLive: "polite" });
    this.box = this.createBox();
    root.replaceChildren(this.box, this.description);
    addRovingTabindex(
      Object.values(this.lines).map(({ words }) => words),
      () => this.isVertical,
    );
    new ResizeObserver(() => {
      const isLaidOut = this.size === "" || this.size === this.currentSize(); // soon, or now: the observer reports this size, too
      if (!isLaidOut) this.layOut();
    }).observe(this.box);
    if (options.layOutLater) setTimeout(() => this.layOut());
    else this.layOut();
  }

  // Show other weights between the same words.
  update(content) {
    this.setWeights(content);
    this.draw();
    this.highlight(this.highlighted);
  }

  highlightBelow(i) {
    this.highlight({ side: "below", i });
  }

  // Show the words as they are when the model has just written the word below at `index`; null shows all words as written.
  showStep(index) {
    this.step = index;
    this.lines.below.showStep(index);
    this.highlight(null);
  }

  setWeights({ weights, verbs = ATTENTION_VERBS }) {
    this.weights = weights;
    this.verbs = verbs;
  }

  createLines() {
    const { languages: [languageAbove, languageBelow] = ["", ""], probabilities, prefix, sourceShares } = this.content;
    const lines = {
      above: this.createLine("above", languageAbove),
      below: this.createLine("below", languageBelow, probabilities),
    };
    if (prefix) lines.prefix = this.createLine("prefix", languageBelow);
    sourceShares?.forEach((share, i) => {
      lines.below.words[i].classList.add("has-source-share");
      lines.below.words[i].style.setProperty("--source-share", share ?? 0);
    });
    return lines;
  }

  createLine(side, lang, probabilities) {
    const { marked, unknown, contextCount } = this.content;
    return createWordChips(side, this.texts[side], {
      lang,
      probabilities,
      marked: marked?.[side],
      unknown: unknown?.[side],
      contextCount: contextCount?.[side],
      onHighlight: (i) => this.highlight(i === null ? null : { side, i }),
      onChoose: (i) => this.options.onChoose?.(side, i),
    });
  }

  createBox() {
    const { lines, gaps } = this;
    const hasPrefix = Boolean(lines.prefix);
    const className = hasPrefix ? "ribbons with-prefix" : "ribbons";
    const box = element("div", { className, role: "group", ariaLabel: gettext("words and attention") });
    box.setAttribute("aria-describedby", this.description.id);
    box.append(lines.above.line, gaps.above, lines.below.line);
    if (hasPrefix) box.append(gaps.prefix, lines.prefix.line);
    return box;
  }

  // Highlight a word, { side, i }, its ribbons, and the words at their other ends. Without a word, highlight that of the current step.
  highlight(word) {
    this.highlighted = word;
    const current = word ?? (this.step === null ? null : { side: "below", i: this.step });
    this.box.classList.toggle("highlighting", current !== null);
    for (const side of Object.keys(this.lines)) this.resetWords(side, current);
    for (const side of this.ribbonSides) this.highlightRibbons(side, current);
    if (current === null) {
      this.showHint();
      return;
    }
    const connections = this.connectionsOf(current);
    for (const connection of connections) this.showConnection(connection);
    this.description.textContent = this.describe(current, connections);
  }

  resetWords(side, current) {
    const { words, shares } = this.lines[side];
    const { sourceShares } = this.content;
    words.forEach((word, i) => {
      word.classList.toggle("active", current?.side === side && current.i === i);
      word.style.removeProperty("--weight");
      shares[i].textContent = side === "below" && sourceShares ? formatShare(sourceShares[i], "?") : "";
    });
  }

  highlightRibbons(side, current) {
    for (const ribbon of this.gaps[side].children) {
      const [s, t] = [Number(ribbon.dataset.s), Number(ribbon.dataset.t)];
      const startsAtCurrent = current?.side === side && s === current.i;
      const endsAtCurrent = current?.side === "below" && t === current.i;
      ribbon.classList.toggle("highlighted", startsAtCurrent || endsAtCurrent);
      ribbon.classList.toggle("upcoming", this.step !== null && t > this.step);
    }
  }

  // Return the words at the other ends of a word's ribbons, { side, i, weight }.
  connectionsOf({ side, i }) {
    if (side !== "below") return this.weightsOf(side).map((row, t) => ({ side: "below", i: t, weight: row[i] }));
    return this.ribbonSides.flatMap((otherSide) =>
      this.weightsOf(otherSide)[i].map((weight, s) => ({ side: otherSide, i: s, weight })),
    );
  }

  showConnection({ side, i, weight }) {
    if (side === "below" && this.step !== null && i > this.step) return; // not written yet
    const { words, shares } = this.lines[side];
    words[i].style.setProperty("--weight", Math.max(0, Math.min(1, weight)));
    if (Math.abs(weight) >= MIN_SHARE) shares[i].textContent = formatPercent(weight);
  }

  weightsOf(side) {
    return side === "prefix" ? this.content.prefix.weights : this.weights;
  }

  showHint() {
    const { probabilities, sourceShares } = this.content;
    let legend = "";
    if (sourceShares) {
      legend = gettext(
        "Blue ribbons come from the source, orange ones from the translation so far. " +
          "Under each word: the part that comes from the source.",
      );
    } else if (probabilities) {
      legend = gettext("The bar under a word shows its probability.");
    }
    const instruction = filled(this.verbs[0].hint, { point: pointingHint() });
    showHint(this.description, [instruction, legend, this.options.hint].filter(Boolean).join(" "));
  }

  // Return a sentence about a word and the words of its largest weights.
  describe({ side, i }, connections) {
    const { probabilities, sourceShares, unknown } = this.content;
    const largest = connections
      .filter(({ weight }) => weight >= MIN_DESCRIBED_WEIGHT)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, MAX_DESCRIBED_WORDS);
    const list = largest.map((connection) => this.describeConnection(connection)).join(", ");
    const text = isolateText(this.texts[side][i]);
    const unknownLabel = unknown?.[side]?.includes(i) ? UNKNOWN_LABEL : "";
    const label = SPECIAL_TOKEN_LABELS[text] ?? unknownLabel;
    const word = label ? `${text} (${label})` : text;
    const isBelow = side === "below";
    const named =
      isBelow && probabilities
        ? gettext("{word} (probability {share})", { word, share: formatPercent(probabilities[i]) })
        : word;
    const values = { word: named, list: list || gettext("nothing in particular") };
    const sentence = filled(this.verbs[isBelow ? 0 : 1].sentence, values);
    if (!isBelow || !sourceShares) return sentence;
    const share = formatShare(sourceShares[i], gettext("an undefined part"));
    return gettext("{sentence}; from the source {share}", { sentence, share });
  }

  describeConnection({ side, i, weight }) {
    const word = isolateText(this.texts[side][i]);
    const named = side === "prefix" ? gettext("{word} (translation so far)", { word }) : word;
    return `${named} ${formatPercent(weight)}`;
  }

  // Choose the direction of the lines by whether they fit, and draw the ribbons.
  layOut() {
    this.box.classList.remove("vertical"); // measure horizontal lines
    this.isVertical = Object.values(this.lines).some(({ line }) => line.scrollWidth > this.box.clientWidth + 1);
    this.box.classList.toggle("vertical", this.isVertical);
    this.size = this.currentSize();
    this.draw();
    this.highlight(this.highlighted);
  }

  currentSize() {
    return `${this.box.clientWidth} × ${this.box.clientHeight}`;
  }

  draw() {
    for (const side of this.ribbonSides) {
      const ribbons = this.layOutRibbons(side).map(({ s, t, weight, isNegative, path }) => {
        const className = isNegative ? "ribbon negative" : "ribbon";
        const ribbon = svgElement("path", { d: path, class: className, "data-s": s, "data-t": t });
        ribbon.style.setProperty("--weight", Math.min(1, Math.abs(weight)).toFixed(3));
        return ribbon;
      });
      this.gaps[side].replaceChildren(...ribbons);
    }
  }

  // Return the ribbons between the words below and another line, the widest last, so that they are drawn on top.
  layOutRibbons(side) {
    const gap = this.gaps[side];
    const { width, height } = gap.getBoundingClientRect();
    const isLarge = this.texts.below.length * this.texts[side].length > MANY_WEIGHTS;
    const ribbons = layOutRibbons({
      weights: this.weightsOf(side),
      above: this.measureWords(side, gap),
      below: this.measureWords("below", gap),
      maxWidth: MAX_RIBBON_WIDTH,
      minWeight: isLarge ? 2 * MIN_WEIGHT : MIN_WEIGHT,
    });
    const isPrefix = side === "prefix";
    return ribbons
      .sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight))
      .map((ribbon) => {
        // The prefix is on the other side of the words below, so its ribbons run the other way.
        const ends = isPrefix ? { from: ribbon.into, into: ribbon.from } : ribbon;
        const path = ribbonPath(ends, this.isVertical ? width : height, this.isVertical);
        return { ...ribbon, path, isNegative: ribbon.weight < 0 || isPrefix };
      });
  }

  // Return the position of each word along its line, relative to the gap.
  measureWords(side, gap) {
    const origin = gap.getBoundingClientRect();
    return this.lines[side].words.map((word) => {
      const { left, width, top, height } = word.getBoundingClientRect();
      return this.isVertical
        ? { center: top + height / 2 - origin.top, size: height }
        : { center: left + width / 2 - origin.left, size: width };
    });
  }

  // Return the view as a picture that does not need the style sheet.
  svg() {
    const colors = themeColors(this.box, "background", "text", "muted", "positive", "negative", "warning");
    const outer = this.box.getBoundingClientRect();
    const ribbons = this.ribbonSides.map((side) => this.ribbonsSvg(side, outer, colors));
    const words = Object.keys(this.lines).flatMap((side) =>
      this.lines[side].words.flatMap((word, i) => this.wordSvg(side, i, word, outer, colors)),
    );
    const { caption } = this.content;
    const captionPosition = { x: 0, y: outer.height + CAPTION_HEIGHT / 2, "font-size": 12, fill: colors.muted };
    const captions = caption ? [svgElement("text", captionPosition, caption)] : [];
    const shapes = [...ribbons, ...words, ...captions];
    const content = svgElement("g", { transform: `translate(${SVG_MARGIN} ${SVG_MARGIN})` }, ...shapes);
    const height = outer.height + 2 * SVG_MARGIN + (caption ? CAPTION_HEIGHT : 0);
    return standaloneSvg(outer.width + 2 * SVG_MARGIN, height, colors.background, content);
  }

  ribbonsSvg(side, outer, colors) {
    const inner = this.gaps[side].getBoundingClientRect();
    const paths = this.layOutRibbons(side).map(({ weight, isNegative, path }) =>
      svgElement("path", {
        d: path,
        fill: `rgb(${isNegative ? colors.negative : colors.positive})`,
        "fill-opacity": (0.15 + 0.6 * Math.min(1, Math.abs(weight))).toFixed(3),
      }),
    );
    return svgElement("g", { transform: `translate(${inner.left - outer.left} ${inner.top - outer.top})` }, ...paths);
  }

  wordSvg(side, i, word, outer, colors) {
    const { left, width, top, height } = word.getBoundingClientRect();
    const [x, y] = [left - outer.left, top - outer.top];
    const text = svgElement(
      "text",
      {
        x: x + width / 2,
        y: y + height / 2,
        "text-anchor": "middle",
        "dominant-baseline": "central",
        "font-size": 15,
        fill: word.matches(".special-token, .context") ? colors.muted : colors.text,
      },
      this.texts[side][i],
    );
    if (side !== "below") return [text];
    const barWidth = width - 2 * BAR_PADDING;
    const bars = this.wordBars(i, colors).map(({ start, length, fill }) =>
      svgElement("rect", {
        x: x + BAR_PADDING + barWidth * start,
        y: y + height - BAR_HEIGHT,
        width: Math.max(0, barWidth * length),
        height: BAR_HEIGHT,
        fill,
      }),
    );
    return [text, ...bars];
  }

  // Return the bars under a word: the parts that come from the source and from the prefix, or its probability.
  wordBars(i, colors) {
    const { probabilities, sourceShares } = this.content;
    if (sourceShares) {
      const share = sourceShares[i];
      return [
        { start: 0, length: share ?? 0, fill: `rgb(${colors.positive})` },
        { start: share ?? 0, length: share === null ? 0 : 1 - share, fill: `rgb(${colors.negative})` },
      ];
    }
    const probability = probabilities?.[i];
    if (probability === undefined) return [];
    return [{ start: 0, length: probability, fill: probability < LOW_PROBABILITY ? colors.warning : colors.muted }];
  }
}

function formatShare(share, undefinedText) {
  return share === null ? undefinedText : formatPercent(share);
}
