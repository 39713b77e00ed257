// The operations of attention, on plain arrays. A matrix is an array of rows.

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

export function mean(values) {
  return sum(values) / values.length;
}

export function argmax(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

export function maxAbs(values) {
  return Math.max(...values.map(Math.abs));
}

export function dot(a, b) {
  return a.reduce((total, x, i) => total + x * b[i], 0);
}

export function matrixVectorProduct(matrix, vector) {
  return matrix.map((row) => dot(row, vector));
}

// The sum of all vectors, each multiplied by its weight.
export function weightedSum(weights, vectors) {
  return vectors[0].map((_, k) => weights.reduce((total, weight, i) => total + weight * vectors[i][k], 0));
}

// The softmax of the scores whose `mask` is true. Masked positions have weight 0, also if all of them are masked.
export function softmax(scores, mask = scores.map(() => true)) {
  const maximum = scores.reduce((largest, score, i) => (mask[i] ? Math.max(largest, score) : largest), -Infinity);
  const exponentials = scores.map((score, i) => (mask[i] ? Math.exp(score - maximum) : 0));
  const total = sum(exponentials);
  return exponentials.map((value) => (total ? value / total : 0));
}
