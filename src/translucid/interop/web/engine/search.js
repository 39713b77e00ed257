// Beam search (Sutskever et al. 2014, arXiv 1409.3215, section 3.2) for the output of highest score,
//     score(Y) = log p(Y) / lp(Y),   lp(Y) = ((5 + |Y|) / 6)^alpha   (Wu et al. 2016, arXiv 1609.08144, equation 14)
// where |Y| counts the end token. Each step keeps the K most probable prefixes, one fewer for each that has ended.

// options: those of the run's `decoding`, with the ids `start`, `end` and `never`, and `wordStarts`: whether an id begins a
// word. Returns the best output { tokens, score, node } with its end token, and the tree of all prefixes.
function beamSearch(model, source, options, hooks = {}) {
  const { beam, start, end } = options;
  const limit = Math.max(1, Math.floor((source.length - 1) * options.max_length_ratio) + options.max_length_extra);
  const penalty = (length) => ((5 + length) / 6) ** options.length_penalty;
  // The score that a prefix can still reach: it can't become more probable, and its penalty is highest at the limit.
  const reachable = (logProb) => logProb / penalty(limit + 1);
  const isEnded = ({ tokens }) => tokens.at(-1) === end;
  const tree = [{ parent: -1, token: start, log_prob: 0, fate: "kept" }];
  let best = { score: -Infinity };
  let width = beam;
  let prefixes = [{ tokens: [], logProb: 0, node: 0, state: model.start(model.encode(source, hooks)) }];
  while (prefixes.length) {
    const last = prefixes.map(({ tokens }) => tokens.at(-1) ?? start);
    const { logits, states } = model.step(last, prefixes.map(({ state }) => state), hooks);
    const candidates = prefixes.flatMap(({ tokens, logProb, node }, n) => {
      const logProbs = allowed(logSoftmax(logits[n]), tokens, limit, options);
      return topK(logProbs, beam).map((token) => (
        { tokens: [...tokens, token], logProb: logProb + logProbs[token], parent: node, state: states[n] }
      ));
    });
    candidates.sort((a, b) => b.logProb - a.logProb); // equal ones keep their order
    candidates.length = Math.min(candidates.length, beam);
    const kept = candidates.filter(({ logProb }, rank) => rank < width && reachable(logProb) >= best.score);
    const [ended, open] = [kept.filter(isEnded), kept.filter((hypothesis) => !isEnded(hypothesis))];
    for (const hypothesis of ended) {
      hypothesis.score = hypothesis.logProb / penalty(hypothesis.tokens.length);
      if (hypothesis.score > best.score) best = hypothesis;
    }
    width -= ended.length;
    const unpruned = open.filter(({ logProb }) => reachable(logProb) >= best.score);
    for (const hypothesis of candidates) {
      hypothesis.node = tree.length;
      const { parent, tokens, logProb, score } = hypothesis;
      const fate = (ended.includes(hypothesis) && "ended") || (unpruned.includes(hypothesis) && "kept") || "dropped";
      tree.push({ parent, token: tokens.at(-1), log_prob: logProb, score, fate });
    }
    prefixes = unpruned;
  }
  return { best, tree };
}

// Set the log-probabilities of forbidden tokens to -Infinity; a prefix at its limit can only end.
function allowed(logProbs, tokens, limit, options) {
  const ofEnd = logProbs[options.end];
  const forbid = (token) => { logProbs[token] = -Infinity; };
  options.never.forEach(forbid);
  if (tokens.length < options.min_length) forbid(options.end);
  loopTokens(tokens, options.max_loops, options.wordStarts).forEach(forbid);
  if (tokens.length >= limit || logProbs.every((value) => value === -Infinity)) {
    logProbs.fill(-Infinity);
    logProbs[options.end] = ofEnd;
  }
  return logProbs;
}

// The first token of each run of up to 6 tokens, the beginning of a word among them, that stands at the end so many times.
function loopTokens(tokens, times, wordStarts) {
  const forbidden = [];
  for (let n = 1; times && n <= 6 && n * times <= tokens.length; n += 1) {
    const tail = tokens.slice(-n * times);
    const run = tail.slice(-n);
    if (tail.every((token, i) => token === run[i % n]) && run.some((token) => wordStarts[token])) forbidden.push(run[0]);
  }
  return forbidden;
}

// The k ids of highest value, the highest first, of equal ones the lower id first; none of -Infinity.
function topK(values, k) {
  const top = [];
  values.forEach((value, id) => {
    if (value === -Infinity || (top.length === k && value <= values[top.at(-1)])) return;
    let place = top.length;
    while (place && values[top[place - 1]] < value) place -= 1;
    top.splice(place, 0, id);
    top.length = Math.min(top.length, k);
  });
  return top;
}
