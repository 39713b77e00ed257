// Beam search (Sutskever et al. 2014, arXiv 1409.3215, section 3.2) for the output of highest score,
//     score(Y) = log p(Y) / lp(Y),   lp(Y) = ((5 + |Y|) / 6)^alpha   (Wu et al. 2016, arXiv 1609.08144, equation 14)
// where |Y| counts the end token. Each step keeps the K most probable hypotheses, one fewer for each that has ended.

// options: those of the run's `decoding`, the ids `start`, `end` and `never` (not generated), and whether each id starts a word.
// Returns the best hypothesis { tokens, score, node }, with its end token, and the tree of all hypotheses.
function beamSearch(model, source, options, at = unchanged) {
  const { beam, start, end } = options;
  const limit = Math.max(1, Math.floor((source.length - 1) * options.max_length_ratio) + options.max_length_extra);
  const penalty = (length) => ((5 + length) / 6) ** options.length_penalty;
  // The highest score that a longer output can have: it can't be more probable, and its penalty is largest at the limit.
  const scoreBound = (logProb) => logProb / penalty(limit + 1);
  const isEnded = ({ tokens }) => tokens.at(-1) === end;
  const tree = [{ parent: -1, token: start, log_prob: 0, fate: "kept" }];
  /** @type {any} */
  let best = { score: -Infinity };
  let remainingBeam = beam;
  /** @type {any[]} */
  let hypotheses = [{ tokens: [], logProb: 0, node: 0, state: model.start(model.encode(source, at)) }];
  while (hypotheses.length) {
    const lastTokens = hypotheses.map(({ tokens }) => tokens.at(-1) ?? start);
    const { logits, states } = model.step(
      lastTokens,
      hypotheses.map(({ state }) => state),
      at,
    );
    const candidates = hypotheses.flatMap(({ tokens, logProb, node: parent }, n) => {
      const logProbs = forbidTokens(logSoftmax(logits[n]), tokens, limit, options);
      /** @returns {any} */
      const extend = (token) => ({
        tokens: [...tokens, token],
        logProb: logProb + logProbs[token],
        parent,
        state: states[n],
      });
      return topK(logProbs, beam).map(extend);
    });
    candidates.sort((a, b) => b.logProb - a.logProb); // a stable sort: equally probable candidates keep their order
    candidates.length = Math.min(candidates.length, beam);
    const kept = candidates.filter(({ logProb }, rank) => rank < remainingBeam && scoreBound(logProb) >= best.score);
    const ended = kept.filter(isEnded);
    for (const hypothesis of ended) {
      hypothesis.score = hypothesis.logProb / penalty(hypothesis.tokens.length);
      if (hypothesis.score > best.score) best = hypothesis;
    }
    remainingBeam -= ended.length;
    hypotheses = kept.filter((hypothesis) => !isEnded(hypothesis) && scoreBound(hypothesis.logProb) >= best.score);
    for (const hypothesis of candidates) {
      hypothesis.node = tree.length;
      const { parent, tokens, logProb, score } = hypothesis;
      const fate = (ended.includes(hypothesis) && "ended") || (hypotheses.includes(hypothesis) && "kept") || "dropped";
      tree.push({ parent, token: tokens.at(-1), log_prob: logProb, score, fate });
    }
  }
  return { best, tree };
}

// Set the log-probabilities of forbidden tokens to -Infinity. A hypothesis at the limit can only end.
function forbidTokens(logProbs, tokens, limit, options) {
  const endLogProb = logProbs[options.end];
  const forbid = (token) => {
    logProbs[token] = -Infinity;
  };
  options.never.forEach(forbid);
  if (tokens.length < options.min_length) forbid(options.end);
  loopingTokens(tokens, options.max_loops, options.wordStarts).forEach(forbid);
  if (tokens.length >= limit || logProbs.every((value) => value === -Infinity)) {
    logProbs.fill(-Infinity);
    logProbs[options.end] = endLogProb;
  }
  return logProbs;
}

// The first tokens of n-grams, up to 6 tokens with a word start among them, that stand maxLoops times in a row at the end.
function loopingTokens(tokens, maxLoops, wordStarts) {
  const looping = [];
  for (let n = 1; maxLoops && n <= 6 && n * maxLoops <= tokens.length; n += 1) {
    const tail = tokens.slice(-n * maxLoops);
    const ngram = tail.slice(-n);
    const isRepeated = tail.every((token, i) => token === ngram[i % n]);
    if (isRepeated && ngram.some((token) => wordStarts[token])) looping.push(ngram[0]);
  }
  return looping;
}

// The ids of the k highest values, the highest first, equal ones in the order of their ids. Ids of -Infinity are left out.
function topK(values, k) {
  const top = [];
  values.forEach((value, id) => {
    if (value === -Infinity || (top.length === k && value <= values[top.at(-1)])) return;
    let rank = top.length;
    while (rank && values[top[rank - 1]] < value) rank -= 1;
    top.splice(rank, 0, id);
    top.length = Math.min(top.length, k);
  });
  return top;
}
