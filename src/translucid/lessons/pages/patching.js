// Lesson 12: activation patching. A state of the run CLEAN replaces one of the run OTHER, at a layer and a word.
import { translatedName } from "./attention_maps.js";
import { el } from "./dom.js";
import { formatNumber, formatPercent, formatPiece, layerName } from "./formatting.js";
import { argmax } from "./linear_algebra.js";
import { gettext } from "./messages.js";
import { cellPicker, choice, hint, liveRegion } from "./widgets.js";

export function patchingFigure(container) {
  let sentence; // a pair of sentences
  let part; // the kind of states that are patched, and what each of them carries
  let selected = [0, 0]; // indices of a layer and a word
  const runs = el("div", {});
  const kinds = el("div", {});
  const table = el("div", {});
  const summary = liveRegion();
  const translation = el("p", { class: "translation" });
  container.append(runs, kinds, table, summary, translation);
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    runs.replaceChildren(runTable(sentence));
    const options = sentence.parts.map((option) => ({ label: translatedName(option.kind), value: option }));
    kinds.replaceChildren(choice("states", gettext("states"), options, showPart).node);
    showPart(sentence.parts[0]);
  }

  // Show the states of a part; the one that carries most is selected.
  function showPart(newPart) {
    part = newPart;
    const wordCount = part.words.length;
    const largest = argmax(part.carried.flat());
    selected = [Math.floor(largest / wordCount), largest % wordCount];
    const wordNames = part.words.map((word, i) => {
      const cleanWord = part.clean_words[i];
      return word === cleanWord ? formatWord(word) : `${cleanWord} → ${word}`;
    });
    const describeCell = (layer, word) => {
      const carried = part.carried[layer][word];
      const percentage = formatPercent(carried);
      return {
        text: [percentage],
        name: `${layerName(part.layers[layer])}, ${wordNames[word]}: ${percentage}`,
        weight: carried,
      };
    };
    const onSelect = (layer, word) => {
      selected = [layer, word];
      showSelected();
    };
    table.replaceChildren(
      cellPicker(
        part.layers.map(layerName),
        wordNames,
        describeCell,
        selected,
        onSelect,
        `${gettext("layer")} ↓ ${gettext("word")} →`,
      ),
      hint(
        gettext(
          "Each cell is a separate run on OTHER, in which one state is that of CLEAN. Blue: how far L moves towards CLEAN. Choose a cell.",
        ),
      ),
    );
    showSelected();
  }

  function showSelected() {
    const [layer, word] = selected;
    const { clean, other } = sentence.log_odds;
    const carried = part.carried[layer][word];
    const patched = other + carried * (clean - other);
    summary.textContent = gettext("{layer}, “{word}”: L goes from {from} to {to}, {share} of the way to CLEAN.", {
      layer: layerName(part.layers[layer]),
      word: part.words[word],
      from: formatNumber(other),
      to: formatNumber(patched),
      share: formatPercent(carried),
    });
    // Only runs with patched encoder states are recorded with their translations.
    const isTranslated = part === sentence.parts[0];
    const content = isTranslated
      ? [el("span", { class: "label" }, `${gettext("OTHER, patched, is translated as")} `), sentence.moved[layer][word]]
      : [];
    translation.replaceChildren(...content);
  }
}

// Both runs without a patch.
function runTable({ words, clean, other, translations, log_odds }) {
  const runs = [
    { name: "CLEAN", source: clean, translation: translations[0], odds: log_odds.clean },
    { name: "OTHER", source: other, translation: translations[1], odds: log_odds.other },
  ];
  const rows = runs.map(({ name, source, translation, odds }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", { class: "text" }, source),
      el("td", { class: "text" }, translation),
      el("td", { class: "odds" }, formatNumber(odds)),
    ),
  );
  const header = el(
    "tr",
    {},
    el("th", { scope: "col" }, gettext("run")),
    el("th", { scope: "col" }, gettext("source")),
    el("th", { scope: "col", class: "text" }, gettext("translation")),
    el("th", { scope: "col" }, `L = log p(${words[0]}) − log p(${words[1]})`),
  );
  return el("table", { class: "data-table" }, el("thead", {}, header), el("tbody", {}, ...rows));
}

// A word of a sentence, or a special token such as </s>.
function formatWord(word) {
  return word.startsWith("<") ? word : formatPiece(`▁${word}`);
}

// What the text says about the record: the states after the first layer, at the article and at the noun.
export function patchingFacts({ sentences: [sentence, ...others] }) {
  const LAYER = 1; // the row after the embeddings
  const [part] = sentence.parts;
  const noun = differingWord(part);
  const article = Math.max(0, noun - 1);
  const share = (word) => part.carried[LAYER][word];
  const other = others.at(-1) ?? sentence;
  return {
    layer: layerName(part.layers[LAYER]),
    article: part.words[article],
    noun: `${part.clean_words[noun]} → ${part.words[noun]}`,
    at_article: withoutPeriod(sentence.moved[LAYER][article]),
    at_noun: withoutPeriod(sentence.moved[LAYER][noun]),
    share_article: formatPercent(share(article)),
    share_noun: formatPercent(share(noun)),
    carrier: share(article) > share(noun) ? gettext("the article’s state") : gettext("the noun’s state"),
    other_clean: other.clean,
    other_noun: formatPercent(other.parts[0].carried[LAYER][differingWord(other.parts[0])]),
  };
}

// The first word at which the two sentences differ.
function differingWord({ words, clean_words }) {
  return words.findIndex((word, i) => word !== clean_words[i]);
}

function withoutPeriod(text) {
  return text.replace(/\.$/, "");
}
