// Lesson 9: what each layer of the decoder would write, and what the decoder writes from each layer of the encoder.
import { el, percent, shown } from "./dom.js";
import { bar, hint, picker, said } from "./parts.js";

export function layers(root, record) {
  let [sentence, chosen] = [null, [0, 0]];
  const table = el("div", {});
  const told = said();
  const best = el("div", {});
  const encoder = el("div", {});
  root.append(table, told, best, el("h3", {}, "The encoder’s layers"), encoder, ...counted());
  return (given) => { sentence = given; chosen = [0, sentence.layers.length - 2]; begin(); };

  function begin() {
    table.replaceChildren(picker(sentence.target.map(shown), sentence.layers.map(named), (t, l) => {
      const [piece, p] = sentence.predictions[l][t][0];
      const decided = decides(t) === l;
      return { text: [shown(piece), el("small", {}, `${percent(p)}${decided ? " ✓" : ""}`)], name: `${named(sentence.layers[l])} predicts ${shown(piece)}, ${percent(p)}${decided ? ", decided" : ""}`, weight: p };
    }, chosen, (t, l) => { chosen = [t, l]; draw(); }, "written ↓ layer →"), hint("In each cell: the piece that the layer predicts, and its probability. ✓: from this layer on, it is the piece that was written. Choose a cell."));
    encoder.replaceChildren(el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "read after"), el("th", { scope: "col" }, "translation"))),
      el("tbody", {}, ...sentence.encoder.map((text, l) => el("tr", {}, el("th", { scope: "row" }, named(sentence.layers[l])), el("td", { class: "text" }, text))))),
    hint("The whole decoder reads the encoder’s states after each layer (DecoderLens): a translation for each."));
    draw();
  }

  // The first layer from which on the piece that was written has rank 1.
  function decides(t) {
    const ranks = sentence.ranks.map((row) => row[t]);
    const last = ranks.findLastIndex((rank) => rank > 1) + 1;
    return last < ranks.length ? last : null;
  }

  function draw() {
    const [t, l] = chosen;
    const rank = sentence.ranks[l][t];
    told.textContent = `${named(sentence.layers[l])}, after “${shown(sentence.fed[t])}”: the piece that was written, “${shown(sentence.target[t])}”, has rank ${rank.toLocaleString("en")} and probability ${percent(sentence.probabilities[l][t], 1)}.`;
    best.replaceChildren(el("div", { class: "weighed", role: "table", "aria-label": "the most probable pieces" },
      ...sentence.predictions[l][t].map(([piece, p]) => el("div", { role: "row" }, el("span", { role: "rowheader", class: "name" }, shown(piece)), el("span", { role: "cell", class: "amount" }, percent(p, 1)), el("span", { role: "cell" }, bar(p))))));
  }

  function counted() {
    const all = record.decided.reduce((a, b) => a + b, 0);
    const parts = record.decided.map((count, l) => `${percent(count / all)} ${l < record.decided.length - 1 ? `by ${named(record.sentences[0].layers[l])}` : "by none"}`);
    return [el("h3", {}, "Where pieces are decided"), hint(`Of ${all} pieces in ${record.held_out} held-out sentences: ${parts.join(", ")}.`)];
  }
}

function named(layer) {
  return layer === "input" ? "embeddings" : `layer ${layer}`;
}
