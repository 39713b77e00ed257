// Lesson 16: the graph of a word, the sum that reaches its logit, and what the model writes without a feature.
import { el } from "./dom.js";
import { formatNumber, formatPercent } from "./formatting.js";
import { showGraph } from "./graph.js";
import { filled, gettext } from "./messages.js";
import { hint, tableHead } from "./widgets.js";
import { diffWords, markWords } from "./word_diff.js";

const KINDS = {
  token: gettext("tokens"),
  position: gettext("positions"),
  feature: gettext("features"),
  error: gettext("errors of the transcoders"),
};

export function circuitFigure(container) {
  const translation = el("p", { class: "translation" });
  const graph = el("div", {});
  const sum = el("div", {});
  const off = el("div", {});
  container.append(
    translation,
    graph,
    el("h3", {}, gettext("The sum that reaches the logit")),
    sum,
    el("h3", {}, gettext("Without the strongest features")),
    off,
  );
  return showSentence;

  function showSentence(sentence) {
    const words = sentence.translation.split(/\s+/);
    translation.replaceChildren(
      el("span", { class: "label" }, `${sentence.text} → `),
      ...markWords(words, new Set([words.indexOf(sentence.graph.word)])),
    );
    showGraph(graph, sentence.graph, {
      chosen: strongestFeature(sentence)?.name,
      actions: [
        { label: gettext("Switch it off here"), run: (node, output) => showWithout(sentence, node, output) },
        { label: gettext("Switch it off everywhere"), run: (node, output) => showEverywhere(sentence, node, output) },
      ],
    });
    sum.replaceChildren(...sumTable(sentence.graph));
    off.replaceChildren(...comparison(sentence.graph));
  }
}

function strongestFeature({ graph, without }) {
  const features = without.map(({ node }) => graph.nodes[node]);
  return features.sort((a, b) => b.total - a.total)[0];
}

// What the model writes without a feature at its position, as recorded.
function showWithout({ graph, without }, node, output) {
  const { changed, piece, logit } = without.find((result) => graph.nodes[result.node] === node);
  const written = changed
    ? gettext("Without {feature} at {piece}, the model writes “{written}…” instead.")
    : gettext("Without {feature} at {piece}, the model still writes “{written}”.");
  const figures = gettext("The logit changes from {from} to {to}, and the sum predicts {sum}.", {
    from: formatNumber(graph.logit),
    to: formatNumber(logit),
    sum: formatNumber(graph.logit - node.total),
  });
  const values = {
    feature: node.name,
    piece: plainPiece(node.token),
    written: changed ? plainPiece(piece) : graph.word,
  };
  output.replaceChildren(el("p", {}, `${filled(written, values)} ${figures}`));
}

// The translation without a feature at all positions, as recorded.
function showEverywhere({ graph, translation, without }, node, output) {
  const { everywhere } = without.find((result) => graph.nodes[result.node] === node);
  const words = everywhere.split(/\s+/);
  const [differing] = diffWords(words, translation.split(/\s+/));
  const note = everywhere === translation ? ` ${gettext("(the same)")}` : "";
  const label = gettext("With {feature} off everywhere:", { feature: node.name });
  output.replaceChildren(el("p", {}, `${label} `, ...markWords(words, differing), note));
}

// The direct effects of all nodes by kind, and what they sum to.
function sumTable({ by_kind, bias, logit, nodes, count, remainder }) {
  const parts = Object.entries(KINDS).map(([kind, name]) => [name, by_kind[kind] ?? 0]);
  parts.push([gettext("biases"), bias]);
  let total = 0;
  const rows = parts.map(([name, effect]) => {
    total += effect;
    return row(name, effect, total);
  });
  const result = row(gettext("the logit"), logit, logit);
  result.classList.add("chosen");
  const shown = logit - bias - remainder;
  return [
    el(
      "table",
      { class: "data-table sum-table" },
      tableHead(gettext("part"), gettext("effect"), gettext("sum")),
      el("tbody", {}, ...rows, result),
    ),
    hint(
      gettext("The {count} nodes of the graph add {effect} of this directly, the other {others} add {rest}.", {
        count: nodes.length,
        effect: formatNumber(shown),
        others: count - nodes.length,
        rest: formatNumber(remainder),
      }),
    ),
  ];

  function row(name, effect, sum) {
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", {}, formatNumber(effect)),
      el("td", {}, formatNumber(sum)),
    );
  }
}

// The logit without the strongest features together, beside what the sum predicts and beside other features.
function comparison({ word, faithfulness }) {
  if (!faithfulness) return [hint(gettext("The graph has no features."))];
  const { features, logit, top, random, strongest, predicted, draws } = faithfulness;
  const count = features.length;
  const writes = (changed) => (changed ? gettext("another word") : word);
  const anotherIn = gettext("another word in {share}", { share: formatPercent(random.changed) });
  const rows = [
    [gettext("nothing is off"), logit, word],
    [gettext("the {count} strongest, attention held", { count }), predicted, "–"],
    [gettext("the {count} strongest, in the model", { count }), top.logit, writes(top.changed)],
    [gettext("{count} random ones, mean of {draws} draws", { count, draws }), random.logit, anotherIn],
    [gettext("the {count} most active ones", { count }), strongest.logit, writes(strongest.changed)],
  ].map(([name, value, written]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", { class: "text" }, written),
      el("td", {}, formatNumber(value)),
    ),
  );
  return [
    el(
      "table",
      { class: "data-table" },
      tableHead(gettext("switched off"), gettext("the model writes"), "logit"),
      el("tbody", {}, ...rows),
    ),
    hint(
      gettext("Strongest by their effect through all paths: {features} (feature @ position).", {
        features: features.join(", "),
      }),
    ),
  ];
}

function plainPiece(piece) {
  return piece.replaceAll("▁", "") || "␣";
}

// What the text says about the record: the strongest features of the first sentence, and of how many the word changes.
export function circuitFacts({ sentences }) {
  const [{ graph }] = sentences;
  const { word, logit, faithfulness, by_kind } = graph;
  const graphs = sentences.map((sentence) => sentence.graph).filter((other) => other.faithfulness);
  const changed = graphs.filter((other) => other.faithfulness.top.changed).length;
  const unexplained = logit - (by_kind.feature ?? 0);
  const facts = {
    changed: gettext(
      "Without the strongest features of its graph, the word changes in {changed} of {count} sentences here.",
      { changed, count: graphs.length },
    ),
    unexplained: gettext(
      "Of the logit of “{word}”, {share} comes directly from tokens, positions, errors and biases.",
      { word, share: formatPercent(unexplained / logit) },
    ),
  };
  if (!faithfulness) {
    return { ...facts, question: gettext("The graph has no features. Where does the logit come from?"), answer: "" };
  }
  const { features, top, predicted } = faithfulness;
  const written = top.changed
    ? gettext("The model writes another word.")
    : gettext("The model still writes “{word}”.", { word });
  const figures = gettext("The logit goes from {from} to {to}; with attention held, it would be {predicted}.", {
    from: formatNumber(logit),
    to: formatNumber(top.logit),
    predicted: formatNumber(predicted),
  });
  return {
    ...facts,
    question: gettext(
      "The {count} strongest features of the graph of “{word}” are switched off together. Does the model write another word?",
      { count: features.length, word },
    ),
    answer: `${written} ${figures}`,
  };
}
