// What is seen of translations: ribbons between their words and those of the source.

import { beamCode, headsCode, layersCode, mapCode, patchCode, whyCode } from "./code.js";
import { KINDS, sides } from "./maps.js";
import { showRibbons } from "./ribbons.js";
import { importances } from "./why.js";

export const TEXTS = {
  noun: "translation", kinds: KINDS, table: true, sides, stage, cells: (map) => map.weights, importances, mapCode, layersCode, patchCode, headsCode, beamCode, whyCode,
};

function stage(root, { record, map, languages, marked }, options) {
  const { down, across } = sides(record, map);
  const own = down === record.target;
  const [source, target] = languages ?? ["", ""];
  const all = map.kind === "contributions" && map.layer === null && record.prefix; // through all layers, from both texts
  const unknown = (words) => (words === record.source ? record.unknown ?? [] : []);
  const before = (words) => (words === record.source ? record.context : 0);
  return showRibbons(root, {
    above: across, below: down, weights: map.weights, probabilities: own ? record.probabilities : null,
    languages: [map.kind === "decoder" ? target : source, own ? target : source],
    marked: own && across === record.source ? marked : null,
    unknown: { above: unknown(across), below: unknown(down) },
    context: { above: before(across), below: before(down) },
    ...(map.kind === "contributions" ? { verbs: ["comes from", "contributes to"] } : {}),
    ...(all ? { prefix: { words: record.fed, weights: record.prefix }, shares: record.source_contributions } : {}),
  }, options);
}
