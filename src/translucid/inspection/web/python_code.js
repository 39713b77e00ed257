// Python code that reproduces the views of a translation.
//
// Most functions take { run: a folder, languages: [source, target] or null if the run has one pair, source, target: the texts }.

import { isTargetToSource } from "./attention_maps.js";

// Return a Python string literal; JSON's syntax of strings is valid Python.
export function pythonString(text) {
  return JSON.stringify(text);
}

export function importPlots(name) {
  return `from translucid.inspection.plots import ${name}, save_figure`;
}

// Return the assignment that turns a case into the contrast of one word with another.
export function contrastLine({ word, instead_of }, variable = "case") {
  return `${variable} = contrast(case, ${pythonString(instead_of)}, word=${word})`;
}

function openingLines({ run, languages }, ...imports) {
  const pair = languages ? `, source=${pythonString(languages[0])}, target=${pythonString(languages[1])}` : "";
  return [
    "from pathlib import Path",
    "",
    "from translucid import Translator",
    ...imports,
    "",
    `translator = Translator.load(${pythonString(run)}${pair})`,
  ];
}

function inspectLine({ source, target }, extraArguments = "") {
  return `(inspected,) = translator.inspector.inspect([(${pythonString(source)}, ${pythonString(target)})]${extraArguments})`;
}

// Plot one attention map as ribbons.
export function mapCode(sentence, map) {
  const { kind } = map;
  const hasContributions = kind === "norms" || kind === "contributions";
  const probabilities = isTargetToSource(kind) ? ", inspected.word_log_probs()" : "";
  return [
    ...openingLines(sentence, importPlots("draw_ribbons")),
    inspectLine(sentence, hasContributions ? ", contributions=True" : ""),
    `words = ${wordMapExpression(map)}`,
    `save_figure(draw_ribbons(words${probabilities}), Path("attention.pdf"))`,
  ].join("\n");
}

function wordMapExpression({ kind, layer, head }) {
  const layerArgument = layer === null ? [] : [`layer=${layer}`];
  const headArgument = head === null ? [] : [`head=${head}`];
  const crossArguments = [...layerArgument, ...headArgument];
  switch (kind) {
    case "cross":
      return `inspected.words(inspected.cross(${crossArguments.join(", ")}))`;
    case "rollout":
      return "inspected.words(inspected.rollout())";
    case "content":
    case "norms":
    case "contributions":
      return `inspected.cross_words(${[...crossArguments, `method="${kind}"`].join(", ")})`;
    default:
      return `inspected.word_map(${[`"${kind}.${layer}.self"`, ...headArgument].join(", ")})`;
  }
}

// Plot all heads of some kinds of attention, without the ablated heads `sentence.ablatedHeads`.
export function headsCode(sentence, kinds) {
  const { ablatedHeads = [] } = sentence;
  const ablation = ablatedHeads.length
    ? [`translator = translator.ablated(${ablatedHeads.map(pythonString).join(", ")})`]
    : [];
  const plots = kinds.map((kind) => `save_figure(draw_attention(inspected, "${kind}"), Path("${kind}.pdf"))`);
  return [...openingLines(sentence, importPlots("draw_attention")), ...ablation, inspectLine(sentence), ...plots].join(
    "\n",
  );
}

// Plot the predictions of each decoder layer, and print the translations from each encoder layer.
export function layersCode(sentence) {
  const [source, target] = [sentence.source, sentence.target].map(pythonString);
  return [
    ...openingLines(sentence, importPlots("draw_lens")),
    `(lens,) = translator.inspector.lens(${source}, ${target})`,
    'save_figure(draw_lens(lens), Path("layers.pdf"))',
    `print(*translator.inspector.decoder_lens(${source}).translations, sep="\\n")`,
  ].join("\n");
}

// Plot activation patching with another sentence; `words` are the two words whose log-odds are measured, if they were chosen.
export function patchCode(sentence, { other, words }) {
  const wordPair = words ? `, (${words.map(pythonString).join(", ")})` : "";
  const [source, target] = [sentence.source, sentence.target].map(pythonString);
  return [
    ...openingLines(sentence, importPlots("draw_patching")),
    `patching = translator.inspector.patch(${source}, ${pythonString(other)}${wordPair}, target=${target})`,
    'save_figure(draw_patching(patching), Path("patching.pdf"))',
  ].join("\n");
}

// Plot the beam search of a source text.
export function beamCode(sentence, beamSize) {
  return [
    ...openingLines(sentence, importPlots("draw_beam")),
    `trace = translator.inspector.trace(${pythonString(sentence.source)}, ${beamSize})`,
    'save_figure(draw_beam(trace), Path("beam.pdf"))',
  ].join("\n");
}

// Plot an explanation, and print its faithfulness; `contrast` is { word, instead_of } or nothing.
export function explanationCode(sentence, method, contrast) {
  const imports = [
    `from translucid.inspection.explain import Case, ${contrast ? "contrast, " : ""}explain, faithfulness`,
    importPlots("draw_ribbons"),
    "from translucid.inspection import WordMap",
  ];
  const [source, target] = [sentence.source, sentence.target].map(pythonString);
  return [
    ...openingLines(sentence, ...imports),
    `case = Case(translator.model, translator.pipeline, ${source}, ${target})`,
    ...(contrast ? [contrastLine(contrast)] : []),
    `explanation = explain(case, ${pythonString(method)}, samples=200)`,
    "print(faithfulness(case, explanation))",
    "importance = explanation.importance / explanation.importance.abs().max()",
    "words = WordMap(explanation.source, explanation.target, importance)",
    'save_figure(draw_ribbons(words), Path("explanation.pdf"))',
  ].join("\n");
}
