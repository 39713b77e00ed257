// The tabs of the inspector except that of explanations. Each function fills inspector.panel, and sets what the export menu saves.

import { nameInLink, RIBBON_METHODS, translatedName } from "./attention_maps.js";
import { bestText, showBeam } from "./beam.js";
import { element, formatPercent, isolateText } from "./elements.js";
import { describeShares, showAblation, showHeads } from "./heads.js";
import { showWeightTable } from "./heatmap.js";
import { showLayers } from "./layers.js";
import { gettext } from "./messages.js";
import { showPatching } from "./patching.js";
import { showPlayback } from "./playback.js";
import { diffWords } from "./word_diff.js";

// Attention: what the ribbons show, the layer and head, and a table of the weights.
export function showAttentionTab(inspector) {
  const { map, panel } = inspector;
  const method = Object.keys(RIBBON_METHODS).find((name) => RIBBON_METHODS[name].kinds.includes(map.kind));
  const methodSelect = createMethodSelect(inspector, method);
  const maps = mapsOf(method, inspector);
  const table = element("div");
  const tableDetails = element("details", {}, element("summary", { textContent: gettext("Table of weights") }), table);
  const updateTable = () => {
    if (tableDetails.open) showWeightTable(table, inspector.tableContent());
  };
  tableDetails.addEventListener("toggle", updateTable);
  const mapSelect = createMapSelect(inspector, maps, updateTable);
  const toolbar = element(
    "div",
    { className: "toolbar" },
    element("label", { hidden: methodSelect.length < 2, textContent: `${gettext("Ribbons")} ` }, methodSelect),
    element("label", { hidden: maps.length < 2, textContent: `${gettext("Layer and head")} ` }, mapSelect),
  );
  panel.append(toolbar, ...(inspector.view.hasTable ? [tableDetails] : []));
  if (map.weights) {
    inspector.exported.pdfFields = () => {
      const { kind, layer, head } = inspector.map;
      return { view: "map", kind, layer, head };
    };
  }
  const name = inspector.linkedMap;
  const [linkedMethod] = name.split(", ");
  inspector.linkedMap = ""; // once, also if the server does not send it
  if (senderOf(linkedMethod, inspector)) showMethod(inspector, linkedMethod, name);
}

// What the server adds to a record with the maps of a method.
const PROPERTIES = { content: "fullRecord", norms: "contributions", contributions: "contributions" };

// Return the function that asks the server for the maps of a method.
function senderOf(method, { server }) {
  return { fullRecord: server.maps, contributions: server.contributions }[PROPERTIES[method]];
}

function mapsOf(method, { record }) {
  return record.maps.filter(({ kind }) => RIBBON_METHODS[method].kinds.includes(kind));
}

function createMethodSelect(inspector, method) {
  const names = Object.keys(RIBBON_METHODS).filter(
    (name) => mapsOf(name, inspector).length || senderOf(name, inspector),
  );
  const options = names.map((value) => element("option", { value, textContent: RIBBON_METHODS[value].label }));
  const select = element("select", { ariaLabel: gettext("what ribbons show") }, ...options);
  select.value = method;
  select.addEventListener("change", async () => {
    if (await showMethod(inspector, select.value)) inspector.panel.querySelector("select").focus(); // the tab has a new select
  });
  return select;
}

// Show a map of a method, the first one if it has none of this name; return whether the server has sent it.
async function showMethod(inspector, method, name = "") {
  if (!mapsOf(method, inspector).length) {
    if (!(await inspector.load(PROPERTIES[method], senderOf(method, inspector)))) return false;
    inspector.record = inspector.currentRecord();
  }
  const maps = mapsOf(method, inspector);
  inspector.chooseMap(maps.find((map) => nameInLink(map) === name) ?? maps[0]);
  await inspector.showTab(inspector.tab);
  return true;
}

function createMapSelect(inspector, maps, onChange) {
  const options = maps.map((map, value) => element("option", { value, textContent: translatedName(map.name) }));
  const select = element("select", { ariaLabel: gettext("layer and head") }, ...options);
  select.value = maps.indexOf(inspector.map);
  select.addEventListener("change", () => {
    inspector.chooseMap(maps[Number(select.value)]);
    inspector.showWords();
    onChange();
  });
  return select;
}

// Layers: the predictions of each layer.
export async function showLayersTab(inspector) {
  const record = await inspector.load("layers", inspector.server.layers);
  if (!record) return;
  const layers = showLayers(inspector.panel, record, {
    lang: inspector.content.languages?.[1],
    onHighlightWord: (index) => {
      inspector.wordsView.words.below.forEach((word, i) => word.classList.toggle("active", i === index));
    },
  });
  inspector.exported = {
    name: "layers",
    svg: layers.svg,
    data: () => record,
    code: () => inspector.view.layersCode(inspector.codeArguments()),
    command: (run, text, file) => `look ${run} ${text} --lens logit --save ${file}`,
    pdfFields: () => ({ view: "layers" }),
  };
  inspector.showExportMenu();
}

// Heads: thumbnails of all maps, and switches for the heads.
export async function showHeadsTab(inspector) {
  const { server, view, panel } = inspector;
  if (server.maps) {
    const fullRecord = await inspector.load("fullRecord", server.maps);
    if (!fullRecord) return;
  }
  const { sentence } = inspector;
  const { ablation } = sentence;
  const ablatedHeads = ablation?.heads ?? [];
  inspector.record = ablation?.record ?? inspector.currentRecord();
  inspector.selectMap(inspector.findMap(inspector.map));
  inspector.showWords();
  const state = element("div", { className: "ablation" });
  const title = element("p", { className: "title", textContent: translatedName(inspector.map.name) });
  const shares = element("p", { className: "note", textContent: describeShares(inspector.record, inspector.map) });
  const [grid, parts] = [element("div"), element("div")];
  panel.replaceChildren(state, title, shares, grid, parts);
  if (server.ablate) {
    const lang = inspector.content.languages?.[1];
    showAblation(state, ablation, { text: sentence.text, lang, onReset: () => ablate(inspector, new Set()) });
  }
  const { record } = inspector;
  const heads = showHeads(grid, record, {
    view,
    selectedMap: inspector.map,
    ablatedHeads: new Set(ablatedHeads),
    onSelect: (map) => {
      inspector.selectMap(map);
      title.textContent = translatedName(map.name);
      shares.textContent = describeShares(record, map);
      inspector.showWords();
      inspector.showParts(parts);
    },
    onToggle: server.ablate && ((head) => toggleHead(inspector, head)),
  });
  inspector.showParts(parts);
  inspector.exported = {
    name: "heads",
    svg: heads.svg,
    data: () => ({ ...record, off: ablatedHeads }),
    code: () => headsCode(inspector, ablatedHeads, ablation?.text),
    command: ablatedHeads.length ? null : (run, text, file) => `draw attention ${run} ${text} --out ${file}`,
    pdfFields: () => ({ view: "heads", ablate: ablatedHeads }),
  };
  inspector.showExportMenu();
}

function headsCode(inspector, ablatedHeads, ablatedText) {
  const sentence = inspector.codeArguments();
  const kinds = ["cross", "encoder", "decoder"].filter((kind) =>
    inspector.record.maps.some((map) => map.kind === kind),
  );
  return inspector.view.headsCode({ ...sentence, target: ablatedText ?? sentence.target, ablatedHeads }, kinds);
}

function toggleHead(inspector, head) {
  const heads = new Set(inspector.sentence.ablatedHeads);
  if (!heads.delete(head)) heads.add(head);
  return ablate(inspector, heads, head);
}

// Translate with some heads off, and show what changes. `toggledHead` is the head whose switch was used.
async function ablate(inspector, heads, toggledHead) {
  const { sentence, panel } = inspector;
  sentence.ablatedHeads = heads;
  panel.classList.add("waiting");
  const response = heads.size ? await inspector.request(() => inspector.server.ablate(sentence, [...heads])) : null;
  if (sentence.ablatedHeads !== heads) return; // another switch was used meanwhile
  panel.classList.remove("waiting");
  if (!heads.size) {
    sentence.ablation = null;
  } else if (response) {
    const [differing] = diffWords(response.record.target, sentence.record.target);
    sentence.ablation = { heads: [...heads], ...response, marked: { above: new Set(), below: differing } };
  } else {
    // refused: the heads are as before
    sentence.ablatedHeads = new Set(sentence.ablation?.heads);
  }
  if (sentence !== inspector.sentence || inspector.tab !== "heads") return;
  // The switches are replaced. The user may have moved the focus since the switch was used.
  const { activeElement } = document;
  const hasFocus = panel.contains(activeElement);
  const focusedHead = activeElement?.getAttribute("data-head") ?? toggledHead;
  await inspector.showTab("heads");
  const target = panel.querySelector(`[data-head="${focusedHead}"]`) ?? panel.querySelector(".switch");
  if (hasFocus) target?.focus();
}

// Steps: playback of the decoding steps, with the growing tree of the beam search.
export async function showStepsTab(inspector) {
  const { record, sentence, server, panel } = inspector;
  const isCurrent = inspector.currentState();
  const [controls, beamContainer] = [element("div"), element("div", { className: "beam" })];
  panel.append(element("div", { className: "steps" }, controls, beamContainer));
  /** @type {ReturnType<typeof showBeamTree> | undefined} */
  let beam;
  const first = Math.min(inspector.firstStep || 0, record.target.length - 1);
  inspector.firstStep = 0;
  inspector.playback = showPlayback(controls, record.target.length, {
    first,
    onStep: (index) => {
      server.onStepChange?.(index);
      inspector.wordsView.showStep(index);
      beam?.showSteps(tokenCount(record, index));
    },
    describe: (index) => describeStep(record, index),
  });
  if (!sentence.tree && server.tree) sentence.tree = await inspector.request(() => server.tree(sentence));
  if (!isCurrent() || !sentence.tree) return;
  beam = showBeamTree(inspector, beamContainer);
  beam.showSteps(tokenCount(record, inspector.playback.currentStep()));
  inspector.exported = {
    name: "beam",
    svg: beam.svg,
    data: () => sentence.tree,
    code: () => inspector.view.beamCode(inspector.codeArguments(), sentence.tree.beam),
    command: (run, text, file) => `draw beam ${run} ${text} --beam ${sentence.tree.beam} --out ${file}`,
    pdfFields: () => ({ view: "beam" }),
  };
  inspector.showExportMenu();
}

function describeStep({ target, probabilities }, index) {
  const prefix = isolateText(target.slice(0, index).join(" "));
  const values = {
    number: index + 1,
    total: target.length,
    prefix,
    word: isolateText(target[index]),
    probability: formatPercent(probabilities[index]),
  };
  return index
    ? gettext("Step {number} of {total}: after “{prefix}”, the model writes “{word}” ({probability}).", values)
    : gettext("Step {number} of {total}: the model starts with “{word}” ({probability}).", values);
}

// Return the number of tokens up to the end of the word with this index.
function tokenCount({ sizes }, index) {
  return sizes.slice(0, index + 1).reduce((sum, size) => sum + size, 0);
}

function showBeamTree(inspector, container) {
  const { sentence, server, view, content } = inspector;
  const { tree } = sentence;
  const best = bestText(tree);
  const isOtherText = best !== null && best !== sentence.text.trim();
  const note = isOtherText
    ? gettext("This search finds “{text}”, not the text above.", { text: isolateText(best) })
    : "";
  const treeContainer = element("div");
  container.append(
    element("p", { className: "title", textContent: beamTitle(tree) }),
    element("p", { className: "note", textContent: note }),
    treeContainer,
  );
  const onChoose = (tokens, text, isFinished) => {
    if (isFinished) server.onChoose(sentence, text.replace(/\s*<\/s>$/, ""), 0);
    else inspector.showContinuations(tokens, text, 0);
  };
  return showBeam(treeContainer, tree, {
    onChoose: server.continuations ? onChoose : null,
    lang: content.languages?.[1],
    finished: view.nouns.finished,
  });
}

// `own` is the beam size of the model's own search, which may be larger than that of the tree.
function beamTitle({ beam, own = beam }) {
  const values = { beam, own };
  return own > beam
    ? gettext(
        "Beam search keeps the {beam} most probable prefixes at each step (this model's default is {own}).",
        values,
      )
    : gettext("Beam search keeps the {beam} most probable prefixes at each step.", values);
}

// Patching: a comparison with another sentence.
export function showPatchingTab(inspector) {
  const { sentence, server, content } = inspector;
  showPatching(inspector.panel, {
    sentence,
    languages: content.languages ?? [],
    patch: (fields, onError) => {
      if (fields.other) return inspector.request(() => server.patch(sentence, fields), onError);
      return server.patch(sentence, fields).catch(onError); // nobody has asked: the tab shows the message, and the page none
    },
    isCurrent: inspector.currentState(),
    onShow: ({ svg }, { fields, result }) => {
      inspector.exported = {
        name: "patching",
        svg,
        data: () => result,
        code: () => inspector.view.patchCode(inspector.codeArguments(), fields),
        pdfFields: () => ({ view: "patching", ...fields }),
      };
      inspector.showExportMenu();
    },
  });
}
