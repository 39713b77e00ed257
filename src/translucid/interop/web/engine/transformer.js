// The Transformer (Vaswani et al. 2017, arXiv 1706.03762). H heads of width d = D / H; S source and N target rows.
// `at` of all methods: see layers.js.

class TransformerModel extends Model {
  // E[id] sqrt(D) + P[position] (section 3.4) for each id.
  embed(side, ids, positions, at) {
    const embeddings = this.weights[`${side}_embedding.tokens.weight`];
    const tokens = at(
      `${side}.tokens`,
      ids.map((id) => Float64Array.from(embeddings[id], (value) => value * this.options.scale)),
    );
    const encodings = at(
      `${side}.positions`,
      positions.map((position) => this.positionalEncoding(position)),
    );
    return tokens.map((row, n) => add(row, encodings[n]));
  }

  // P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(p / 10000^(2i/D)) (section 3.5).
  positionalEncoding(position) {
    const { width, first_position } = this.options;
    return new Float64Array(width).map((_, i) => {
      const angle = (position + first_position) / 10000 ** ((i - (i % 2)) / width);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  // The states [S, D] of a source.
  encode(ids, at = unchanged) {
    let x = at("encoder.input", this.embed("source", ids, [...ids.keys()], at));
    for (let layer = 0; layer < this.options.encoder_layers; layer += 1) {
      const block = `encoder.${layer}`;
      x = this.residual(`${block}.residuals.0`, x, (rows) => {
        const memory = this.project(`${block}.self`, rows);
        return this.attendHeads(
          `${block}.self`,
          rows,
          rows.map(() => memory),
          at,
        );
      });
      x = at(`${block}.after_self`, x);
      x = this.residual(`${block}.residuals.1`, x, (rows) => this.feedForward(`${block}.feed_forward`, rows, at));
      x = at(`${block}.output`, x);
    }
    return at("encoder.output", this.finalNorm("encoder_norm", x));
  }

  // The decoder's first state: for each layer, keys and values of the source, and of earlier target positions, none yet.
  start(states) {
    /** @type {object[][]} */
    const [memory, past] = [[], []];
    for (let layer = 0; layer < this.options.decoder_layers; layer += 1) {
      memory.push(this.project(`decoder.${layer}.cross`, states));
      past.push({ keys: Array(this.options.heads).fill([]), values: Array(this.options.heads).fill([]) });
    }
    return { length: 0, memory, past };
  }

  // Feed one token to each of N hypotheses: the logits [N, V] of the next tokens, and the states after the tokens.
  step(tokens, states, at = unchanged) {
    const nextStates = states.map((state) => ({ ...state, length: state.length + 1, past: [] }));
    const extendPast = (layer, present) => {
      const memories = states.map((state, n) => append(state.past[layer], present, n));
      memories.forEach((memory, n) => nextStates[n].past.push(memory));
      return memories;
    };
    return { logits: this.decode(tokens, states, extendPast, at), states: nextStates };
  }

  // The logits [T, V] after each of T tokens, where each position also reads the later ones: self-attention without the mask.
  decodeUnmasked(tokens, start, at) {
    const states = tokens.map((_, t) => ({ ...start, length: t }));
    return this.decode(tokens, states, (_, present) => tokens.map(() => present), at);
  }

  // The logits [N, V] after N tokens, each with its state: its position, `length`, and the memory of the source.
  // selfMemories(layer, keys and values of the N tokens): the keys and values that each token reads in self-attention.
  decode(tokens, states, selfMemories, at) {
    const positions = states.map(({ length }) => length);
    let x = at("decoder.input", this.embed("target", tokens, positions, at));
    for (let layer = 0; layer < this.options.decoder_layers; layer += 1) {
      const block = `decoder.${layer}`;
      x = this.residual(`${block}.residuals.0`, x, (rows) => {
        const memories = selfMemories(layer, this.project(`${block}.self`, rows));
        return this.attendHeads(`${block}.self`, rows, memories, at);
      });
      x = at(`${block}.after_self`, x);
      const sourceMemories = states.map(({ memory }) => memory[layer]);
      x = this.residual(`${block}.residuals.1`, x, (rows) =>
        this.attendHeads(`${block}.cross`, rows, sourceMemories, at),
      );
      x = at(`${block}.after_cross`, x);
      x = this.residual(`${block}.residuals.2`, x, (rows) => this.feedForward(`${block}.feed_forward`, rows, at));
      x = at(`${block}.output`, x);
    }
    const features = at("decoder.output", this.finalNorm("decoder_norm", x));
    return at("logits", linear(this.parameters("output"), features));
  }

  // LayerNorm(x + sublayer(x)) (section 5.4), or x + sublayer(LayerNorm(x)) (Xiong et al. 2020, arXiv 2002.04745).
  residual(name, x, sublayer) {
    const norm = (rows) => layerNorm(this.parameters(`${name}.norm`), rows);
    const addToInput = (rows) => x.map((row, n) => add(row, rows[n]));
    return this.options.norm === "pre" ? addToInput(sublayer(norm(x))) : norm(addToInput(sublayer(x)));
  }

  // Pre-norm blocks do not normalize their output, so the last one is followed by a norm.
  finalNorm(name, x) {
    return this.options.norm === "pre" ? layerNorm(this.parameters(name), x) : x;
  }

  // f(x W_1 + b_1) W_2 + b_2, where f is max(0, x) or x sigmoid(x) (section 3.3).
  feedForward(name, x, at) {
    const f = { relu: (value) => Math.max(0, value), swish: (value) => value * sigmoid(value) }[
      this.options.nonlinearity
    ];
    const inner = linear(this.parameters(`${name}.inner`), x).map((row) => row.map(f));
    return at(name, linear(this.parameters(`${name}.outer`), at(`${name}.inner`, inner)));
  }

  // The keys and values of each head, both [H, S, d], of states [S, D]. One matrix computes both, keys first.
  project(name, states) {
    const rows = linear(this.parameters(`${name}_attention.key_value`), states); // [S, 2 D]
    const { heads, width } = this.options;
    const sliceRows = (first) => rows.map((row) => row.subarray(first, first + width / heads));
    const splitHeads = (offset) => Array.from({ length: heads }, (_, h) => sliceRows(offset + (h * width) / heads));
    return { keys: splitHeads(0), values: splitHeads(width) };
  }

  // Concat(head_1, .., head_H) W^O, where head_h = Attention(x W_h^Q, K_h, V_h). Each row x has its memory of K and V.
  attendHeads(name, x, memories, at) {
    const { heads, width } = this.options;
    const queries = at(`${name}.queries`, linear(this.parameters(`${name}_attention.query`), x));
    const contexts = queries.map((query, n) => {
      const concatenated = new Float64Array(width);
      for (let h = 0; h < heads; h += 1) {
        const first = (h * width) / heads;
        const headQuery = query.subarray(first, first + width / heads);
        const attention = attend(headQuery, memories[n].keys[h], memories[n].values[h]);
        concatenated.set(at(`${name}.head.${h}`, attention).context, first);
      }
      return concatenated;
    });
    return at(`${name}.output`, linear(this.parameters(`${name}_attention.output`), contexts));
  }
}

// The keys and values of earlier positions, followed by row n of the present ones. The earlier rows are shared, not copied.
// No mask is needed, because later positions do not exist yet.
function append(past, present, n) {
  return {
    keys: past.keys.map((rows, h) => [...rows, present.keys[h][n]]),
    values: past.values.map((rows, h) => [...rows, present.values[h][n]]),
  };
}
