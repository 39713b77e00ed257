// Lesson 16: the graph of a word, the sum that reaches its logit, and what the model writes without a feature.
import { el } from "./dom.js";
import { formatNumber, formatPercent } from "./formatting.js";
import { showGraph } from "./graph.js";
import { hint, tableHead } from "./widgets.js";
import { diffWords, markWords } from "./word_diff.js";

const KINDS = { token: "tokens", position: "positions", feature: "features", error: "errors of the transcoders" };

export function circuitFigure(container) {
  const translation = el("p", { class: "translation" });
  const graph = el("div", {});
  const sum = el("div", {});
  const off = el("div", {});
  container.append(
    translation,
    graph,
    el("h3", {}, "The sum that reaches the logit"),
    sum,
    el("h3", {}, "Without the strongest features"),
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
        { label: "Switch it off here", run: (node, output) => showWithout(sentence, node, output) },
        { label: "Switch it off everywhere", run: (node, output) => showEverywhere(sentence, node, output) },
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
    ? `the model writes “${plainPiece(piece)}…” instead`
    : `the model still writes “${graph.word}”`;
  const figures = `the logit changes from ${formatNumber(graph.logit)} to ${formatNumber(logit)}, and the sum predicts ${formatNumber(graph.logit - node.total)}`;
  output.replaceChildren(el("p", {}, `Without ${node.name} at ${plainPiece(node.token)}: ${written}; ${figures}.`));
}

// The translation without a feature at all positions, as recorded.
function showEverywhere({ graph, translation, without }, node, output) {
  const { everywhere } = without.find((result) => graph.nodes[result.node] === node);
  const words = everywhere.split(/\s+/);
  const [differing] = diffWords(words, translation.split(/\s+/));
  const note = everywhere === translation ? " (the same)" : "";
  output.replaceChildren(el("p", {}, `With ${node.name} off everywhere: `, ...markWords(words, differing), note));
}

// The direct effects of all nodes by kind, and what they sum to.
function sumTable({ by_kind, bias, logit, nodes, count, remainder }) {
  const parts = Object.entries(KINDS).map(([kind, name]) => [name, by_kind[kind] ?? 0]);
  parts.push(["biases", bias]);
  let total = 0;
  const rows = parts.map(([name, effect]) => {
    total += effect;
    return row(name, effect, total);
  });
  const result = row("the logit", logit, logit);
  result.classList.add("chosen");
  const shown = logit - bias - remainder;
  return [
    el(
      "table",
      { class: "data-table sum-table" },
      tableHead("part", "effect", "sum"),
      el("tbody", {}, ...rows, result),
    ),
    hint(
      `The ${nodes.length} nodes of the graph add ${formatNumber(shown)} of this directly, the other ${count - nodes.length} add ${formatNumber(remainder)}.`,
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
  if (!faithfulness) return [hint("The graph has no features.")];
  const { features, logit, top, random, strongest, predicted, draws } = faithfulness;
  const count = features.length;
  const writes = (changed) => (changed ? "another word" : word);
  const rows = [
    ["nothing is off", logit, word],
    [`the ${count} strongest, attention held`, predicted, "–"],
    [`the ${count} strongest, in the model`, top.logit, writes(top.changed)],
    [`${count} random ones, mean of ${draws} draws`, random.logit, `another word in ${formatPercent(random.changed)}`],
    [`the ${count} most active ones`, strongest.logit, writes(strongest.changed)],
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
    el("table", { class: "data-table" }, tableHead("off", "the model writes", "logit"), el("tbody", {}, ...rows)),
    hint(`Strongest by their effect through all paths: ${features.join(", ")} (feature @ position).`),
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
    changed: `Without the strongest features of its graph, the word changes in ${changed} of ${graphs.length} sentences here.`,
    unexplained: `Of the logit of “${word}”, ${formatPercent(unexplained / logit)} comes directly from tokens, positions, errors and biases.`,
  };
  if (!faithfulness) {
    return { ...facts, question: "The graph has no features. Where does the logit come from?", answer: "" };
  }
  const { features, top, predicted } = faithfulness;
  const written = top.changed ? "The model writes another word" : `The model still writes “${word}”`;
  return {
    ...facts,
    question: `The ${features.length} strongest features of the graph of “${word}” are switched off together. Does the model write another word?`,
    answer: `${written}. The logit goes from ${formatNumber(logit)} to ${formatNumber(top.logit)}; with attention held, it would be ${formatNumber(predicted)}.`,
  };
}
