// Lesson 15: the features of a sentence, what is known of one of them, and the translation when it is scaled.
import { el } from "./dom.js";
import { cardParts, translatedLabel } from "./feature_card.js";
import { formatNumber, formatPercent, formatPiece, layerName } from "./formatting.js";
import { filled, gettext } from "./messages.js";
import {
  bar,
  cellPicker,
  choice,
  gridCell,
  gridHeader,
  gridRow,
  gridTable,
  hint,
  liveRegion,
  slider,
} from "./widgets.js";
import { diffWords, markWords } from "./word_diff.js";

const SIDES = [
  { label: gettext("translation, decoder"), value: "target" },
  { label: gettext("source, encoder"), value: "source" },
];
const UNITS = {
  always: gettext("saying yes always"),
  neuron: gettext("best neuron"),
  feature: gettext("best feature"),
  probe: gettext("probe on the state"),
};
const CLOSE = 0.9; // the cosine from which a feature reads what a neuron reads

export function featuresFigure(container) {
  let sentence;
  const sides = choice("features-of", gettext("features of"), SIDES, showSide);
  const table = el("div", {});
  const name = el("h3", {});
  const sliders = el("div", { class: "controls" });
  const translation = el("p", { class: "translation" });
  const summary = liveRegion();
  const units = el("div", {});
  const card = el("div", { class: "inspector" });
  container.append(sides.node, table, name, sliders, translation, summary, units, card);
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    showSide();
  }

  function showSide() {
    const { tokens, features } = sentence.sides.find(({ side }) => side === sides.value);
    const largest = Math.max(...features.flatMap(({ values }) => values));
    const describeCell = (row, column) => {
      const { card, values } = features[column];
      const text = values[row] ? formatNumber(values[row], 1) : "";
      const name = gettext("{feature} at {piece}: {value}", {
        feature: card.name,
        piece: formatPiece(tokens[row]),
        value: text || gettext("not active"),
      });
      return { text: [text], name, weight: values[row] / largest };
    };
    const names = features.map(({ card }) => columnName(card.name));
    const changing = features.filter(({ steered }) => steered.some((text) => text !== sentence.translation));
    const first = Math.max(0, features.indexOf(changing[0]));
    const { values } = features[first];
    const onSelect = (_row, column) => showFeature(features[column]);
    const selected = [values.indexOf(Math.max(...values)), first];
    const numbers = changing.map(({ card }) => card.name.split(".").at(-1));
    const effect = changing.length
      ? gettext("The translation changes with other strengths of {features}.", { features: numbers.join(", ") })
      : gettext("No other strength changes the translation.");
    table.replaceChildren(
      cellPicker(
        tokens.map(formatPiece),
        names,
        describeCell,
        selected,
        onSelect,
        `${gettext("token")} ↓ ${gettext("feature")} →`,
      ),
      hint(`${gettext("The numbers are the values of features. Choose one.")} ${effect}`),
    );
    showFeature(features[first]);
  }

  function showFeature(feature) {
    const { factors } = sentence;
    const all = [...factors, 1].sort((a, b) => a - b);
    name.textContent = feature.card.name;
    const strength = slider(
      "strength",
      gettext("strength"),
      {
        min: 0,
        max: all.length - 1,
        value: all.indexOf(1),
        format: (i) => (all[i] === 0 ? gettext("off") : `${all[i]} ×`),
      },
      (i) => showTranslation(feature, all[i]),
    );
    sliders.replaceChildren(strength.node);
    showTranslation(feature, 1);
    units.replaceChildren(...unitRows(feature));
    card.replaceChildren(...cardParts(feature.card, ["en", "es"]));
  }

  // The recorded translation with a feature that is scaled at every position.
  function showTranslation(feature, factor) {
    const text = factor === 1 ? sentence.translation : feature.steered[sentence.factors.indexOf(factor)];
    const words = text.split(/\s+/);
    const [differing] = diffWords(words, sentence.translation.split(/\s+/));
    const label = el("span", { class: "label" }, `${sentence.text} → `);
    translation.replaceChildren(label, ...(text.trim() ? markWords(words, differing) : [gettext("(empty)")]));
    const isSame = text === sentence.translation;
    const action =
      factor === 0 ? gettext("The feature is off:") : gettext("The feature is {factor} times as strong:", { factor });
    const effect = isSame ? gettext("the translation stays the same.") : gettext("the translation changes.");
    summary.textContent =
      factor === 1
        ? gettext("The feature as it is. Move the slider to change it at every position.")
        : `${action} ${effect}`;
  }
}

// What a feature means, beside what other units tell of the same, and the neuron that it is closest to.
function unitRows({ card, units, neuron }) {
  const [side, layer] = card.name.split(".");
  const closest = hint(
    gettext(
      "It reads a direction whose cosine with that of neuron {number} of {layer} is {reads}; what both write has the cosine {writes}.",
      {
        number: neuron.number,
        layer: `${side}.${layer}`,
        reads: formatNumber(neuron.reads),
        writes: formatNumber(neuron.writes),
      },
    ),
  );
  if (!units) return [hint(gettext("No label of the phrasebook is clear enough for this feature.")), closest];
  const { label, value } = card.meaning;
  const rows = Object.entries(UNITS).map(([kind, text]) => gridRow(text, gridCell(bar(units[kind]))));
  const title = gettext("F1 for “{label}”", { label: translatedLabel(`${label} ${value}`) });
  const isBest = units.best === card.name;
  const note = isBest
    ? gettext("The best feature is this one.")
    : gettext("The best feature is {feature}.", { feature: units.best });
  return [gridTable("unit-table", title, gridHeader(gettext("unit"), title), ...rows), hint(note), closest];
}

// The name of a feature with its layer in a line of its own.
function columnName(name) {
  const [, layer, , number] = name.split(".");
  return el("span", {}, el("small", {}, layerName(layer)), number);
}

// What the text says about the record: a feature with a label, and how much neurons tell of the same.
export function featuresFacts({ sentences }) {
  const [{ active, width, means }] = sentences;
  const all = sentences.flatMap(({ sides }) => sides.flatMap(({ features }) => features));
  const labeled = all.filter(({ units }) => units).sort((a, b) => b.units.feature - a.units.feature)[0];
  const close = all.filter(({ neuron }) => neuron.reads >= CLOSE).length;
  const steered = sentences.flatMap(({ sides, translation }) =>
    sides.flatMap(({ features }) => features.flatMap((feature) => feature.steered.map((text) => text !== translation))),
  );
  const changed = steered.filter(Boolean).length;
  const closeness = gettext(
    "{count} of the {total} features in the figure read a direction whose cosine with that of a neuron is at least {close}.",
    { count: close, total: all.length, close: formatNumber(CLOSE, 1) },
  );
  const changes = gettext("In the figure, {share} of the changed strengths change the translation.", {
    share: formatPercent(changed / steered.length),
  });
  const facts = { active, width, closeness, changes };
  if (!labeled) {
    return {
      ...facts,
      question: gettext("No feature of these sentences has a label. Do its strongest contexts tell what it means?"),
      answer: gettext("They show when it is active, not what it is for."),
    };
  }
  const { card, units } = labeled;
  const label = translatedLabel(`${card.meaning.label} ${card.meaning.value}`);
  const best = gettext("The best feature for “{label}” has an F1 of {feature}, the best neuron {neuron}.", {
    label,
    feature: formatNumber(units.feature),
    neuron: formatNumber(units.neuron),
  });
  const comparison =
    means.feature > means.neuron + 0.02
      ? gettext("Over all labels, features tell more than neurons: the mean F1 of the best is {feature} and {neuron}.")
      : gettext(
          "Over all labels, features tell no more than neurons: the mean F1 of the best is {feature} and {neuron}.",
        );
  const ofBest = filled(comparison, { feature: formatNumber(means.feature), neuron: formatNumber(means.neuron) });
  const ofProbe = gettext("A linear probe has {probe}: the states know the labels, spread over many units.", {
    probe: formatNumber(means.probe),
  });
  return {
    ...facts,
    question: gettext("{feature} stands for “{label}”. Has the dictionary found what no neuron tells?", {
      feature: card.name,
      label,
    }),
    answer: `${best} ${ofBest} ${ofProbe}`,
  };
}
