// The few operations of attention, on plain arrays.

export function dot(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

export function times(matrix, vector) {
  return matrix.map((row) => dot(row, vector));
}

// Weights of scores; where `mask` is false exactly 0, and all 0 if it is false everywhere.
export function softmax(scores, mask = scores.map(() => true)) {
  const top = Math.max(...scores.filter((_, i) => mask[i]));
  const powers = scores.map((score, i) => (mask[i] ? Math.exp(score - top) : 0));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => (sum ? power / sum : 0));
}

// Weights times vectors.
export function mixed(weights, vectors) {
  return vectors[0].map((_, k) => weights.reduce((sum, w, i) => sum + w * vectors[i][k], 0));
}

export function largest(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

export function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}
