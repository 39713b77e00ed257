// The lines of Python that make again what is seen. seen: { run, languages: [source, target] or null, source, target }.

import { overSource } from "./maps.js";

export const quoted = (text) => JSON.stringify(text); // what JSON writes of a text, Python reads

function opened({ run, languages }, ...imports) {
  const between = languages ? `, source=${quoted(languages[0])}, target=${quoted(languages[1])}` : "";
  const lines = ["from pathlib import Path", "", "from translucid import Translator", ...imports, ""];
  return [...lines, `translator = Translator.load(${quoted(run)}${between})`];
}

export const plots = (name) => `from translucid.inspection.plots import ${name}, save_figure`;
const looked = ({ source, target }, more = "") => `(seen,) = translator.inspect([(${quoted(source)}, ${quoted(target)})]${more})`;

// One map of attention as ribbons.
export function mapCode(seen, { kind, layer, head }) {
  const chosen = [layer === null ? "" : `layer=${layer}`, head === null ? "" : `head=${head}`].filter(Boolean).join(", ");
  const by = [chosen, `method="${kind}"`].filter(Boolean).join(", ");
  const words = {
    cross: `seen.words(seen.cross(${chosen}))`,
    rollout: "seen.words(seen.rollout())",
    norms: `seen.words(seen.cross(${by}))`,
    contributions: `seen.words(seen.cross(${by}))`,
  }[kind] ?? `seen.word_map("${kind}.${layer}.self"${head === null ? "" : `, head=${head}`})`;
  const sure = overSource({ kind }) ? ", seen.word_log_probs()" : "";
  return [
    ...opened(seen, plots("draw_ribbons")),
    looked(seen, kind === "norms" || kind === "contributions" ? ", contributions=True" : ""),
    `words = ${words}`,
    `save_figure(draw_ribbons(words${sure}), Path("attention.pdf"))`,
  ].join("\n");
}

export function headsCode(seen, kinds) {
  const draw = kinds.map((kind) => `save_figure(draw_attention(seen, "${kind}"), Path("${kind}.pdf"))`);
  const ablated = seen.off?.length ? [`translator = translator.ablated(${seen.off.map(quoted).join(", ")})`] : [];
  return [...opened(seen, plots("draw_attention")), ...ablated, looked(seen), ...draw].join("\n");
}

export function layersCode(seen) {
  return [
    ...opened(seen, plots("draw_lens")),
    `(lens,) = translator.lens(${quoted(seen.source)}, ${quoted(seen.target)})`,
    'save_figure(draw_lens(lens), Path("layers.pdf"))',
    `print(*translator.decoder_lens(${quoted(seen.source)}).translations, sep="\\n")`,
  ].join("\n");
}

export function patchCode(seen, { other, words }) {
  const chosen = words ? `, (${words.map(quoted).join(", ")})` : "";
  return [
    ...opened(seen, plots("draw_patching")),
    `patching = translator.patch(${quoted(seen.source)}, ${quoted(other)}${chosen}, target=${quoted(seen.target)})`,
    'save_figure(draw_patching(patching), Path("patching.pdf"))',
  ].join("\n");
}

export function beamCode(seen, beam) {
  return [
    ...opened(seen, plots("draw_beam")),
    `trace = translator.trace(${quoted(seen.source)}, ${beam})`,
    'save_figure(draw_beam(trace), Path("beam.pdf"))',
  ].join("\n");
}

// What explains a contrast instead of all words.
export const contrasted = ({ word, instead_of }) => `case = contrast(case, ${quoted(instead_of)}, word=${word})`;

export function whyCode(seen, method, contrast) {
  const explain = [
    `from translucid.inspection.explain import ${contrast ? "contrast, " : ""}explain, faithfulness`,
    "from translucid.inspection.explain.case import Case",
    plots("draw_ribbons"),
    "from translucid.inspection.words import WordMap",
  ];
  return [
    ...opened(seen, ...explain),
    `case = Case(translator.model, translator.pipeline, ${quoted(seen.source)}, ${quoted(seen.target)})`,
    ...(contrast ? [contrasted(contrast)] : []),
    `why = explain(case, ${quoted(method)}, samples=200)`,
    "print(faithfulness(case, why))",
    "words = WordMap(why.source, why.target, why.importance / why.importance.abs().max())",
    'save_figure(draw_ribbons(words), Path("why.pdf"))',
  ].join("\n");
}
