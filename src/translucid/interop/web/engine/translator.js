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
  // disabledHeads: the names of heads whose output is set to 0.
  translate(ids, disabledHeads = []) {
    const { best, tree } = beamSearch(this.model, ids, this.search, { disabledHeads: new Set(disabledHeads) });
    return { ...best, tree, text: this.target.decode(best.tokens) };
  }

  // Forced decoding of an output: attention weights by name [H, T, S], and the log-probability of each token.
  inspect(ids, tokens, disabledHeads = []) {
    const maps = {};
    const onAttention = (name, head, weights) => {
      maps[name] ??= [];
      maps[name][head] ??= [];
      maps[name][head].push(weights);
    };
    const hooks = { disabledHeads: new Set(disabledHeads), onAttention };
    let [state, previous] = [this.model.start(this.model.encode(ids, hooks)), this.search.start];
    const logProbs = tokens.map((token) => {
      const { logits, states } = this.model.step([previous], [state], hooks);
      [state] = states;
      previous = token;
      return logSoftmax(logits[0])[token];
    });
    return { maps, logProbs };
  }
}

// The weights by name. Vectors and the scale s_i of each row of a matrix are float32, the entries Q_ij of a matrix are int8:
// W_ij = Q_ij / s_i. All floats come first, then all integers, both in the order of `weights`: [name, rows, columns].
function readWeights({ weights, aliases, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
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
      const entries = integers.subarray(integerOffset + row * columns, integerOffset + (row + 1) * columns);
      return Float64Array.from(entries, (entry) => Math.fround(entry / scale));
    }
  }
  for (const [alias, name] of Object.entries(aliases)) weightsByName[alias] = weightsByName[name];
  return weightsByName;
}
