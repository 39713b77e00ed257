// What the views show of a translation: the records of inspection/html.py, made from ids and attention weights.

const SIGNS = new Set(["<s>", "</s>"]);

// The words of pieces, each { text, first piece, piece after its last, sign: whether it is a token that is no word }.
function words(pieces) {
  const spans = [];
  pieces.forEach((piece, i) => {
    const [text, last, sign] = [piece.replaceAll("▁", ""), spans.at(-1), SIGNS.has(piece)];
    const opened = last?.text === ""; // a lone ▁ begins the word of the next piece
    if (!last || sign || last.sign || (piece.startsWith("▁") && !opened)) spans.push({ text, first: i, after: i + 1, sign });
    else Object.assign(last, { text: last.text + text, after: i + 1 });
  });
  return spans;
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const mean = (rows) => Array.from(rows[0], (_, i) => sum(rows.map((row) => row[i] ?? 0)) / rows.length);
const meanMap = (maps) => maps[0].map((_, t) => mean(maps.map((map) => map[t])));
const texts = (spans) => spans.map(({ text }) => text);

// Weights between pieces [T, S] become weights between words: summed over columns, averaged over rows.
function merged(map, rows, columns) {
  const byWord = map.map((row) => columns.map(({ first, after }) => sum(Array.from(row).slice(first, after))));
  return rows.map(({ first, after }) => mean(byWord.slice(first, after)));
}

// The record of one sentence, whose `maps` and `logProbs` are those of WebTranslator.inspect.
export function recordOf({ pieces, unknown }, targetPieces, { maps, logProbs }) {
  const [source, target, fed] = [words(pieces), words(targetPieces), words(["<s>", ...targetPieces.slice(0, -1)])];
  const sides = { cross: [target, source], encoder: [source, source], decoder: [target, fed] };
  const shown = [];
  const show = (name, kind, layer, head, map) => shown.push({ name, kind, layer, head, weights: merged(map, ...sides[kind]) });
  const named = (kind, ending) => Object.keys(maps).filter((name) => name.startsWith(kind) && name.endsWith(ending));
  const cross = named("decoder", ".cross");
  show("all layers and heads", "cross", null, null, meanMap(cross.map((name) => meanMap(maps[name]))));
  for (const [kind, names] of [["cross", cross], ["encoder", named("encoder", ".self")], ["decoder", named("decoder", ".self")]]) {
    const before = kind === "cross" ? "" : `${kind}, `;
    if (kind !== "cross" || names.length > 1) {
      names.forEach((name, layer) => show(`${before}layer ${layer}, all heads`, kind, layer, null, meanMap(maps[name])));
    }
    names.forEach((name, layer) => {
      if (maps[name].length > 1) maps[name].forEach((map, head) => show(`${before}layer ${layer}, head ${head}`, kind, layer, head, map));
    });
  }
  const contains = ({ first, after }) => unknown.some((place) => first <= place && place < after);
  return {
    source: texts(source), target: texts(target), fed: texts(fed), opening: 0, context: 0, maps: shown,
    unknown: source.flatMap((span, i) => (contains(span) ? [i] : [])),
    probabilities: target.map(({ first, after }) => Math.exp(sum(logProbs.slice(first, after)))),
    sizes: target.map(({ first, after }) => after - first),
  };
}

// The tree of a beam search; texts that were reached several times are listed once, with their best score.
export function treeOf({ tree, node: best }, beam, name, decode) {
  const path = (i) => (i > 0 ? [...path(tree[i].parent), tree[i].token] : []);
  const finished = new Map();
  tree.forEach(({ fate, log_prob, score }, node) => {
    if (fate !== "ended") return;
    const text = decode(path(node));
    const known = finished.get(text);
    if (!known || node === best || (known.node !== best && score > known.score)) finished.set(text, { node, text, log_prob, score });
  });
  const rows = [...finished.values()].sort((a, b) => b.score - a.score);
  return { nodes: tree.map((node) => ({ ...node, name: name(node.token) })), best, beam, opening: 0, finished: rows };
}
