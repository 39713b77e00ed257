// The equations that both models share. A vector is a Float64Array, a matrix an array of rows.
//
// The models pass what they compute to `at(name, rows)`, which returns the rows with which they continue: it can read or replace
// them, as points.py does in Python, by the same names. `at(name.head.h, attention)` gets what `attend` returns.

const unchanged = (_name, value) => value;

class Model {
  // options: those of the model in the run's configuration; weights: matrices and vectors by PyTorch's names.
  constructor(options, weights) {
    this.options = options;
    this.weights = weights;
  }

  // The weight and the bias of a module; a GRU has several of both, with suffixes.
  parameters(name, suffix = "") {
    return { weight: this.weights[`${name}.weight${suffix}`], bias: this.weights[`${name}.bias${suffix}`] };
  }
}

// a · b, as four independent sums, which the processor can compute at the same time.
function dot(a, b) {
  const length = a.length;
  let first = 0; // and so on: reading several from an array would take as long as the sums, until the code is compiled
  let second = 0;
  let third = 0;
  let fourth = 0;
  let i = 0;
  for (; i + 3 < length; i += 4) {
    first += a[i] * b[i];
    second += a[i + 1] * b[i + 1];
    third += a[i + 2] * b[i + 2];
    fourth += a[i + 3] * b[i + 3];
  }
  for (; i < length; i += 1) first += a[i] * b[i];
  return first + second + third + fourth;
}

// W x + b for each row x. The outer loops run over the rows of W, so that each of them stays in the cache for all x.
function linear({ weight, bias }, rows) {
  const outputs = rows.map(() => (bias ? bias.slice() : new Float64Array(weight.length)));
  let n = 0;
  for (; n + 3 < rows.length; n += 4) addFour(weight, rows.slice(n, n + 4), outputs.slice(n, n + 4));
  for (; n < rows.length; n += 1) for (let i = 0; i < weight.length; i += 1) outputs[n][i] += dot(weight[i], rows[n]);
  return outputs;
}

// Add W x for four rows x to four outputs: each weight is read once for all four, which takes half the time.
function addFour(weight, [a, b, c, d], [outputA, outputB, outputC, outputD]) {
  for (let i = 0; i < weight.length; i += 1) {
    const row = weight[i];
    let sumA = 0;
    let sumB = 0;
    let sumC = 0;
    let sumD = 0;
    for (let j = 0; j < row.length; j += 1) {
      const value = row[j];
      sumA += value * a[j];
      sumB += value * b[j];
      sumC += value * c[j];
      sumD += value * d[j];
    }
    outputA[i] += sumA;
    outputB[i] += sumB;
    outputC[i] += sumC;
    outputD[i] += sumD;
  }
}

function add(a, b) {
  return a.map((value, i) => value + b[i]);
}

function sigmoid(value) {
  return 1 / (1 + Math.exp(-value));
}

// log softmax(x) = x - log sum_j exp(x_j). The largest score is subtracted first, so that exp does not overflow.
function logSoftmax(scores) {
  const largest = scores.reduce((maximum, score) => Math.max(maximum, score), -Infinity);
  const sum = scores.reduce((total, score) => total + Math.exp(score - largest), 0);
  const normalizer = largest + Math.log(sum);
  return scores.map((score) => score - normalizer);
}

function softmax(scores) {
  return logSoftmax(scores).map(Math.exp);
}

// (x - mean) / sqrt(variance + 1e-5) * g + b for each row x (Ba et al. 2016, arXiv 1607.06450).
function layerNorm({ weight, bias }, rows) {
  return rows.map((row) => {
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    const deviation = Math.sqrt(variance + 1e-5);
    return row.map((value, i) => ((value - mean) / deviation) * weight[i] + bias[i]);
  });
}

// Attention(q, K, V) = softmax(score(q, K)) V for one query: the context, and all that leads to it.
function attend(query, keys, values, score = scaledDotProduct) {
  const scores = keys.map((key) => score(query, key));
  const weights = softmax(scores);
  const context = new Float64Array(values[0].length);
  weights.forEach((weight, s) => {
    for (let i = 0; i < context.length; i += 1) context[i] += weight * values[s][i];
  });
  return { query, keys, values, scores, weights, context };
}

// q k^T / sqrt(d) (Vaswani et al. 2017, arXiv 1706.03762, equation 1).
function scaledDotProduct(query, key) {
  return dot(query, key) / Math.sqrt(query.length);
}
