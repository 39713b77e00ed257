// What the page asks the engine, and the worker that answers, so that the page reacts while the engine computes.
//
// A page that is opened as a file can start no worker from another file. The source of the worker is therefore that of the
// functions and classes which the page has loaded.

// Answers contain no functions, because they are sent to the page.
class Answers {
  constructor(record) {
    this.translator = new WebTranslator(record);
    this.longest = record.longest;
    /** @type {{ key: string, inspected: any }} */
    this.latest = { key: "", inspected: null };
    /** @type {{ key: string, tree: any[] }} */
    this.latestSearch = { key: "", tree: [] };
  }

  // The ids of a sentence, with the end token.
  encode({ text }) {
    const ids = this.translator.encode(text);
    return { ids, isTooLong: ids.length > this.longest };
  }

  // The translation of a sentence, its search and its attention weights; only the ids if it is too long.
  // changes: see `changed`.
  translate({ text, changes }) {
    const { translator } = this;
    const ids = translator.encode(text);
    if (ids.length > this.longest) return { ids };
    const { tokens, text: written, tree, node } = translator.translate(ids, changed(changes, translator.model.options));
    const { points, logProbs } = this.inspect(ids, tokens, changes);
    const weights = {};
    for (const [name, rows] of Object.entries(points)) {
      const [attention, head] = name.split(".head.");
      if (!head) continue;
      weights[attention] ??= [];
      weights[attention][Number(head)] = rows.map((row) => row.weights);
    }
    return { ids, tokens, text: written, tree: this.withTexts(tree), node, logProbs, weights };
  }

  // Forced decoding of `forced`, a text, or of `tokens`; of the model's own translation if neither is given. `isBest` tells which tokens
  // are the most probable ones. `masked` is the same with the mask, if it is off.
  pass({ ids, forced, tokens, changes }) {
    const { translator } = this;
    const { target, search, model } = translator;
    const at = changed(changes, model.options);
    const read = forced ? [...target.encode(forced), search.end] : (tokens ?? translator.translate(ids, at).tokens);
    const { points, logProbs } = this.inspect(ids, read, changes);
    const isBest = (/** @type {any} */ { logits }) => logits.map((row, t) => topK(row, 1)[0] === read[t]);
    const v = model.weights["decoder.score.v"];
    const answer = {
      tokens: read,
      text: target.decode(read),
      points: pack(points),
      logProbs,
      isBest: isBest(points),
      v,
    };
    if (changes.isMasked) return answer;
    const masked = translator.inspect(ids, read, at);
    return { ...answer, masked: { logProbs: masked.logProbs, isBest: isBest(masked.points) } };
  }

  // What the decoder computes for each hypothesis that a beam search continues at a step. Each has its tokens and its continuations,
  // nodes of the search, of which some are kept.
  hypotheses({ ids, step, changes }) {
    const { translator } = this;
    const at = changed(changes, translator.model.options);
    const key = JSON.stringify([ids, changes]);
    if (key !== this.latestSearch.key) this.latestSearch = { key, tree: translator.translate(ids, at).tree };
    const { tree } = this.latestSearch;
    const continued = [...tree.keys()].filter((i) => tree[i].fate === "kept" && tokensTo(tree, i).length === step);
    return continued.map((i) => {
      const [tokens, continuations] = [tokensTo(tree, i), tree.filter(({ parent }) => parent === i)];
      const { points } = translator.inspect(ids, [...tokens, translator.search.end], at); // the last token is not read
      return { tokens, logProb: tree[i].log_prob, continuations, points: pack(points) };
    });
  }

  // The rows of all points; those of the last question are kept.
  inspect(ids, tokens, changes) {
    const key = JSON.stringify([ids, tokens, changes]);
    if (key !== this.latest.key) {
      const at = changed(changes, this.translator.model.options);
      this.latest = { key, inspected: this.translator.inspect(ids, tokens, at, changes.isMasked) };
    }
    return this.latest.inspected;
  }

  // The nodes of a search, those of ended hypotheses with their text.
  withTexts(tree) {
    const { target } = this.translator;
    return tree.map((node, i) => (node.fate === "ended" ? { ...node, text: target.decode(tokensTo(tree, i)) } : node));
  }
}

// The tokens of a hypothesis, without the start token.
function tokensTo(tree, node) {
  return node > 0 ? [...tokensTo(tree, tree[node].parent), tree[node].token] : [];
}

// Rows as few arrays, which are sent fast. The keys and values of an attention are those of its last row: earlier ones read some of them.
function pack(points) {
  const flat = (rows) => ({ width: rows[0].length, data: Float64Array.from(rows.flatMap((row) => [...row])) });
  const packed = {};
  for (const [name, rows] of Object.entries(points)) {
    if (rows[0] instanceof Float64Array) {
      packed[name] = flat(rows);
      continue;
    }
    const [{ keys, values }, counts] = [rows.at(-1), rows.map(({ scores }) => scores.length)];
    const padded = (row) => Float64Array.from(keys, (_, s) => row[s] ?? 0);
    packed[name] = { counts, keys: flat(keys), values: flat(values) };
    for (const part of ["query", "context"]) packed[name][part] = flat(rows.map((row) => row[part]));
    for (const part of ["scores", "weights"]) packed[name][part] = flat(rows.map((row) => padded(row[part])));
  }
  return packed;
}

// The code of the worker: answer { id, question, fields } with { id, answer } or { id, error }.
function answerMessages() {
  /** @type {any} */
  let answers;
  globalThis.onmessage = ({ data: { id, record, question, fields } }) => {
    try {
      if (record) answers = new Answers(record);
      const answer = question && answers[question](fields);
      postMessage({ id, answer });
    } catch (error) {
      postMessage({ id, error: error.message });
    }
  };
}
