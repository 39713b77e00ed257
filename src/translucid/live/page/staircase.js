// The staircase: the attention of live translation, in which each row shows what had been heard when a word was written.
//
// Columns are the source words, rows the words that were written, in order. A step line, the frontier, separates the words heard
// then from those that were not. Before a word, the words can be shown that the model proposed earlier and that had to wait, with the
// attention that made them wait. The record of a sentence is described in docs/live.md.

import {
  element,
  formatPercent,
  isolateText,
  standaloneSvg,
  svgElement,
  textDirection,
  themeColors,
} from "./elements.js";
import { filled, gettext, ngettext } from "./messages.js";

// Letters of scripts without spaces between words, for a regular expression.
export const UNSPACED =
  "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
// Whether a character is a word by itself.
export const STANDS_ALONE = new RegExp(`^[${UNSPACED}\\u3000-\\u303f\\uff00-\\uffef]$`, "u");

const MIN_SHARE = 0.05; // smaller weights have no percentage
const MAX_DESCRIBED_WORDS = 3;
const [END_TOKEN, END] = ["</s>", gettext("(end)")]; // what the model proposed to end the sentence, and the words for it
const [CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN] = [34, 28, 13, 12]; // pixels, in a saved picture
// What the policies forbid at the last words heard.
const ZONE_RULES = {
  alignatt: gettext("{zone}: a word that attends most here waits"),
  edatt: gettext("{zone}: a word that attends much here waits"),
};
const HINT = gettext("Choose a word to see what was proposed before it, and why it waited.");

// Return all decisions about a sentence in the order in which they were made:
// { isWritten, text, heard, row, isAtEnd: whether the sentence had ended, record }.
export function decisionsOf({ source, written, refused, ended }) {
  const refusedByHeard = new Map(refused.map((record) => [record.heard, record]));
  const decisions = [];
  for (let heard = 1; heard <= source.length; heard++) {
    const refusal = refusedByHeard.get(heard);
    const isLast = ended && heard === source.length;
    const writtenNow = written.filter((record) => record.heard === heard);
    const count = refusal ? countBefore(refusal, writtenNow, written) : isLast ? 0 : writtenNow.length;
    decisions.push(...writtenNow.slice(0, count).map((record) => writtenDecision(record, false)));
    if (refusal) decisions.push(refusedDecision(refusal));
    decisions.push(...writtenNow.slice(count).map((record) => writtenDecision(record, true)));
  }
  return decisions;
}

function writtenDecision(record, isAtEnd) {
  return { text: record.text, heard: record.heard, row: record.row, isWritten: true, isAtEnd, record };
}

// The text of a refused piece is empty if it is the end token, or has no letters yet.
function refusedDecision(record) {
  const { piece } = record.piece;
  const text = piece === END_TOKEN ? END : record.text || piece;
  return { text, heard: record.heard, row: record.row, isWritten: false, isAtEnd: false, record };
}

// Return how many of the parts written after the same word were written before a refusal; the others were written at the end.
function countBefore({ word, text, piece }, writtenNow, written) {
  const begun = written.find(({ words }) => words.includes(word));
  // A word is written when the next one begins: with the end token in its place, only a character that is a word was.
  const isComplete = piece.piece === END_TOKEN && STANDS_ALONE.test(begun?.text.at(-1) ?? "");
  // A sign that follows the word without a space belongs to it, but is written after it.
  const isSign = text && !/^[\p{L}\p{N}]/u.test(text) && !begun?.text.startsWith(text);
  return writtenNow.filter((part) => part.words[0] < word || (part === begun && (isSign || isComplete))).length;
}

// Return the mean number of source words by which a translation lagged behind (AL, which is LAAL without a reference).
export function averageLagging({ source, delays }) {
  if (!delays.length) return null;
  const atEnd = delays.findIndex((delay) => delay >= source.length);
  const count = atEnd < 0 ? delays.length : atEnd + 1;
  const rate = source.length / delays.length;
  return delays.slice(0, count).reduce((sum, delay, i) => sum + delay - i * rate, 0) / count;
}

// The table of a sentence. `settings` are those of a session's record: { policy, lag, languages }.
export class Staircase {
  constructor(root, settings) {
    this.settings = settings;
    this.decisions = [];
    this.rows = []; // { row, header, button, cells, next: the index of the row written next, isOpen }
    this.step = null; // in a recording, the number of words heard so far
    this.showsAll = false;
    this.columns = [];
    this.headerRow = element("tr", {}, element("td"));
    this.body = element("tbody");
    this.description = element("p", { className: "description", textContent: HINT });
    this.table = element(
      "table",
      { className: "staircase", ariaLabel: gettext("attention when each word was written") },
      element("thead", {}, this.headerRow),
      this.body,
    );
    this.scroll = element("div", { className: "scroll" }, this.table);
    root.replaceChildren(this.toolbar(), this.description, this.scroll, this.legend());
    this.table.addEventListener("keydown", (event) => this.moveFocus(event));
  }

  toolbar() {
    const checkbox = element("input", { type: "checkbox" });
    checkbox.addEventListener("change", () => {
      this.showsAll = checkbox.checked;
      this.renderVisibility();
    });
    return element(
      "div",
      { className: "toolbar" },
      element("label", {}, checkbox, ` ${gettext("Show all words that waited")}`),
    );
  }

  legend() {
    const item = (className, text) =>
      element("li", {}, element("span", { className: `sample ${className}`, ariaHidden: "true" }), text);
    const items = this.legendTexts().map(([className, text]) => item(className, text));
    return element("ul", { className: "staircase-legend" }, ...items);
  }

  legendTexts() {
    const { policy, lag } = this.settings;
    const texts = [
      ["frontier", gettext("frontier: heard before it, not heard after it")],
      ["unheard", gettext("not heard yet")],
    ];
    if (!(policy in ZONE_RULES) || lag === 0) return texts;
    return [...texts, ["forbidden", filled(ZONE_RULES[policy], { zone: lastWords(lag) })]];
  }

  // Show the sentence as it is now. Decisions are only added, never changed.
  update(sentence) {
    this.sentence = sentence;
    this.decisions = decisionsOf(sentence);
    const direction = textDirection(sentence.source);
    this.table.dir = direction;
    for (const word of sentence.source.slice(this.columns.length)) this.addColumn(word);
    for (const decision of this.decisions.slice(this.rows.length)) this.addRow(decision);
    /** @type {number | null} */
    let next = null;
    for (let i = this.rows.length - 1; i >= 0; i--) {
      if (this.decisions[i].isWritten) next = i;
      this.rows[i].next = next;
    }
    this.renderVisibility();
  }

  // In a recording: show only what was written when a number of words had been heard. One more than there are shows the end.
  showStep(heard) {
    this.step = heard;
    this.columns.forEach((column, i) => column.classList.toggle("upcoming", i >= heard));
    this.renderVisibility();
  }

  addColumn(word) {
    const header = element("th", { scope: "col", lang: this.settings.languages[0] }, element("span", { dir: "auto" }));
    header.firstElementChild.textContent = word;
    this.columns.push(header);
    this.headerRow.append(header);
    for (const row of this.rows) row.cells.push(row.row.appendChild(element("td", { className: "unheard" })));
  }

  addRow(decision) {
    const { isWritten, text, heard, row: weights } = decision;
    const button = element("button", { type: "button", dir: "auto", lang: this.settings.languages[1] });
    button.textContent = text;
    const label = this.describe(decision);
    button.setAttribute("aria-label", label);
    const zone = this.zoneOf(decision);
    const cells = this.columns.map((_, c) => cell(weights[c] ?? 0, c, heard, zone));
    const header = element("th", { scope: "row" }, button);
    const row = element("tr", { className: isWritten ? "written" : "waited" }, header, ...cells);
    const index = this.rows.length;
    button.tabIndex = index ? -1 : 0;
    row.addEventListener("mouseenter", () => this.showDescription(label));
    row.addEventListener("mouseleave", () => this.showDescription(HINT));
    button.addEventListener("focus", () => {
      this.showDescription(label);
      for (const other of this.rows) other.button.tabIndex = other.button === button ? 0 : -1;
    });
    button.addEventListener("blur", () => this.showDescription(HINT));
    button.addEventListener("click", () => {
      this.showDescription(label);
      const opened = this.rows[index];
      if (!isWritten || !this.hasWaited(index)) return;
      opened.isOpen = !opened.isOpen;
      this.renderVisibility();
    });
    this.rows.push({ row, button, cells, next: null, isOpen: false });
    this.body.append(row);
  }

  showDescription(text) {
    this.description.textContent = text;
  }

  hasWaited(index) {
    return index > 0 && !this.decisions[index - 1].isWritten;
  }

  // Return the index of the first word of the forbidden zone; that of the first word not heard if there is none.
  zoneOf({ heard, isAtEnd }) {
    const { policy, lag } = this.settings;
    return policy in ZONE_RULES && !isAtEnd ? Math.max(0, heard - lag) : heard;
  }

  isVisible(index) {
    if (this.decisions[index].isWritten || this.showsAll) return true;
    const { next } = this.rows[index];
    const isWaiting = index === this.rows.length - 1 && !this.sentence.ended;
    return next === null ? isWaiting : this.rows[next].isOpen;
  }

  // Show the rows that are to be seen, and draw the frontier through them.
  renderVisibility() {
    let previous = null; // the words heard in the visible row above
    this.rows.forEach(({ row, button, cells }, i) => {
      const { heard, isAtEnd, isWritten } = this.decisions[i];
      const isVisible = this.isVisible(i);
      row.hidden = !isVisible;
      if (isWritten && this.hasWaited(i)) button.setAttribute("aria-expanded", this.showsAll || this.rows[i].isOpen);
      if (!isVisible) return;
      row.classList.toggle("upcoming", this.step !== null && heard + Number(isAtEnd) > this.step);
      cells.forEach((one, c) => {
        one.classList.toggle("step", previous !== null && c >= previous && c < heard);
      });
      previous = heard;
    });
    const stop = this.rows.find(({ row, button }) => !row.hidden && button.tabIndex === 0);
    const first = this.rows.find(({ row }) => !row.hidden);
    if (!stop && first) first.button.tabIndex = 0;
  }

  moveFocus(event) {
    const visible = this.rows.filter(({ row }) => !row.hidden).map(({ button }) => button);
    const index = visible.indexOf(event.target);
    const targets = { ArrowUp: index - 1, ArrowDown: index + 1, Home: 0, End: visible.length - 1 };
    const next = visible[targets[event.key]];
    if (index < 0 || !next || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    next.focus();
  }

  // Scroll to the last word that has been heard.
  showLatest() {
    const { scroll, columns } = this;
    const last = columns.at(-1);
    if (!last || scroll.scrollWidth <= scroll.clientWidth) return;
    scroll.scrollLeft = this.table.dir === "rtl" ? -scroll.scrollWidth : scroll.scrollWidth;
  }

  // Return a sentence about a decision.
  describe({ isWritten, isAtEnd, text, heard, row, record }) {
    const word = isolateText(text);
    const values = { word, reason: isWritten ? "" : this.reason(record) };
    if (!isWritten) {
      return ngettext(
        "{word} waited when {count} word had been heard: {reason}.",
        "{word} waited when {count} words had been heard: {reason}.",
        heard,
        values,
      );
    }
    const largest = row
      .map((weight, s) => ({ weight, s }))
      .filter(({ weight }) => weight >= MIN_SHARE)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, MAX_DESCRIBED_WORDS);
    const list = largest.map(({ weight, s }) => `${isolateText(this.sentence.source[s])} ${formatPercent(weight)}`);
    const attention = list.length ? ` ${gettext("It attends to {list}.", { list: list.join(", ") })}` : "";
    const written = isAtEnd
      ? gettext("{word} was written when the sentence had ended.", values)
      : ngettext(
          "{word} was written when {count} word had been heard.",
          "{word} was written when {count} words had been heard.",
          heard,
          values,
        );
    return written + attention;
  }

  // Return why a word waited.
  reason({ piece, heard, evidence }) {
    const { policy, lag } = this.settings;
    if (piece.piece === END_TOKEN) return gettext("the end of the translation waits for the end of the sentence");
    const zone = lastWords(Math.min(lag, heard));
    if (policy === "alignatt") {
      const word = this.sentence.source[this.sentence.heard[heard]?.words[evidence.argmax]];
      if (word === undefined) return gettext("the model has no attention");
      const values = { word: isolateText(word), zone };
      return Math.min(lag, heard) === 1
        ? gettext("it attends most to {word}, {zone}", values)
        : gettext("it attends most to {word}, one of {zone}", values);
    }
    if (policy === "edatt") {
      return gettext("{share} of its attention is on {zone}; from {limit} on, it waits", {
        share: formatPercent(evidence.mass),
        zone,
        limit: formatPercent(evidence.alpha),
      });
    }
    if (policy === "wait-k") return gettext("it needs {count} source words", { count: evidence.needs });
    if (policy === "agreement") {
      return ngettext(
        "{count} of {total} earlier hypotheses begins with it",
        "{count} of {total} earlier hypotheses begin with it",
        evidence.agreeing,
        { total: evidence.needs },
      );
    }
    return gettext("this policy waits for the end of the sentence");
  }

  // Return the visible rows as a picture that does not need the style sheet.
  svg() {
    const colors = themeColors(this.table, "background", "text", "muted", "line", "highlight", "negative");
    const shown = this.decisions.filter((_, i) => !this.rows[i].row.hidden);
    const { source } = this.sentence;
    const labels = shown.map(({ text }) => text);
    const legend = this.legendTexts().map(([, text]) => text);
    const labelWidth = Math.max(...labels.map(textWidth), 0) + MARGIN;
    const headerHeight = Math.max(...source.map(textWidth), 0) + MARGIN;
    const width = Math.max(labelWidth + source.length * CELL_WIDTH, ...legend.map((text) => textWidth(text) + 24));
    const isReversed = this.table.dir === "rtl";
    const top = MARGIN + headerHeight;
    const columnX = (c) => MARGIN + (isReversed ? width - labelWidth - c * CELL_WIDTH : labelWidth + c * CELL_WIDTH);
    const cellX = (c) => (isReversed ? columnX(c + 1) : columnX(c));
    const rowY = (r) => top + r * CELL_HEIGHT;
    const shapes = [patterns(colors)];
    source.forEach((word, c) => {
      const [x, y] = [cellX(c) + CELL_WIDTH / 2, top - MARGIN / 2];
      shapes.push(svgText(word, { x, y, fill: colors.text, transform: `rotate(-90 ${x} ${y})` }));
    });
    shown.forEach((decision, r) => {
      const y = rowY(r);
      const zone = this.zoneOf(decision);
      const [x, anchor] = isReversed
        ? [MARGIN + width - labelWidth + MARGIN / 2, "start"]
        : [columnX(0) - MARGIN / 2, "end"];
      const style = decision.isWritten ? { fill: colors.text } : { fill: colors.muted, "font-style": "italic" };
      shapes.push(svgText(labels[r], { x, y: y + CELL_HEIGHT / 2, "text-anchor": anchor, ...style }));
      source.forEach((_, c) => {
        const box = { x: cellX(c) + 1, y: y + 1, width: CELL_WIDTH - 2, height: CELL_HEIGHT - 2 };
        const weight = decision.row[c] ?? 0;
        if (c >= decision.heard) {
          shapes.push(svgElement("rect", { ...box, fill: "url(#unheard)" }));
          return;
        }
        if (c >= zone) shapes.push(svgElement("rect", { ...box, fill: "url(#forbidden)" }));
        const opacity = (0.85 * Math.min(1, weight)).toFixed(3);
        shapes.push(svgElement("rect", { ...box, fill: `rgb(${colors.highlight})`, "fill-opacity": opacity }));
        if (weight < MIN_SHARE) return;
        const middle = {
          x: box.x + box.width / 2,
          y: box.y + box.height / 2,
          "text-anchor": "middle",
          "font-size": 11,
        };
        shapes.push(svgText(String(Math.round(100 * weight)), { ...middle, fill: colors.text }));
      });
    });
    const line = shown.map(
      ({ heard }, r) => `${r ? "H" : "M"}${columnX(heard)}${r ? "" : ` ${rowY(r)}`}V${rowY(r + 1)}`,
    );
    if (shown.length) {
      const stroke = { stroke: colors.text, "stroke-width": 2.5, fill: "none", "stroke-linejoin": "round" };
      shapes.push(svgElement("path", { d: line.join(""), ...stroke }));
    }
    const legendTop = rowY(shown.length) + MARGIN;
    this.legendTexts().forEach(([name, text], i) => {
      const y = legendTop + i * 20;
      const sample = { x: MARGIN, y, width: 14, height: 14 };
      const isLine = name === "frontier";
      const box = isLine
        ? { ...sample, x: MARGIN + 6, width: 2.5, fill: colors.text }
        : { ...sample, fill: `url(#${name})` };
      shapes.push(svgElement("rect", box));
      shapes.push(svgText(text, { x: MARGIN + 22, y: y + 7, "font-size": 12, fill: colors.muted, direction: "ltr" }));
    });
    const height = legendTop + this.legendTexts().length * 20 + MARGIN / 2;
    return standaloneSvg(width + 2 * MARGIN, height, colors.background, ...shapes);
  }
}

// Return "the last word heard", or "the last 2 words heard".
function lastWords(count) {
  return count === 1 ? gettext("the last word heard") : gettext("the last {count} words heard", { count });
}

function cell(weight, column, heard, zone) {
  if (column >= heard) return element("td", { className: "unheard" });
  const created = element("td", { textContent: weight >= MIN_SHARE ? Math.round(100 * weight) : "" });
  created.style.setProperty("--weight", Math.min(1, weight).toFixed(3));
  created.classList.toggle("forbidden", column >= zone);
  created.classList.toggle("frontier", column === heard - 1);
  return created;
}

function textWidth(text) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.font = `${FONT_SIZE}px system-ui, sans-serif`;
  return context.measureText(text).width;
}

function svgText(text, attributes) {
  const direction = textDirection([text]);
  return svgElement("text", { "dominant-baseline": "central", "font-size": FONT_SIZE, direction, ...attributes }, text);
}

function patterns(colors) {
  const hatch = (id, color, opacity) =>
    svgElement(
      "pattern",
      { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svgElement("rect", { width: 2, height: 6, fill: color, "fill-opacity": opacity }),
    );
  return svgElement("defs", {}, hatch("unheard", colors.line, 1), hatch("forbidden", `rgb(${colors.negative})`, 0.35));
}
