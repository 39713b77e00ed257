// Attention and explanations of a translation, in one view per model.
//
// #inspection emits "choose" with { translations, modelIndex, step } when the user chooses other translations of the sentences, and
// "problem" with an error or null.

import { element } from "./elements.js";
import { METHODS } from "./explanations.js";
import { showInspector } from "./inspector.js";
import { gettext, translated } from "./messages.js";
import { $ } from "./page_elements.js";
import { settleIfCurrent } from "./requests.js";
import { diffWords } from "./word_diff.js";

const VIEW_IDS = ["attention", "compared-attention"];
let request; // a function of (path, model, fields) that asks the server
let methods = {}; // the server's explanation methods
let generation = 0; // responses of earlier generations are ignored
let selectedTab = "attention";
/** @type {Record<string, string>} */
let place = { sentence: "" }; // what a link says of the view beside its tab: { sentence: its index, and what tabs of extensions keep }
/** @type {{ view: number, sentence: number, word: number } | null} */
let lastChoice = null; // { view, sentence, word } where the user chose an alternative: the focus returns there

// Set up. `sendRequest(path, model, fields)` returns a promise for the server's response.
export function initAttentionViews(sendRequest, settings) {
  request = sendRequest;
  methods = Object.fromEntries(Object.entries(METHODS).filter(([name]) => settings.explanations.includes(name)));
}

// Show the view of a link next, { tab, … }, or the tab that is open.
export function restorePlace({ tab = selectedTab, sentence = "", word = "", ...others }) {
  selectedTab = tab;
  const { instead_of = "", node = "", map = "", step = "", point = "" } = others;
  place = { sentence, word, instead_of, node, map, step, point };
}

// Return the view for a link.
export function currentPlace() {
  return { tab: selectedTab === "attention" ? "" : selectedTab, ...place };
}

// Ignore the responses to all requests that have been sent so far, because the text is about to change.
export function ignorePendingResponses() {
  generation += 1;
}

// Remove all views.
export function clearAttentionViews() {
  ignorePendingResponses();
  $("inspection").hidden = true;
  $("inspection").replaceChildren();
}

// Show the views of a text, as viewsOf in pivot_steps.js returns them: [{ response, model, modelIndex, step, title }, …].
export function showAttentionViews(views) {
  const container = $("inspection");
  const focusTarget = lastChoice;
  lastChoice = null;
  container.style.minHeight = `${container.offsetHeight}px`; // the page would jump if the section became shorter
  clearAttentionViews();
  if (views[0]?.response.sentences.length) {
    const inspectors = renderViews(container, views, focusTarget?.sentence ?? Number(place.sentence));
    if (focusTarget) inspectors[focusTarget.view].focusWord(focusTarget.word);
  }
  container.style.minHeight = "";
}

function renderViews(container, views, sentenceIndex) {
  const sentencesByView = views.map(({ response }) => displayUnits(response));
  const areOtherModels = views.every(({ step }) => step === undefined);
  if (views.length > 1 && areOtherModels) markDifferences(sentencesByView[0], sentencesByView[1]);
  const columns = element("div", { className: views.length > 1 ? "side-by-side" : "" });
  container.hidden = false; // only visible elements can be measured
  container.append(columns);
  const inspectors = [];
  views.forEach((view, viewIndex) => {
    const { response, model, modelIndex, step } = view;
    const sentences = sentencesByView[viewIndex];
    const root = element("div", { id: VIEW_IDS[viewIndex] ?? `attention-${viewIndex}` });
    columns.append(viewSection(view, root, views.length > 1));
    // All views show the same sentence.
    const onSentenceChange = (index) => {
      place.sentence = String(index);
      inspectors.forEach((inspector, i) => {
        if (i !== viewIndex && index < sentencesByView[i].length) inspector.showSentence(index);
      });
    };
    const onChoose = (sentence, newText, word) => {
      lastChoice = { view: viewIndex, sentence: sentences.indexOf(sentence), word };
      const translations = response.sentences.map((original) =>
        original === sentence.original ? newText : original.text,
      );
      emit("choose", { translations, modelIndex, step });
    };
    const content = {
      run: `runs/${model.name}`,
      packageVersion: model.package_version,
      languages: [model.source, model.target],
      isMultilingual: model.hasManyPairs,
      sentences,
      tab: selectedTab,
      tabs: (model.tabs ?? []).map(loadedTab),
      parts: (model.parts ?? []).map(loadedPart),
      sentenceIndex,
      map: place.map,
      step: Number(place.step),
    };
    inspectors.push(showInspector(root, content, serverRequests(model, onSentenceChange, onChoose)));
  });
  return inspectors;
}

// Return a tab of an extension, whose module is loaded when it is opened.
function loadedTab({ name, label, module }) {
  return {
    name,
    label: translated(label),
    show: (inspector) => showLoaded(module, "showTab", inspector, inspector.panel),
  };
}

// Return what an extension shows below a tab of the inspector.
function loadedPart({ tab, module }) {
  return { tab, show: (inspector, root) => showLoaded(module, "showPart", inspector, root) };
}

async function showLoaded(module, name, inspector, root) {
  const isCurrent = inspector.currentState();
  root.textContent = "…";
  try {
    const loaded = await import(`./${module}`);
    if (isCurrent()) await loaded[name](inspector, root);
  } catch {
    root.textContent = gettext("The server does not respond. Open this tab again.");
  }
}

function viewSection({ title, modelIndex }, root, hasHeading) {
  const section = element("section", {
    ariaLabel: modelIndex
      ? gettext("attention and explanations of {model} (compared)", { model: title })
      : gettext("attention and explanations of {model}", { model: title }),
  });
  if (hasHeading) section.append(element("h3", { textContent: title, className: "muted" }));
  section.append(root);
  return section;
}

function emit(type, detail) {
  $("inspection").dispatchEvent(new CustomEvent(type, { detail }));
}

// Return the units that are shown one at a time: sentences, or the pieces of a sentence that was split because of its length.
// `original` is the sentence of the response if it was not split.
function displayUnits({ sentences }) {
  return sentences.flatMap((sentence) =>
    sentence.pieces.map((piece) => {
      const isWhole = sentence.pieces.length === 1;
      const words = (side) => piece[side]?.slice(0, -1).join(" ") ?? "";
      return {
        source_text: isWhole ? sentence.source_text : words("source"),
        text: isWhole ? sentence.text : words("target"),
        confidence: sentence.confidence,
        record: piece.maps ? piece : null,
        original: isWhole ? sentence : null,
      };
    }),
  );
}

// Mark the words in which the translations of two models differ.
function markDifferences(firstSentences, secondSentences) {
  firstSentences.forEach((first, i) => {
    const second = secondSentences[i];
    if (!first.record || !second?.record) return;
    const [onlyFirst, onlySecond] = diffWords(first.record.target, second.record.target);
    first.marked = { above: new Set(), below: onlyFirst };
    second.marked = { above: new Set(), below: onlySecond };
  });
}

// Return the requests of a view. Responses about an old text never arrive.
function serverRequests(model, onSentenceChange, onChoose) {
  const send = (path, fields) => {
    const sentGeneration = generation;
    return settleIfCurrent(request(path, model, fields), () => sentGeneration === generation);
  };
  const inspect = async ({ source_text: q, text }, fields) => {
    const response = await send("look", { q, translations: [text], ...fields });
    return response.sentences[0];
  };
  const explain = async (sentence, method, contrast) => {
    const { explanation } = await inspect(sentence, { explain: method, ...contrast });
    return explanation;
  };
  return {
    methods,
    ask: send,
    get place() {
      return place;
    },
    onSentenceChange,
    onChoose,
    onTabChange: (name) => {
      selectedTab = name;
    },
    onMapChange: (name) => {
      place.map = name;
    },
    onStepChange: (index) => {
      place.step = String(index);
    },
    onError: (error) => emit("problem", error),
    maps: async (sentence) => {
      const {
        pieces: [piece],
      } = await inspect(sentence, { maps: "all" });
      return { ...sentence.record, ...piece };
    },
    contributions: async (sentence) => {
      const {
        pieces: [piece],
      } = await inspect(sentence, { maps: "contributions" });
      const { fed, prefix, source_contributions, maps } = piece;
      return {
        fed,
        prefix,
        source_contributions,
        maps: maps.filter(({ kind }) => kind === "norms" || kind === "contributions"),
      };
    },
    layers: ({ source_text: q, text }) => send("layers", { q, translation: text }),
    patch: ({ source_text: q, text }, fields) => send("patch", { q, translation: text, ...fields }),
    ablate: async ({ source_text: q }, ablate) => {
      const response = await send("look", { q, ablate, maps: "all" });
      const [
        {
          text,
          pieces: [record],
        },
      ] = response.sentences;
      return { text, record };
    },
    tree: async ({ source_text: q }) => (await send("beam", { q })).trees[0],
    pdf: ({ source_text: q, text }, view) => send("picture", { q, translation: text, ...view }),
    ...(Object.keys(methods).length ? { explain } : {}),
    continuations: ({ source_text: q }, prefix) => send("continue", { q, prefix }),
  };
}
