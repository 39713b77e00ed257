// The inspector of a translation or a caption: its words with an attention map, and below them the details of the chosen tab.

import { axes, hasPrefixContributions, nameInLink, RIBBON_METHODS, visibleColumns } from "./attention_maps.js";
import { showContinuations } from "./beam.js";
import { createRetryButton, element, formatPercent, isolateText } from "./elements.js";
import { showExplanationTab } from "./explanation_tab.js";
import { storedExplanations } from "./explanations.js";
import { showExportMenu } from "./export_menu.js";
import { showAttentionTab, showHeadsTab, showLayersTab, showPatchingTab, showStepsTab } from "./inspector_tabs.js";
import { gettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";
import { TRANSLATION_VIEW } from "./translation_view.js";

const TABS = {
  attention: { label: gettext("Attention"), show: showAttentionTab },
  layers: { label: gettext("Layers"), show: showLayersTab },
  heads: { label: gettext("Heads"), show: showHeadsTab },
  steps: { label: gettext("Steps"), show: showStepsTab },
  why: { label: gettext("Why"), show: showExplanationTab },
  patching: { label: gettext("Patching"), show: showPatchingTab },
};
const WEIGHT_KINDS = RIBBON_METHODS.weights.kinds;
const MAP_KINDS = {
  // the kinds of maps that a tab can show; the others show attention weights
  attention: Object.values(RIBBON_METHODS).flatMap(({ kinds }) => kinds),
  heads: [...WEIGHT_KINDS, ...RIBBON_METHODS.content.kinds, "encoder", "decoder"],
};
const NO_ATTENTION = gettext("This model has no attention: its decoder sees the source only as one vector.");

// Show an inspector in `root`.
//
// content: {
//   run: the model's folder, for the Python code,
//   packageVersion: the commit, or else the version, of the package that trained the model, if known, for the captions of pictures,
//   image: the name of the image file, if there is one,
//   languages: [source, target],
//   isMultilingual: whether loading the model requires the languages,
//   sentences: [{ source_text, text, confidence, record, layers, tree, explanations: by method }, …]; record is null without attention,
//   tab: the first tab,
//   sentenceIndex: the first sentence,
//   map: the name in a link of the map that is shown first, see nameInLink; it may be one that the server has to compute,
//   step: the index of the word at which the tab Steps starts,
//   isShownLater: whether to show it in a task of its own, as slow devices need time for it,
//   view: how the words and maps are shown, TRANSLATION_VIEW if not given,
//   hasSingleMap: whether the model has a single attention map, so that no tab for heads is needed,
//   tabs: further tabs, [{ name, label, show(inspector) }, …]; `show` fills inspector.panel, and may set inspector.contrastForm, also
//     later: clicks on words wait for the promise that it returns,
//   parts: what is shown below our own tabs, [{ tab, show(inspector, root) }, …]; so far, below Heads }
// server: functions that ask the server for what is missing; tabs whose function is missing are not shown. {
//   maps(sentence): a record with all maps,
//   contributions(sentence): the fields and maps that contributions add to a record,
//   layers(sentence): see layers.js,
//   ablate(sentence, names of heads): { text, record } without these heads,
//   tree(sentence): see beam.js,
//   explain(sentence, method, contrast): an explanation,
//   methods: the labels of explanation methods by name,
//   patch(sentence, fields): see patching.js,
//   continuations(sentence, tokens of the prefix, its text): see showContinuations,
//   pdf(sentence, fields): a blob,
//   ask(path, fields): what further tabs ask,
//   place: an object in which further tabs keep texts for the link to what they show,
//   onChoose(sentence, text, word): the user chose another text that differs from the word with this index on,
//   onSentenceChange(index), onTabChange(name): the user opened a sentence or a tab,
//   onMapChange(name), onStepChange(index): another map is shown, "" for the first one, or another word in the tab Steps,
//   onError(error or null): a request failed, or succeeded }
// Returns { showSentence(index), focusWord(index) }.
export function showInspector(root, content, server = {}) {
  return new Inspector(root, content, server);
}

class Inspector {
  /** @type {ReturnType<typeof createTabBar>} */
  sentenceBar;
  /** @type {ReturnType<typeof createTabBar>} */
  tabBar;

  constructor(root, content, server) {
    const { sentences, view = TRANSLATION_VIEW } = content;
    this.content = content;
    this.server = server;
    this.tabs = { ...TABS, ...Object.fromEntries((content.tabs ?? []).map((tab) => [tab.name, tab])) };
    this.view = view;
    this.explanations = server.explain ? server : storedExplanations(sentences); // { methods, explain }
    /** @type {any} */
    this.sentence = null;
    /** @type {any} */
    this.record = null; // the record that is shown, with what the server has added to that of the sentence
    /** @type {any} */
    this.map = null; // the attention map that is shown
    this.attentionMap = null; // the map that the user selected in the attention tab
    this.linkedMap = content.map ?? ""; // the name of the map to which a link leads; until it is shown
    this.firstStep = content.step; // of the tab Steps, where a link leads to one; until it is shown
    /** @type {any} */
    this.exported = null; // what the export menu saves
    /** @type {{ stop: () => void, currentStep: () => number } | null} */
    this.playback = null;
    /** @type {any} */
    this.wordsView = null; // what view.showWords returned
    /** @type {any} */
    this.contrastForm = null;
    /** @type {Promise<void> | null} */
    this.loading = null; // of a further tab, whose module decides what a click on a word does
    this.createElements(root);
    this.tab = this.availableTabs().includes(content.tab) ? content.tab : "attention";
    const showFirst = () => this.showSentence(sentences[content.sentenceIndex] ? content.sentenceIndex : 0);
    if (content.isShownLater) setTimeout(showFirst);
    else if (sentences.length) showFirst();
  }

  createElements(root) {
    const { sentences } = this.content;
    const sentenceEntries = sentences.map(({ source_text }, i) => ({ key: i, label: `${i + 1}`, title: source_text }));
    this.sentenceBar = createTabBar("sentences", gettext("sentences"), sentenceEntries, (index) => {
      this.showSentence(index);
      this.server.onSentenceChange?.(index);
    });
    this.sentenceBar.bar.dataset.label = gettext("Sentence");
    const tabEntries = this.availableTabs().map((name) => ({ key: name, label: this.tabs[name].label, title: "" }));
    this.tabBar = createTabBar("views", gettext("views"), tabEntries, (name) => {
      this.showTab(name);
      this.server.onTabChange?.(name);
    });
    this.note = element("p", { className: "note" });
    this.wordsContainer = element("div", { className: "sentence-view" });
    this.continuations = element("div", { className: "continuations" });
    this.panel = element("div", { className: "panel", role: "tabpanel", ariaLabel: gettext("details") });
    this.exportMenu = element("div", { className: "export-menu" });
    const details = element("div", { className: "details" }, this.continuations, this.panel, this.exportMenu);
    const bars = sentences.length > 1 ? [this.sentenceBar.bar, this.tabBar.bar] : [this.tabBar.bar];
    root.classList.add("inspector");
    root.replaceChildren(...bars, this.note, this.wordsContainer, details);
  }

  availableTabs() {
    const further = (this.content.tabs ?? []).map(({ name }) => [name, true]);
    const isAvailable = {
      attention: true,
      layers: this.server.layers || this.content.sentences.some(({ layers }) => layers),
      heads: !this.content.hasSingleMap,
      steps: true,
      why: this.explanations.explain,
      patching: this.server.patch,
      ...Object.fromEntries(further),
    };
    return Object.keys(this.tabs).filter((name) => isAvailable[name]);
  }

  showSentence(index) {
    this.sentence = this.content.sentences[index];
    this.record = this.sentence.record;
    this.sentenceBar.select(index);
    this.continuations.replaceChildren();
    this.tabBar.bar.hidden = !this.record;
    if (this.record) {
      this.map ??= this.record.maps[0];
      this.showTab(this.tab);
    } else {
      this.clearDetails();
      this.wordsContainer.replaceChildren(element("p", { textContent: NO_ATTENTION }));
    }
  }

  showTab(name) {
    this.playback?.stop();
    this.playback = null;
    this.contrastForm = null;
    this.tab = name;
    this.tabBar.select(name);
    this.clearDetails();
    this.exported = this.attentionExport();
    this.record = this.currentRecord();
    const previousMap = (name === "attention" && this.attentionMap) || this.map;
    const map = this.findMap(previousMap);
    const kinds = MAP_KINDS[name] ?? WEIGHT_KINDS;
    this.selectMap(kinds.includes(map.kind) ? map : this.record.maps.find(({ kind }) => kind === "cross"));
    this.showWords();
    const shown = this.tabs[name].show(this);
    this.loading = name in TABS ? null : shown;
    if (name === "attention" || name === "steps") this.showExportMenu(); // other tabs do it once they have loaded
    return shown;
  }

  // Let the attention tab show a map.
  chooseMap(map) {
    this.attentionMap = map;
    this.linkedMap = "";
    this.selectMap(map);
  }

  // Show a map next, and let a link lead to it, unless the map to which a link led could not be shown yet.
  selectMap(map) {
    this.map = map;
    if (nameInLink(map) === this.linkedMap) this.linkedMap = "";
    const isFirst = map === this.record.maps[0];
    this.server.onMapChange?.(this.linkedMap || (isFirst ? "" : nameInLink(map)));
  }

  clearDetails() {
    for (const part of [this.panel, this.exportMenu, this.note]) part.replaceChildren();
  }

  // Return the record of the sentence with what the server has added so far.
  currentRecord() {
    const { contributions } = this.sentence;
    const record = this.sentence.fullRecord ?? this.sentence.record;
    return contributions ? { ...record, ...contributions, maps: [...record.maps, ...contributions.maps] } : record;
  }

  // Return the map of the current record to which a link leads, or the one that shows the same as a map of another record.
  findMap({ kind, layer, head }) {
    const { maps } = this.record;
    const isLinked = (map) => nameInLink(map) === this.linkedMap;
    const isSame = (map) => map.kind === kind && map.layer === layer && map.head === head;
    return maps.find(isLinked) ?? maps.find(isSame) ?? maps[0];
  }

  // Show the words of the sentence with the current map.
  showWords() {
    const { record, map, view, sentence } = this;
    const isAblated = record === sentence.ablation?.record;
    const hasTargetBelow = view.axes(record, map).down === record.target;
    const canChoose = hasTargetBelow && !isAblated && this.server.continuations;
    /** @type {{ hint: string, onChoose: ((side: string, index: number) => void) | null }} */
    const options = { hint: "", onChoose: null };
    if (canChoose) {
      const asksWhy = this.tab === "why" || this.contrastForm;
      options.hint = asksWhy ? view.nouns.askWhy : view.nouns.seeAlternatives;
      options.onChoose = (side, index) => {
        if (side === "below") this.chooseWord(index);
      };
    }
    const marked = isAblated ? sentence.ablation.marked : sentence.marked;
    this.wordsView = view.showWords(
      this.wordsContainer,
      { record, map, languages: this.content.languages, marked },
      options,
    );
    if (sentence.confidence != null)
      this.note.textContent = gettext("Confidence: {share}.", { share: formatPercent(sentence.confidence) });
    this.continuations.replaceChildren();
  }

  async chooseWord(index) {
    const { loading } = this;
    await loading;
    if (loading !== this.loading) return; // another tab or sentence is open
    const canContrast = this.contrastForm && index < this.wordsWithoutEnd().length;
    if (canContrast) this.contrastForm.selectWord(index);
    else this.showContinuations(this.prefixTokens(index), this.prefixText(index), index);
  }

  // Return the tokens before a word.
  prefixTokens(index) {
    return (this.sentence.record.tokens ?? []).slice(0, index).flat();
  }

  // Return the words before a word as text.
  prefixText(index) {
    return this.record.target.slice(0, index).join(" ");
  }

  // Return the words of the translation without the end token.
  wordsWithoutEnd() {
    const { target } = this.record;
    return target.at(-1) === "</s>" ? target.slice(0, -1) : target;
  }

  // Show how the model may continue a prefix, which replaces the text from the word with the index `word` on.
  async showContinuations(tokens, text, word) {
    const { sentence } = this;
    const continuations = await this.request(() => this.server.continuations(sentence, tokens, text));
    if (sentence !== this.sentence || !continuations) return;
    showContinuations(this.continuations, continuations, {
      title: text
        ? gettext("Continuations after “{text}”", { text: isolateText(text) })
        : gettext("Possible first words"),
      lang: this.content.languages?.[1],
      onChoose: (chosen) => this.server.onChoose(sentence, chosen, word),
    });
  }

  focusWord(index) {
    const words = this.wordsView?.words.below ?? [];
    words[Math.min(index, words.length - 1)]?.focus(); // there may be fewer words now
  }

  showExportMenu() {
    const { name, svg, data, code, command, pdfFields } = this.exported;
    const { image, isMultilingual } = this.content;
    const caption =
      command && !image && !isMultilingual ? (ending) => this.caption(command, `${name}.${ending}`) : null;
    const fields = () => ({ ...pdfFields(), ...(caption ? { caption: caption("pdf").join("\n") } : {}) });
    const pdf = this.server.pdf && pdfFields ? () => this.server.pdf(this.sentence, fields()) : null;
    showExportMenu(this.exportMenu, { name, svg, data, code, caption, pdf });
  }

  // Return the export of the words and the current map, for the tabs that export nothing else.
  attentionExport() {
    return {
      name: "attention",
      svg: () => this.wordsView.svg(),
      data: () => {
        const { record, map } = this;
        const { fed, prefix, source_contributions } = record;
        const prefixFields = hasPrefixContributions(record, map) ? { fed, prefix, source_contributions } : {};
        const words = this.view.axes(record, map);
        if (map.kind !== "content") return { ...words, ...map, ...prefixFields };
        const { across, weights } = visibleColumns(record, map);
        return { ...words, ...map, across, weights };
      },
      code: () => this.view.mapCode(this.codeArguments(), this.map),
      command: (run, text, file) => `look ${run} ${text}${mapOptions(this.map)} --save ${file}`,
    };
  }

  // Return the lines of a picture's caption: its run with the version of the package, and the command that draws it.
  caption(command, file) {
    const { run, packageVersion } = this.content;
    const text = `'${this.sentence.source_text.replaceAll("'", "'\\''")}'`;
    const origin = packageVersion ? `${run}, Translucid ${packageVersion.replace(/^(\w{10})\w+/, "$1")}` : run;
    return [origin, `translucid ${command(run, text, file)}`];
  }

  // Show in `root` what others add to the open tab; again when another map is chosen.
  showParts(root) {
    const parts = (this.content.parts ?? []).filter(({ tab }) => tab === this.tab);
    const roots = parts.map(() => element("section"));
    root.replaceChildren(...roots);
    parts.forEach((part, i) => {
      part.show(this, roots[i]);
    });
  }

  // Return what the Python code needs to know.
  codeArguments() {
    const { run, image, languages, isMultilingual } = this.content;
    const { source_text, text } = this.sentence;
    return { run, image, languages: isMultilingual ? languages : null, source: source_text, target: text };
  }

  // Return the table of the current map. Contributions through all layers have further columns for the translation so far.
  tableContent() {
    const { record, map } = this;
    const { down } = axes(record, map);
    const { across, weights } = visibleColumns(record, map);
    if (!hasPrefixContributions(record, map)) return { down, across, weights };
    return {
      down,
      across: [...across, ...record.fed],
      weights: weights.map((row, t) => [...row, ...record.prefix[t]]),
    };
  }

  // Return a function that tells whether the sentence and the tab are still those of now.
  currentState() {
    const { sentence, tab } = this;
    return () => sentence === this.sentence && tab === this.tab;
  }

  // Return a property of the sentence; if it is missing, get it from the server. Returns null if that fails, or if the user has
  // opened another sentence or tab meanwhile.
  async load(property, send) {
    const { sentence } = this;
    const isCurrent = this.currentState();
    let message = "";
    if (!sentence[property]) {
      this.panel.textContent = "…";
      const response = await this.request(
        () => send(sentence),
        (error) => {
          message = error.message;
        },
      );
      if (response) sentence[property] = response;
    }
    if (!isCurrent()) return null;
    if (sentence[property]) return sentence[property];
    this.panel.replaceChildren(
      element("p", { textContent: message }),
      createRetryButton(() => this.showTab(this.tab)),
    );
    return null;
  }

  // Send a request to the server; returns null if it fails.
  async request(send, onError = (_error) => {}) {
    try {
      const response = await send();
      this.server.onError?.(null);
      return response;
    } catch (error) {
      onError(error);
      this.server.onError?.(error);
      return null;
    }
  }
}

// Return the options of the command `look` that choose a map.
function mapOptions({ kind, layer, head }) {
  const options = Object.entries({ layer, head }).filter(([, value]) => value !== null);
  const choice = options.map(([name, value]) => ` --${name} ${value}`).join("");
  if (kind === "rollout") return " --flow";
  return kind === "cross" ? choice : ` --method ${kind}${choice}`;
}

// Create a bar of tabs, which is a single Tab stop.
//
// entries: [{ key, label, title }, …].
// onSelect(key): the user selects a tab.
// Returns { bar, select(key) }.
function createTabBar(className, ariaLabel, entries, onSelect) {
  const buttons = new Map();
  for (const { key, label, title } of entries) {
    const button = element("button", { type: "button", role: "tab", textContent: label, title });
    button.addEventListener("click", () => onSelect(key));
    buttons.set(key, button);
  }
  const bar = element("div", { className: `tabs ${className}`, role: "tablist", ariaLabel }, ...buttons.values());
  addRovingTabindex([[...buttons.values()]]);
  return { bar, select };

  function select(selected) {
    for (const [key, button] of buttons) {
      button.ariaSelected = key === selected;
      button.tabIndex = key === selected ? 0 : -1;
    }
  }
}
