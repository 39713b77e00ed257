// The kinds of attention maps in a record of inspection/rendering/html.py, and the words along their axes.

export const KIND_LABELS = {
  cross: "Translation to source",
  content: "Translation to source, content words only",
  encoder: "Source to itself",
  decoder: "Translation to itself",
};

// The quantities that ribbons between source and translation can show, with the kinds of their maps.
export const RIBBON_METHODS = {
  weights: { label: "attention weights", kinds: ["cross", "rollout"] },
  content: { label: "weights, content words only", kinds: ["content"] },
  norms: { label: "norms of weighted values", kinds: ["norms"] },
  contributions: { label: "contributions (ALTI+)", kinds: ["contributions"] },
};

// Return the words of a map's rows (`down`), which attend, and of its columns (`across`), which are attended to.
export function axes(record, map) {
  if (map.kind === "encoder") return { down: record.source, across: record.source };
  if (map.kind === "decoder") return { down: record.target, across: record.fed };
  return { down: record.target, across: record.source };
}

// Return the columns of a map as people read it, { columns: their indices, across: their words, weights }: a map of content words
// has no others.
export function visibleColumns(record, map) {
  const { across } = axes(record, map);
  const columns = map.kind === "content" ? record.content : [...across.keys()];
  const select = (row) => columns.map((column) => row[column]);
  return { columns, across: select(across), weights: map.weights.map(select) };
}

// Whether maps of a kind relate the words of the translation to those of the source.
export function isTargetToSource(kind) {
  return Object.values(RIBBON_METHODS).some(({ kinds }) => kinds.includes(kind));
}

// Whether a map shows contributions through all layers, which come from two texts: the source and the translation so far.
export function hasPrefixContributions(record, map) {
  return map.kind === "contributions" && map.layer === null && Boolean(record.prefix);
}
