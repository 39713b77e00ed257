// Formats word pieces, numbers and names for display, in the language of the page.

import { gettext, LANGUAGE } from "./messages.js";

const DECIMAL_POINT = (0.5).toLocaleString(`${LANGUAGE}-u-nu-latn`)[1];

// A word piece without SentencePiece's mark. A dot marks a piece that continues a word; special tokens stay as they are.
export function formatPiece(piece) {
  if (piece.startsWith("▁")) return piece.slice(1) || "␣";
  return piece.startsWith("<") ? piece : `·${piece}`;
}

// A number with a minus sign instead of a hyphen; −0 is written as 0.
export function formatNumber(value, digits = 2) {
  const text = value.toFixed(digits).replace(".", DECIMAL_POINT);
  const isZero = !/[1-9]/.test(text);
  return isZero ? text.replace("-", "") : text.replace("-", "−");
}

// A fraction as a percentage.
export function formatPercent(fraction, digits = 0) {
  return `${formatNumber(100 * fraction, digits)} %`;
}

// The name of a layer in a record: its number, "input" or "embeddings", or "layer" and its number.
export function layerName(layer) {
  if (layer === "input" || layer === "embeddings") return gettext("embeddings");
  return gettext("layer {number}", { number: layer.replace("layer ", "") });
}

// Join texts as in “a, b and c”.
export function joinedTexts(texts) {
  return new Intl.ListFormat(LANGUAGE).format(texts);
}
