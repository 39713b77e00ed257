// A translator with the model that `translucid export --to web` writes to model.js.

class WebTranslator {
  constructor(record) {
    this.source = new Tokenizer(record.tokenizers[0]);
    this.target = record.tokenizers[1] ? new Tokenizer(record.tokenizers[1]) : this.source;
    this.model = new { transformer: TransformerModel, recurrent: BahdanauModel }[record.options.kind](
      record.options,
      readWeights(record),
    );
    this.search = { ...record.search, wordStarts: this.target.pieces.map((piece) => piece.startsWith(SPACE)) };
  }

  // The ids of a sentence, with the end token.
  encode(sentence) {
    return [...this.source.encode(sentence), this.search.end];
  }

  // The best output for the ids of a sentence, and the tree of the beam search.
  // at: what changes the model, see layers.js.
  translate(ids, at = unchanged) {
    const { best, tree } = beamSearch(this.model, ids, this.search, at);
    return { ...best, tree, text: this.target.decode(best.tokens) };
  }

  // Forced decoding of an output: the rows of each point by name, and the log-probability of each token.
  // isMasked: whether each position of the decoder reads the positions up to its own only; false is for Transformers.
  inspect(ids, tokens, at = unchanged, isMasked = true) {
    const points = {};
    const record = (name, value) => {
      const kept = at(name, value);
      points[name] ??= [];
      points[name].push(...(Array.isArray(kept) ? kept : [kept]));
      return kept;
    };
    let [state, previous] = [this.model.start(this.model.encode(ids, record)), this.search.start];
    if (!isMasked) {
      const logits = this.model.decodeUnmasked([previous, ...tokens.slice(0, -1)], state, record);
      return { points, logProbs: tokens.map((token, t) => logSoftmax(logits[t])[token]) };
    }
    const logProbs = tokens.map((token) => {
      const { logits, states } = this.model.step([previous], [state], record);
      [state] = states;
      previous = token;
      return logSoftmax(logits[0])[token];
    });
    return { points, logProbs };
  }
}

// What changes a model: { off: names of points whose rows become 0, and of heads, whose context does; isScaled: whether scores
// are divided by √d }. Without the scale, queries are multiplied by √d. The mask is not part of it, see `inspect`.
function changed({ off, isScaled }, { width, heads }) {
  const factor = Math.sqrt(width / heads);
  return (name, value) => {
    if (!isScaled && name.endsWith(".queries")) return value.map((row) => row.map((x) => x * factor));
    if (!off.includes(name)) return value;
    if (!Array.isArray(value)) return { ...value, context: new Float64Array(value.context.length) };
    return value.map((row) => new Float64Array(row.length));
  };
}

// The weights by name. Vectors and the scale s_i of each row of a matrix are float32, the entries Q_ij of a matrix are int8:
// W_ij = Q_ij / s_i. All floats come first, then all integers, both in the order of `weights`: [name, rows, columns].
function readWeights({ weights, aliases, data }) {
  const bytes = fromBase64(data);
  const floatCount = weights.reduce((sum, [, rows]) => sum + rows, 0);
  const floats = new Float32Array(bytes.buffer, 0, floatCount);
  const integers = new Int8Array(bytes.buffer, 4 * floatCount);
  const weightsByName = {};
  let [floatOffset, integerOffset] = [0, 0];
  for (const [name, rows, columns] of weights) {
    const numbers = Float64Array.from(floats.subarray(floatOffset, floatOffset + rows));
    floatOffset += rows;
    weightsByName[name] = columns === null ? numbers : Array.from(numbers, readRow);
    integerOffset += rows * columns;

    function readRow(scale, row) {
      const entries = new Float32Array(columns);
      for (let j = 0; j < columns; j += 1) entries[j] = integers[integerOffset + row * columns + j] / scale;
      return entries;
    }
  }
  for (const [alias, name] of Object.entries(aliases)) weightsByName[alias] = weightsByName[name];
  return weightsByName;
}
