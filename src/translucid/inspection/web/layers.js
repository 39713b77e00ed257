// What each layer of the decoder would predict for each word, and what the decoder writes from each layer of the encoder.
//
// showLayers(root, record, { lang, light(word or null) }): record is what Lens.to_json returns, with encoder: what DecoderLens.to_json
//   does.

import { difference } from "./chips.js";
import { element, isolated, percent } from "./elements.js";
import { showGrid } from "./grid.js";

const LEAST = 1e-5; // a smaller probability is rounded to 0 in the record
const HINT = "lens: each cell shows what the model would write in the place of the word if this layer were its last: the darker, the more "
  + "probable. A frame with ✓ marks the layer from which on it is the word itself.";

export function showLayers(root, { lens, layers, words, encoder }, { lang, light }) {
  const names = layers.map(layerName);
  const cells = words.map(({ word, decided, layers: predictions }) => predictions.map((one, l) => ({
    text: one.top, value: one.top_probability, about: about(names[l], word, one, l === decided), marked: l === decided,
  })));
  const [grid, beside] = [element("div"), element("div")];
  root.replaceChildren(element("div", { className: "beside" }, grid, beside));
  const shown = showGrid(grid, { label: "predictions of each layer", rows: words.map(({ word }) => word), columns: names, cells, hint: `${lens === "tuned" ? "Tuned" : "Logit"} ${HINT}`, lang, light });
  showTranslations(beside, encoder, lang);
  return shown;
}

function layerName(name) {
  return name === "input" ? "embeddings" : `layer ${name}`;
}

function about(layer, word, { top, top_probability, probability, rank }, decided) {
  const first = `${isolated(word)}, ${layer}: predicts “${isolated(top)}” (${percent(top_probability)})`;
  const written = rank === 1 && top === word ? "the word itself" : `“${isolated(word)}” has rank ${rank} (${percent(Math.max(probability, LEAST))})`;
  return `${first}; ${written}${decided ? ", from here on with rank 1" : ""}.`;
}

// Whole translations; the words that the last of them lacks are marked.
function showTranslations(root, { layers, translations }, lang) {
  const last = translations.at(-1).split(/\s+/);
  const rows = layers.map((name, l) => {
    const words = translations[l].split(/\s+/);
    const [differs] = difference(words, last);
    const parts = words.flatMap((word, i) => [" ", differs.has(i) ? element("mark", { textContent: word }) : word]).slice(1);
    const cell = element("td", { dir: "auto", lang }, ...(translations[l].trim() ? parts : ["(empty)"]));
    return element("tr", {}, element("th", { textContent: layerName(name), scope: "row" }), cell);
  });
  const title = element("p", { className: "title", textContent: "Translations from each layer of the encoder (DecoderLens)" });
  const note = element("p", { className: "about", textContent: "The whole decoder reads the encoder's states after this layer. Marked words differ from the last line." });
  root.replaceChildren(title, note, element("table", { className: "translations" }, element("tbody", {}, ...rows)));
}
