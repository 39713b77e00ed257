// An image and its caption: the current word shows its attention as an overlay, which darkens the rest of the image. The overlay
// has the same colors as that of captions/saliency_overlay.py.

import { element, formatPercent, standaloneSvg, svgElement, themeColors } from "./elements.js";
import { filled, gettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";
import { createWordChips, pointingHint, showHint } from "./word_chips.js";

// The overlay darkens cells of low attention with SHADE, and brightens those of high attention with GLOW, which makes the attention
// visible on dark images, too.
const [SHADE, MAX_SHADE_OPACITY] = [[10, 14, 24], 0.82];
const [GLOW, MAX_GLOW_OPACITY] = [[255, 214, 90], 0.12];
const MIN_REGION_SHARE = 0.1; // regions with less attention are not described
const MAX_REGIONS = 3; // in a description
const REGIONS = [
  [gettext("top left"), gettext("top"), gettext("top right")],
  [gettext("left"), gettext("middle"), gettext("right")],
  [gettext("bottom left"), gettext("bottom"), gettext("bottom right")],
];
const DEFAULT_VERB = {
  sentence: gettext("{word} attends to {list}"),
  hint: gettext("{point}: the image shows where the model looks."),
};
const NO_ATTENTION = gettext("This model has no attention: it reads the image as a whole.");

// Sizes of a saved picture, which has one panel per word.
const PANEL_SIDE = 150; // pixels of the longer side of an image
const MIN_PANEL_WIDTH = 0.7 * PANEL_SIDE; // so that a word fits above a narrow image
const GAP = 12;
const LABEL_HEIGHT = 34; // of the word and its probability above an image
const PANELS_PER_ROW = 5;
const MAX_WORD_LENGTH = 18;

// Show the caption in `root`, and the overlay on `content.overlay`.
//
// content: {
//   words, probabilities: the words of the caption,
//   weights: [word][row][column], null if the model has no attention,
//   image: the canvas with the image,
//   overlay: the canvas above it }
// options: as for showRibbons.
// Returns the same as showRibbons; only words below can be highlighted.
export function showImageAttention(root, content, options = {}) {
  let { weights } = content;
  let step = null; // the index of the word that the model has just written
  let verb = DEFAULT_VERB;
  const chips = createWordChips("below", content.words, {
    probabilities: content.probabilities,
    onHighlight: highlight,
    onChoose: (index) => options.onChoose?.("below", index),
  });
  const { words } = chips;
  const description = element("p", { className: "description", ariaLive: "polite" });
  const group = element(
    "div",
    { className: "ribbons caption-words", role: "group", ariaLabel: gettext("words and attention") },
    chips.line,
  );
  root.replaceChildren(group, description);
  addRovingTabindex([words]);
  highlight(null);
  return {
    update,
    highlightBelow: highlight,
    showStep,
    svg: () => captionSvg(root, content, weights),
    words: { below: words },
  };

  // Show other weights for the same words. `verbs` say what a word does to the image.
  function update({ weights: newWeights, verbs = [DEFAULT_VERB] }) {
    weights = newWeights;
    [verb] = verbs;
    highlight(null);
  }

  // Show the caption as it is when the model has just written the word at `index`; null shows all of it.
  function showStep(index) {
    step = index;
    chips.showStep(index);
    highlight(null);
  }

  function highlight(index) {
    const current = index ?? step;
    words.forEach((word, i) => word.classList.toggle("active", i === current));
    const context = content.overlay.getContext("2d");
    context.clearRect(0, 0, content.overlay.width, content.overlay.height);
    if (current === null) {
      showHint(description, hint());
      return;
    }
    if (weights) drawOverlay(context, weights[current]);
    description.textContent = describe(current);
  }

  function hint() {
    if (!words.length) return gettext("The caption is empty.");
    const instruction = weights ? filled(verb.hint, { point: pointingHint() }) : NO_ATTENTION;
    const legend = gettext("The bar under a word shows its probability.");
    return [instruction, legend, options.hint].filter(Boolean).join(" ");
  }

  function describe(index) {
    const share = formatPercent(content.probabilities[index]);
    const word = gettext("{word} (probability {share})", { word: content.words[index], share });
    if (!weights) return word;
    const regions = regionShares(weights[index])
      .filter(({ share }) => share >= MIN_REGION_SHARE)
      .slice(0, MAX_REGIONS);
    const list = regions.map(({ name, share }) => `${name} ${formatPercent(share)}`).join(", ");
    const values = { word, list: list || gettext("nothing in particular") };
    return filled(verb.sentence, values);
  }
}

// Draw the image alone, and then once for each word with its overlay (as Xu et al. 2015 do).
function captionSvg(root, content, weights) {
  const colors = themeColors(root, "background", "text", "muted");
  const { image, words, probabilities } = content;
  const scale = PANEL_SIDE / Math.max(image.width, image.height);
  const width = Math.max(1, Math.round(scale * image.width));
  const height = Math.max(1, Math.round(scale * image.height));
  const [columnWidth, rowHeight] = [Math.max(width, MIN_PANEL_WIDTH) + GAP, height + LABEL_HEIGHT + 14];
  const indices = [null, ...words.keys()];
  const panels = indices.map((index, position) => {
    const x = GAP + (position % PANELS_PER_ROW) * columnWidth;
    const y = GAP + Math.floor(position / PANELS_PER_ROW) * rowHeight;
    const overlay = index === null ? null : weights?.[index];
    const href = panelUri(image, overlay, 2 * width, 2 * height); // twice as many pixels, for sharp prints
    const panel = svgElement("g", {}, svgElement("image", { x, y: y + LABEL_HEIGHT, width, height, href }));
    if (index !== null) panel.prepend(...panelLabels(words[index], probabilities[index], x + width / 2, y, colors));
    return panel;
  });
  const columnCount = Math.min(PANELS_PER_ROW, panels.length);
  const rowCount = Math.ceil(panels.length / PANELS_PER_ROW);
  return standaloneSvg(GAP + columnCount * columnWidth, GAP + rowCount * rowHeight, colors.background, ...panels);
}

function panelLabels(word, probability, x, y, colors) {
  const position = { x, "text-anchor": "middle" };
  return [
    svgElement("text", { ...position, y: y + 14, fill: colors.text, "font-size": 14 }, truncate(word)),
    svgElement("text", { ...position, y: y + 28, fill: colors.muted, "font-size": 11 }, formatPercent(probability)),
  ];
}

function panelUri(image, overlayWeights, width, height) {
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, width, height);
  if (overlayWeights) drawOverlay(context, overlayWeights);
  return canvas.toDataURL("image/jpeg", 0.85);
}

function truncate(word) {
  return word.length > MAX_WORD_LENGTH ? `${word.slice(0, MAX_WORD_LENGTH - 1)}…` : word;
}

// Draw the overlay for weights [row][column] over the whole canvas.
function drawOverlay(context, weights) {
  const flatWeights = weights.flat();
  const maximum = flatWeights.reduce((largest, weight) => Math.max(largest, weight), 1e-9);
  drawLayer(SHADE, (brightness) => MAX_SHADE_OPACITY * (1 - brightness));
  drawLayer(GLOW, (brightness) => MAX_GLOW_OPACITY * brightness * brightness);

  function drawLayer(color, opacity) {
    const cells = element("canvas", { width: weights[0].length, height: weights.length });
    const pixels = new ImageData(cells.width, cells.height);
    flatWeights.forEach((weight, i) => {
      const alpha = Math.round(255 * opacity(weight / maximum));
      pixels.data.set([...color, alpha], 4 * i);
    });
    cells.getContext("2d").putImageData(pixels, 0, 0);
    context.drawImage(cells, 0, 0, context.canvas.width, context.canvas.height); // the browser interpolates between the cells
  }
}

// Divide an image into 3 × 3 regions, and return their shares of the weights [row][column] as { name, share }, the largest first.
function regionShares(weights) {
  const shares = new Map();
  weights.forEach((row, r) =>
    row.forEach((weight, c) => {
      const name = REGIONS[third(r, weights.length)][third(c, row.length)];
      shares.set(name, (shares.get(name) ?? 0) + weight);
    }),
  );
  return [...shares].map(([name, share]) => ({ name, share })).sort((a, b) => b.share - a.share);
}

// Return which third of a row of cells contains the center of a cell: 0, 1 or 2.
function third(index, cellCount) {
  return Math.floor(((2 * index + 1) * 3) / (2 * cellCount));
}
