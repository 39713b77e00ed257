// The first translator with attention (Bahdanau et al. 2015, arXiv 1409.0473, section 3.1 and appendix A.2).
// `at` of all methods: see layers.js; the only attention is decoder.0.cross, with one head.

class BahdanauModel extends Model {
  // E[id] sqrt(D) for each id.
  embed(side, ids) {
    const embeddings = this.weights[`${side}_embedding.tokens.weight`];
    return ids.map((id) => Float64Array.from(embeddings[id], (value) => value * this.options.scale));
  }

  // The memory: the states y_j = [forward h_j; backward h_j], the keys U y_j, and the decoder's first state tanh(W h).
  encode(ids, at = unchanged) {
    const embeddings = at("encoder.input", this.embed("source", ids));
    const forward = at("encoder.forward", this.runGru("_l0", embeddings));
    const backward = at("encoder.backward", this.runGru("_l0_reverse", [...embeddings].reverse()).reverse());
    const states = at(
      "encoder.output",
      forward.map((h, j) => concatenate(h, backward[j])),
    );
    const [initial] = linear(this.parameters("encoder.bridges.0"), [concatenate(forward.at(-1), backward[0])]);
    return { states, keys: linear(this.parameters("decoder.score.key"), states), initial: initial.map(Math.tanh) };
  }

  // The states of an encoder layer after each input; the state before the first is 0.
  runGru(layer, inputs) {
    const states = [];
    for (const input of linear(this.parameters("encoder.recurrence.rnn", `_ih${layer}`), inputs)) {
      const previous = states.at(-1) ?? new Float64Array(input.length / 3);
      const [hidden] = linear(this.parameters("encoder.recurrence.rnn", `_hh${layer}`), [previous]);
      states.push(gru(input, hidden, previous));
    }
    return states;
  }

  start(memory) {
    return { memory, s: memory.initial };
  }

  // Feed one token to each of N hypotheses: the logits [N, V] of the next tokens, and the states after the tokens.
  step(tokens, states, at = unchanged) {
    const embeddings = at("decoder.input", this.embed("target", tokens));
    const contexts = this.contexts(states, at);
    // s_i = f(s_{i-1}, [E w_{i-1}; c_i])
    const x = embeddings.map((embedding, n) => concatenate(embedding, contexts[n]));
    const inputs = linear(this.parameters("decoder.recurrence.rnn", "_ih_l0"), x);
    const hidden = linear(
      this.parameters("decoder.recurrence.rnn", "_hh_l0"),
      states.map(({ s }) => s),
    );
    const nextRows = at(
      "decoder.0.output",
      states.map(({ s }, n) => gru(inputs[n], hidden[n], s)),
    );
    const nextStates = states.map(({ memory }, n) => ({ memory, s: nextRows[n] }));
    // t_i: a maxout layer of [s_i; E w_{i-1}; c_i], the larger of each pair of outputs (equation 4 and section A.2.2)
    const features = nextStates.map(({ s }, n) => concatenate(s, embeddings[n], contexts[n]));
    const maxout = (row) => row.subarray(0, row.length / 2).map((_, i) => Math.max(row[2 * i], row[2 * i + 1]));
    const readouts = at("decoder.output", linear(this.parameters("decoder.readout"), features).map(maxout));
    return { logits: at("logits", linear(this.parameters("output"), readouts)), states: nextStates };
  }

  // c_i = sum_j alpha_ij y_j, where alpha_i = softmax(e_i), e_ij = v^T tanh(W s_{i-1} + U y_j) (equations 5 and 6).
  contexts(states, at) {
    const score = (query, key) => dot(this.weights["decoder.score.v"], add(query, key).map(Math.tanh));
    const queries = linear(
      this.parameters("decoder.score.query"),
      states.map(({ s }) => s),
    );
    return queries.map((query, n) => {
      const { memory } = states[n];
      return at("decoder.0.cross.head.0", attend(query, memory.keys, memory.states, score)).context;
    });
  }
}

// h' = (1 - z) n + z h, where r and z are gates and n = tanh(W x + r U h) (Cho et al. 2014, arXiv 1406.1078).
// `input` is W x + b and `hidden` U h + b; both are concatenated for r, z and n.
function gru(input, hidden, h) {
  const width = h.length;
  return h.map((previous, i) => {
    const r = sigmoid(input[i] + hidden[i]);
    const z = sigmoid(input[width + i] + hidden[width + i]);
    const n = Math.tanh(input[2 * width + i] + r * hidden[2 * width + i]);
    return (1 - z) * n + z * previous;
  });
}

function concatenate(...vectors) {
  return Float64Array.from(vectors.flatMap((vector) => [...vector]));
}
