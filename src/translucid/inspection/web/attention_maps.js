// The kinds of attention maps in a record of inspection/rendering/html.py, and the words along their axes.

import { gettext } from "./messages.js";

export const KIND_LABELS = {
  cross: gettext("Translation to source"),
  content: gettext("Translation to source, content words only"),
  encoder: gettext("Source to itself"),
  decoder: gettext("Translation to itself"),
};

// The quantities that ribbons between source and translation can show, with the kinds of their maps.
export const RIBBON_METHODS = {
  weights: { label: gettext("attention weights"), kinds: ["cross", "rollout"] },
  content: { label: gettext("weights, content words only"), kinds: ["content"] },
  norms: { label: gettext("norms of weighted values"), kinds: ["norms"] },
  contributions: { label: gettext("contributions (ALTI+)"), kinds: ["contributions"] },
};

// The parts of the names that records have of maps, layers and states, in English and in the language of the page.
const NAME_PARTS = {
  "all layers and heads": gettext("all layers and heads"),
  "all layers": gettext("all layers"),
  "all heads": gettext("all heads"),
  "flow through all layers (rollout)": gettext("flow through all layers (rollout)"),
  norms: gettext("norms"),
  "content words only": gettext("content words only"),
  contributions: gettext("contributions"),
  encoder: gettext("encoder"),
  decoder: gettext("decoder"),
  embeddings: gettext("embeddings"),
  "encoder states": gettext("encoder states"),
  "cross-attention outputs": gettext("cross-attention outputs"),
  "decoder states": gettext("decoder states"),
};

// Return an English name of a record, such as "encoder, layer 0, head 1", in the language of the page.
export function translatedName(name) {
  return name.split(", ").map(namePart).join(", ");
}

function namePart(part) {
  const [, what, number] = /^(layer|head) (\d+)$/.exec(part) ?? [];
  if (what === "layer") return gettext("layer {number}", { number });
  if (what === "head") return gettext("head {number}", { number });
  return NAME_PARTS[part] ?? part;
}

// Return the name of a map in a link. It begins with the method if that is not the usual one: records leave out "content".
export function nameInLink({ kind, name }) {
  return kind === "content" ? `content, ${name}` : name;
}

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
