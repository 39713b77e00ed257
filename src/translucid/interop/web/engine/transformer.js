// The Transformer (Vaswani et al. 2017, arXiv 1706.03762). H heads of width d = D / H; S source and N target rows.
// `hooks` of all methods: { disabledHeads: the names of heads whose output is 0, onAttention(name, head, weights [S]) }.

class TransformerModel extends Model {
  // E[id] sqrt(D) + P[position] (section 3.4); P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(..) (section 3.5).
  embed(side, id, position) {
    const { width, scale, first_position } = this.options;
    return this.weights[`${side}_embedding.tokens.weight`][id].map((value, i) => {
      const angle = (position + first_position) / 10000 ** ((i - (i % 2)) / width);
      return value * scale + (i % 2 ? Math.cos(angle) : Math.sin(angle));
    });
  }

  // The states [S, D] of a source.
  encode(ids, hooks = {}) {
    let x = ids.map((id, position) => this.embed("source", id, position));
    for (let layer = 0; layer < this.options.encoder_layers; layer += 1) {
      const block = `encoder.${layer}`;
      x = this.residual(`${block}.residuals.0`, x, (rows) => {
        const memory = this.project(`${block}.self`, rows);
        return this.attendHeads(
          `${block}.self`,
          rows,
          rows.map(() => memory),
          hooks,
        );
      });
      x = this.residual(`${block}.residuals.1`, x, (rows) => this.feedForward(`${block}.feed_forward`, rows));
    }
    return this.finalNorm("encoder_norm", x);
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
  step(tokens, states, hooks = {}) {
    let x = tokens.map((token, n) => this.embed("target", token, states[n].length));
    const nextStates = states.map((state) => ({ ...state, length: state.length + 1, past: [] }));
    for (let layer = 0; layer < this.options.decoder_layers; layer += 1) {
      const block = `decoder.${layer}`;
      x = this.residual(`${block}.residuals.0`, x, (rows) => {
        const present = this.project(`${block}.self`, rows);
        const memories = states.map((state, n) => append(state.past[layer], present, n));
        memories.forEach((memory, n) => nextStates[n].past.push(memory));
        return this.attendHeads(`${block}.self`, rows, memories, hooks);
      });
      const sourceMemories = states.map(({ memory }) => memory[layer]);
      x = this.residual(`${block}.residuals.1`, x, (rows) =>
        this.attendHeads(`${block}.cross`, rows, sourceMemories, hooks),
      );
      x = this.residual(`${block}.residuals.2`, x, (rows) => this.feedForward(`${block}.feed_forward`, rows));
    }
    return { logits: linear(this.parameters("output"), this.finalNorm("decoder_norm", x)), states: nextStates };
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
  feedForward(name, x) {
    const f = { relu: (value) => Math.max(0, value), swish: (value) => value * sigmoid(value) }[
      this.options.nonlinearity
    ];
    const inner = linear(this.parameters(`${name}.inner`), x).map((row) => row.map(f));
    return linear(this.parameters(`${name}.outer`), inner);
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
  attendHeads(name, x, memories, hooks) {
    const { heads, width } = this.options;
    const queries = linear(this.parameters(`${name}_attention.query`), x);
    const contexts = queries.map((query, n) => {
      const concatenated = new Float64Array(width);
      for (let h = 0; h < heads; h += 1) {
        const first = (h * width) / heads;
        const headQuery = query.subarray(first, first + width / heads);
        const { context, weights } = attend(headQuery, memories[n].keys[h], memories[n].values[h]);
        hooks.onAttention?.(name, h, weights);
        if (!hooks.disabledHeads?.has(`${name}.head.${h}`)) concatenated.set(context, first);
      }
      return concatenated;
    });
    return linear(this.parameters(`${name}_attention.output`), contexts);
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
