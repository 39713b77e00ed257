// The lines of Python that make again what is seen of an image and its caption. seen: { run, image: the name of its file, target }.

import { contrasted, plots, quoted } from "./code.js";

function opened({ run, image }, ...imports) {
  const lines = ["from pathlib import Path", "", "from translucid import Captioner", ...imports, ""];
  return [...lines, `captioner = Captioner.load(${quoted(run)})`, `picture = captioner.picture(${quoted(image)})`];
}

const looked = ({ target }) => `looked = captioner.inspect(picture, ${quoted(target)})`;

// One way to look, or the words alone if the model has no attention.
export function litCode(seen, { layer, head, weights }) {
  if (!weights) return [...opened(seen), looked(seen), "print(looked.words, looked.log_probs)"].join("\n");
  const chosen = [layer === null ? "" : `, layer=${layer}`, head === null ? "" : `, head=${head}`].join("");
  return [
    ...opened(seen, "from translucid.inspection.saliency_overlay import SaliencyOverlay", plots("draw_saliency")),
    looked(seen),
    `save_figure(draw_saliency(SaliencyOverlay.of(looked${chosen})), Path("looked.pdf"))`,
  ].join("\n");
}

export function litHeadsCode(seen) {
  return [
    ...opened(seen, "from translucid.inspection.saliency_overlay import sections_of", plots("draw_saliency_rows")),
    looked(seen),
    'save_figure(draw_saliency_rows(sections_of(looked)), Path("heads.pdf"))',
  ].join("\n");
}

export function litWhyCode(seen, method, contrast) {
  return [
    ...opened(seen, `from translucid.inspection.explain import ${contrast ? "contrast, " : ""}explain, faithfulness, part_count`,
      "from translucid.inspection.explain.image_case import image_case", "from translucid.inspection.explain.image_case import SHARE, overlay_of", plots("draw_saliency")),
    `case = image_case(${quoted(method)}, captioner.model, captioner.tokenizer, picture.pixels, ${quoted(seen.target)}, captioner.grid)`,
    ...(contrast ? [contrasted(contrast).replace("case =", "contrasted =")] : []),
    `why = explain(${contrast ? "contrasted" : "case"}, ${quoted(method)}, samples=200)`,
    `print(faithfulness(${contrast ? "contrasted" : "case"}, why, k=part_count(SHARE, len(why.source))))`,
    `save_figure(draw_saliency(overlay_of(case, why${contrast ? ", contrasted" : ""})), Path("why.pdf"))`,
  ].join("\n");
}

export function litBeamCode(seen, beam) {
  return [
    ...opened(seen, plots("draw_beam")),
    `trace = captioner.trace(picture, ${beam})`,
    'save_figure(draw_beam(trace), Path("beam.pdf"))',
  ].join("\n");
}
