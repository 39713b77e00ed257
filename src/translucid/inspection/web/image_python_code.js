// Python code that reproduces the views of an image caption.
//
// The functions take { run: a folder, image: the file name of the image, target: the caption }.

import { contrastLine, importPlots, pythonString } from "./python_code.js";

function openingLines({ run, image }, ...imports) {
  return [
    "from pathlib import Path",
    "",
    "from translucid import Captioner",
    ...imports,
    "",
    `captioner = Captioner.load(${pythonString(run)})`,
    `picture = captioner.picture(${pythonString(image)})`,
  ];
}

function importFigure(name) {
  return [`from translucid.captions import ${name}`, "from translucid.inspection.plots import save_figure"];
}

function inspectLine({ target }) {
  return `inspected = captioner.inspect(picture, ${pythonString(target)})`;
}

// Plot one attention map over the image, or print the words if the model has no attention.
export function imageMapCode(caption, { layer, head, weights }) {
  if (!weights) {
    return [...openingLines(caption), inspectLine(caption), "print(inspected.words, inspected.log_probs)"].join("\n");
  }
  const layerArgument = layer === null ? "" : `, layer=${layer}`;
  const headArgument = head === null ? "" : `, head=${head}`;
  return [
    ...openingLines(caption, "from translucid.captions import SaliencyOverlay", ...importFigure("draw_saliency")),
    inspectLine(caption),
    `overlay = SaliencyOverlay.of(inspected${layerArgument}${headArgument})`,
    'save_figure(draw_saliency(overlay), Path("attention.pdf"))',
  ].join("\n");
}

// Plot all heads over the image.
export function imageHeadsCode(caption) {
  return [
    ...openingLines(caption, "from translucid.captions import sections_of", ...importFigure("draw_saliency_rows")),
    inspectLine(caption),
    'save_figure(draw_saliency_rows(sections_of(inspected)), Path("heads.pdf"))',
  ].join("\n");
}

// Plot an explanation over the image, and print its faithfulness; `contrast` is { word, instead_of } or nothing.
export function imageExplanationCode(caption, method, contrast) {
  const imports = [
    `from translucid.inspection.explain import ${contrast ? "contrast, " : ""}explain, faithfulness, part_count`,
    "from translucid.captions import SHARE, image_case, overlay_of",
    ...importFigure("draw_saliency"),
  ];
  const [methodName, target] = [method, caption.target].map(pythonString);
  const explainedCase = contrast ? "contrasted" : "case";
  return [
    ...openingLines(caption, ...imports),
    `case = image_case(${methodName}, captioner.model, captioner.tokenizer, picture.pixels, ${target}, captioner.grid)`,
    ...(contrast ? [contrastLine(contrast, "contrasted")] : []),
    `explanation = explain(${explainedCase}, ${methodName}, samples=200)`,
    `print(faithfulness(${explainedCase}, explanation, k=part_count(SHARE, len(explanation.source))))`,
    `overlay = overlay_of(case, explanation${contrast ? ", contrasted" : ""})`,
    'save_figure(draw_saliency(overlay), Path("explanation.pdf"))',
  ].join("\n");
}

// Plot the beam search of the caption.
export function imageBeamCode(caption, beamSize) {
  return [
    ...openingLines(caption, importPlots("draw_beam")),
    `trace = captioner.trace(picture, ${beamSize})`,
    'save_figure(draw_beam(trace), Path("beam.pdf"))',
  ].join("\n");
}
