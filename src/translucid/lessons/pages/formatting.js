// Formats word pieces and numbers for display.

// A word piece without SentencePiece's mark. A dot marks a piece that continues a word; special tokens stay as they are.
export function formatPiece(piece) {
  if (piece.startsWith("▁")) return piece.slice(1) || "␣";
  return piece.startsWith("<") ? piece : `·${piece}`;
}

// A number with a minus sign instead of a hyphen; −0 is written as 0.
export function formatNumber(value, digits = 2) {
  const text = value.toFixed(digits);
  const isZero = Number(text) === 0;
  return isZero ? text.replace("-", "") : text.replace("-", "−");
}

// A fraction as a percentage.
export function formatPercent(fraction, digits = 0) {
  return `${formatNumber(100 * fraction, digits)} %`;
}
