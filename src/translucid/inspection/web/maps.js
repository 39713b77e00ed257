// What stands above and below in the maps of a record (see inspection/html.py), and how to say which map it is.

export const KINDS = { cross: "Translation to source", encoder: "Source to itself", decoder: "Translation to itself" };

// What ribbons between translation and source can show, with the kinds of their maps.
export const RIBBONS = {
  weights: { name: "attention weights", kinds: ["cross", "rollout"] },
  norms: { name: "norms of weighted values", kinds: ["norms"] },
  contributions: { name: "contributions (ALTI+)", kinds: ["contributions"] },
};

// The words that looked, and those that were looked at.
export function sides(record, map) {
  if (map.kind === "encoder") return { down: record.source, across: record.source };
  if (map.kind === "decoder") return { down: record.target, across: record.fed };
  return { down: record.target, across: record.source };
}

// Whether a map relates words of the translation to those of the source, so that ribbons can show it.
export const overSource = ({ kind }) => Object.values(RIBBONS).some(({ kinds }) => kinds.includes(kind));

export function find(record, kind, layer = null, head = null) {
  return record.maps.find((one) => one.kind === kind && one.layer === layer && one.head === head);
}
