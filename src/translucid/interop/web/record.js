// Creates what the inspector shows of a translation, with the fields of inspection/rendering/html.py, from pieces and attention weights.

const SPECIAL_TOKENS = new Set(["<s>", "</s>"]);

const sum = (values) => values.reduce((a, b) => a + b, 0);
const meanRow = (rows) => Array.from(rows[0], (_, i) => sum(rows.map((row) => row[i] ?? 0)) / rows.length);
const meanMap = (maps) => maps[0].map((_, t) => meanRow(maps.map((map) => map[t])));
const textsOf = (words) => words.map(({ text }) => text);

// Join pieces to words: [{ text, start, end, isSpecial }]. A word has the pieces from `start` to before `end`.
function joinPieces(pieces) {
  const words = [];
  pieces.forEach((piece, i) => {
    const text = piece.replaceAll("▁", "");
    const isSpecial = SPECIAL_TOKENS.has(piece);
    const previous = words.at(-1);
    const startsWord = piece.startsWith("▁") && previous?.text !== ""; // a lone ▁ starts the word of the next piece
    if (!previous || isSpecial || previous.isSpecial || startsWord) {
      words.push({ text, start: i, end: i + 1, isSpecial });
    } else {
      previous.text += text;
      previous.end = i + 1;
    }
  });
  return words;
}

// Weights between pieces [T, S] as weights between words: summed over the pieces of a key, averaged over those of a query.
function mergePieces(weights, queries, keys) {
  const byKey = weights.map((row) => keys.map(({ start, end }) => sum(row.slice(start, end))));
  return queries.map(({ start, end }) => meanRow(byKey.slice(start, end)));
}

// Attention maps between words: averages over heads and layers, and single heads.
//
// weights: attention weights between pieces by the name of the attention, [H, T, S]
// words: for each kind of attention, the words of its queries and of its keys
function createMaps(weights, words) {
  const maps = [];
  const addMap = (name, kind, layer, head, pieceWeights) => {
    maps.push({ name, kind, layer, head, weights: mergePieces(pieceWeights, ...words[kind]) });
  };
  const attentions = (side, kind) =>
    Object.keys(weights).filter((name) => name.startsWith(side) && name.endsWith(kind));
  const cross = attentions("decoder", ".cross");
  const kinds = { cross, encoder: attentions("encoder", ".self"), decoder: attentions("decoder", ".self") };
  addMap("all layers and heads", "cross", null, null, meanMap(cross.map((name) => meanMap(weights[name]))));
  for (const [kind, names] of Object.entries(kinds)) {
    const prefix = kind === "cross" ? "" : `${kind}, `;
    const isAverageShown = kind === "cross" && names.length === 1; // as "all layers and heads"
    names.forEach((name, layer) => {
      if (!isAverageShown) addMap(`${prefix}layer ${layer}, all heads`, kind, layer, null, meanMap(weights[name]));
    });
    names.forEach((name, layer) => {
      const heads = weights[name];
      if (heads.length === 1) return;
      heads.forEach((head, h) => addMap(`${prefix}layer ${layer}, head ${h}`, kind, layer, h, head));
    });
  }
  return maps;
}

// The record of one sentence.
//
// source: { pieces, unknown: the indices of unknown pieces }
// translated: the answer to "translate", see engine/worker.js
export function createRecord({ pieces, unknown }, targetPieces, { weights, logProbs }) {
  const source = joinPieces(pieces);
  const target = joinPieces(targetPieces);
  const decoderInputs = joinPieces(["<s>", ...targetPieces.slice(0, -1)]);
  const words = { cross: [target, source], encoder: [source, source], decoder: [target, decoderInputs] };
  const isUnknown = ({ start, end }) => unknown.some((i) => start <= i && i < end);
  return {
    source: textsOf(source),
    target: textsOf(target),
    fed: textsOf(decoderInputs),
    opening: 0,
    context: 0,
    maps: createMaps(weights, words),
    unknown: [...source.keys()].filter((i) => isUnknown(source[i])),
    probabilities: target.map(({ start, end }) => Math.exp(sum(logProbs.slice(start, end)))),
    sizes: target.map(({ start, end }) => end - start),
  };
}

// The tree of a beam search. Hypotheses with the same text are listed once: the best output, or the one of highest score.
//
// translated: the answer to "translate", see engine/worker.js
// beam: the size of the beam
// pieceOf: returns the piece of a token
export function createSearchTree({ tree, node: best }, beam, pieceOf) {
  const finished = new Map(); // by text
  tree.forEach(({ fate, text, log_prob, score }, node) => {
    if (fate !== "ended") return;
    const previous = finished.get(text);
    const isBetter = !previous || node === best || (previous.node !== best && score > previous.score);
    if (isBetter) finished.set(text, { node, text, log_prob, score });
  });
  const hypotheses = [...finished.values()].sort((a, b) => b.score - a.score);
  const nodes = tree.map((node) => ({ ...node, name: pieceOf(node.token) }));
  return { nodes, best, beam, opening: 0, finished: hypotheses };
}
