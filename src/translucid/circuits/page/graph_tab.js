// The tab "Graph": from which tokens, through which features, a word of the translation comes.

import { createRetryButton, element, isolateText, svgElement } from "./elements.js";
import { createContrastForm } from "./explanations.js";
import { showCard } from "./feature_card.js";
import { markChanges } from "./features_tab.js";
import { showGraph } from "./graph.js";
import { formatNumber, gettext } from "./messages.js";
import { loadStyle } from "./page_elements.js";
import { pythonString } from "./python_code.js";

const HINT = gettext(
  "Source tokens are below, the word above, and between them the features of the feed-forward sublayers that lead to it. Blue " +
    "speaks for the word, orange and dashed against it; the width is the share of the effect.",
);

// Fill the tab.
export async function showTab(inspector) {
  const isCurrent = inspector.currentState();
  await Promise.all(["features.css", "graph.css"].map(loadStyle));
  if (isCurrent()) new GraphView(inspector);
}

class GraphView {
  constructor(inspector) {
    this.inspector = inspector;
    this.isCurrent = inspector.currentState();
    this.latest = 0; // responses to earlier questions are ignored
    const { panel, content, server } = inspector;
    const { place } = server;
    this.words = inspector.wordsWithoutEnd();
    this.form = createContrastForm({
      words: this.words,
      lang: content.languages?.[1],
      hasAllWords: false,
      findAlternatives: (index) => this.findAlternatives(index),
      onChange: (contrast, word) => this.show(word, contrast?.instead_of ?? ""),
    });
    this.container = element("div", {});
    panel.replaceChildren(this.form.container, element("p", { className: "note", textContent: HINT }), this.container);
    inspector.contrastForm = this.form;
    inspector.showWords(); // with the hint that a word can be chosen
    if (!this.words.length) return;
    const linked = place.word === "" ? -1 : Number(place.word);
    const { instead_of } = place;
    this.node = place.node;
    this.form.selectWord(this.words[linked] === undefined ? longestIndex(this.words) : linked);
    if (this.words[linked] !== undefined && instead_of) this.form.chooseAlternative(instead_of);
  }

  findAlternatives(index) {
    const { inspector } = this;
    const prefix = [inspector.prefixTokens(index), inspector.prefixText(index)];
    return inspector.request(() => inspector.server.continuations(inspector.sentence, ...prefix));
  }

  // Show the graph of a word, or of the difference to another one.
  async show(word, instead_of) {
    const { inspector, container } = this;
    const { sentence, server } = inspector;
    this.latest += 1;
    const id = this.latest;
    const question = { q: sentence.source_text, translation: sentence.text, word, instead_of };
    Object.assign(server.place, { word: String(word), instead_of });
    sentence.graphs ??= new Map();
    const key = `${word} ${instead_of}`;
    if (!sentence.graphs.has(key)) {
      container.classList.add("waiting");
      let message = "";
      const graph = await inspector.request(
        () => server.ask("graph", question),
        (error) => {
          message = error.message;
        },
      );
      if (graph) sentence.graphs.set(key, graph);
      if (id !== this.latest || !this.isCurrent()) return;
      container.classList.remove("waiting");
      if (!graph) {
        const retry = createRetryButton(() => this.show(word, instead_of));
        container.replaceChildren(element("p", { textContent: message }), retry);
        return;
      }
    }
    inspector.wordsView.highlightBelow?.(word);
    this.showResult(sentence.graphs.get(key), question);
  }

  showResult(graph, question) {
    const { inspector, container } = this;
    const view = element("div", {});
    const figures = element("p", { className: "figures", textContent: graph.figures });
    const details = element("details", {}, element("summary", { textContent: gettext("Figures") }), figures);
    container.replaceChildren(view, details);
    showGraph(view, graph, {
      labels: graph.labels,
      chosen: this.node,
      onChoose: (node) => {
        inspector.server.place.node = node ? node.name : "";
      },
      actions: [
        { label: gettext("Card"), run: (node, output) => showCard(inspector, output, node.name) },
        { label: gettext("Ablate it here"), run: (node, output) => this.ablate(question, node, output) },
        { label: gettext("Translate without it"), run: (node, output) => this.translateWithout(node, output) },
      ],
    });
    this.node = "";
    inspector.exported = {
      name: "graph",
      svg: () => standaloneGraph(view.querySelector("svg")),
      data: () => ({ ...graph, svg: undefined, figures: undefined, labels: undefined }),
      code: () => graphCode(inspector.codeArguments(), question),
    };
    inspector.showExportMenu();
  }

  // Switch a feature off at its position, and show what the model writes in place of the word.
  async ablate(question, node, output) {
    const fields = { ...question, features: [`${node.name} @ ${node.position}`] };
    const result = await this.ask("graph/ablate", fields, output);
    if (!result) return;
    const { changed, word, piece, logit, without } = result;
    const written = isolateText(piece.replaceAll("▁", ""));
    const values = {
      feature: node.name,
      token: node.token.replaceAll("▁", ""),
      word: changed ? written : isolateText(word),
      logit: formatNumber(logit, 2),
      without: formatNumber(without, 2),
    };
    const textContent = changed
      ? gettext(
          "Without {feature} at {token}: the model writes “{word}…” instead; the logit changes from {logit} to {without}.",
          values,
        )
      : gettext(
          "Without {feature} at {token}: the model still writes “{word}”; the logit changes from {logit} to {without}.",
          values,
        );
    output.replaceChildren(element("p", { textContent }));
  }

  // Switch a feature off wherever it is active, and show the translation.
  async translateWithout(node, output) {
    const { sentence, content } = this.inspector;
    const fields = { q: sentence.source_text, features: [`${node.name}=0`] };
    const result = await this.ask("features/steer", fields, output);
    if (!result) return;
    const words = markChanges(result.text, sentence.text);
    const text = element("span", { dir: "auto", lang: content.languages?.[1] }, ...words);
    const same = result.text === sentence.text ? ` ${gettext("(the same)")}` : "";
    output.replaceChildren(
      element("p", {}, `${gettext("With {feature} off everywhere:", { feature: node.name })} `, text, same),
    );
  }

  async ask(path, fields, output) {
    const { inspector } = this;
    output.textContent = "…";
    return inspector.request(
      () => inspector.server.ask(path, fields),
      (error) => {
        output.textContent = error.message;
      },
    );
  }
}

function longestIndex(words) {
  const lengths = words.map((word) => word.length);
  return lengths.indexOf(Math.max(...lengths));
}

// Return a copy of the picture that needs no style sheet: its colors are also in attributes.
function standaloneGraph(svg) {
  const copy = svg.cloneNode(true);
  copy.removeAttribute("class");
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.prepend(svgElement("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  return copy;
}

function graphCode({ run, languages, source, target }, { word, instead_of }) {
  const pair = languages ? `, source=${pythonString(languages[0])}, target=${pythonString(languages[1])}` : "";
  const other = instead_of ? `, instead_of=${pythonString(instead_of)}` : "";
  return [
    "from pathlib import Path",
    "",
    "from translucid import Translator",
    "from translucid.circuits import Dictionary, attribution_graph",
    "",
    `run = Path(${pythonString(run)})`,
    `translator = Translator.load(run${pair}, engine="torch")`,
    "transcoders = Dictionary.load(run).transcoders",
    `graph = attribution_graph(translator, transcoders, ${pythonString(source)}, ${word}, target=${pythonString(target)}${other})`,
    "print(graph.to_json())",
  ].join("\n");
}
