// A translator from the record that `translucid export --to web` writes into model.js.

class WebTranslator {
  constructor(record) {
    this.source = new Tokenizer(record.tokenizers[0]);
    this.target = record.tokenizers[1] ? new Tokenizer(record.tokenizers[1]) : this.source;
    this.model = new { transformer: Transformer, recurrent: Bahdanau }[record.options.kind](record.options, readWeights(record));
    this.search = { ...record.search, wordStarts: this.target.pieces.map((piece) => piece.startsWith(SPACE)) };
  }

  // The ids of a sentence, end token included.
  encode(sentence) {
    return [...this.source.encode(sentence), this.search.end];
  }

  // The best output for a sentence of ids, and the tree of the beam search, without the heads with the names `off`.
  translate(ids, off = []) {
    const { best, tree } = beamSearch(this.model, ids, this.search, { off: new Set(off) });
    return { ...best, tree, text: this.target.decode(best.tokens) };
  }

  // The attention weights by which a given output is predicted, by name [H, T, S], and the log-probability of each token.
  inspect(ids, tokens, off = []) {
    const maps = {};
    const onAttention = (name, head, weights) => { ((maps[name] ??= [])[head] ??= []).push(weights); };
    const hooks = { off: new Set(off), onAttention };
    let [state, last] = [this.model.start(this.model.encode(ids, hooks)), this.search.start];
    const logProbs = tokens.map((token) => {
      const { logits, states } = this.model.step([last], [state], hooks);
      [state] = states;
      last = token;
      return logSoftmax(logits[0])[token];
    });
    return { maps, logProbs };
  }
}

// The weights by name. Vectors and the scale of each row of a matrix are float32, the entries of matrices are int8:
// W_ij = Q_ij / s_i. All floats come first, then all integers, both in the order of `weights`: [name, rows, columns].
function readWeights({ weights, aliases, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const count = weights.reduce((sum, [, rows]) => sum + rows, 0);
  const floats = new Float32Array(bytes.buffer, 0, count);
  const integers = new Int8Array(bytes.buffer, 4 * count);
  const byName = {};
  let [float, integer] = [0, 0];
  for (const [name, rows, columns] of weights) {
    const numbers = Float64Array.from(floats.subarray(float, float += rows));
    byName[name] = columns === null ? numbers : Array.from(numbers, (scale) => (
      Float64Array.from(integers.subarray(integer, integer += columns), (value) => Math.fround(value / scale))
    ));
  }
  for (const [name, same] of Object.entries(aliases)) byName[name] = byName[same];
  return byName;
}
