// One space for all that is to be seen of a translation or a caption: its words stay where they are, and what is shown with them
// changes.
//
// showSpace(root, seen, server): seen is { run: a folder, languages: [code, code], named: whether the code names them, image: a file,
//   sentences: [{ source_text, text, confidence, record, layers, tree, explanations: by method }], mode: the first, number: of the
//   first sentence, of: how it is shown, as ribboned.js does if not given, single: whether there is but one map }. What it lacks is
//   asked of the server, whose functions may be absent: maps(sentence): a record with all maps, layers(sentence): what layers.js
//   shows, contributions(sentence): the parts of a record that contributions add, ablate(sentence, names of heads): { text, record } without these heads, patch(sentence, { other: a sentence, words: [a, b] or nothing }), tree(sentence), explain(sentence, method, contrast),
//   ways(sentence, prefix, its text), choose(sentence, text, word): another text from that word on, pdf(sentence, view), methods: {
//   name: what it is }, problem(error or null), moved(number): another sentence is shown, turned(mode).

import { showBeam, showWays, winner } from "./beam.js";
import { difference } from "./chips.js";
import { element, isolated, percent } from "./elements.js";
import { showFilm } from "./film.js";
import { showHeads, showSwitched } from "./heads.js";
import { showLayers } from "./layers.js";
import { patchView } from "./patching.js";
import { RIBBONS, sides } from "./maps.js";
import { showRibbons } from "./ribbons.js";
import { roving } from "./roving.js";
import { showSaving } from "./saving.js";
import { showTable } from "./grid.js";
import { TEXTS } from "./ribboned.js";
import { contrasting, kept, odds, scaled, showFaithfulness } from "./why.js";

const SHOWN = { attention: Object.values(RIBBONS).flatMap(({ kinds }) => kinds), heads: [...RIBBONS.weights.kinds, "encoder", "decoder"] }; // kinds of maps
const BLIND = "This model has no attention: its decoder sees the source only as one vector.";

export function showSpace(root, seen, server = {}) {
  const { sentences, of = TEXTS } = seen;
  const { explain, methods } = server.explain ? server : kept(sentences);
  let [sentence, record, map, mode, stage, film, view, contrast, attended] = [];
  const names = { attention: "Attention" };
  if (server.layers || sentences.some((one) => one.layers)) names.layers = "Layers";
  if (!seen.single) names.heads = "Heads";
  names.steps = "Steps";
  if (explain) names.why = "Why";
  if (server.patch) names.patching = "Patching";
  const steps = tabs("sentences", "sentences", sentences.map((one, i) => [i, `${i + 1}`, one.source_text]), (i) => { open(i); server.moved?.(i); });
  const modes = tabs("modes", "views", Object.entries(names), (name) => { show(name); server.turned?.(name); });
  const [words, ways, panel, saving] = ["stage", "ways", "panel", "saving"].map((className) => element("div", { className }));
  const about = element("p", { className: "about" });
  Object.assign(panel, { role: "tabpanel", ariaLabel: "details" });
  root.classList.add("seen");
  root.replaceChildren(...(sentences.length > 1 ? [steps.bar] : []), modes.bar, about, words, element("div", { className: "more" }, ways, panel, saving));
  mode = names[seen.mode] ? seen.mode : "attention";
  if (sentences.length) open(sentences[seen.number] ? seen.number : 0);
  return { open, focus: (word) => stage?.words.below.slice(0, word + 1).at(-1)?.focus() }; // there may be fewer words now

  function open(i) {
    sentence = sentences[i];
    record = sentence.record;
    steps.press(i);
    ways.replaceChildren();
    modes.bar.hidden = !record;
    if (!record) {
      for (const part of [panel, saving, about]) part.replaceChildren();
      words.replaceChildren(element("p", { textContent: BLIND }));
      return;
    }
    [map] = record.maps;
    show(mode);
  }

  // Turn to one of the modes.
  function show(name) {
    film?.stop();
    film = null;
    mode = name;
    modes.press(name);
    for (const part of [panel, saving, about]) part.replaceChildren();
    view = { name: "attention", picture: () => stage.picture(), data: () => ({ ...of.sides(record, map), ...map, ...(prefixed() ? { fed: record.fed, prefix: record.prefix, source_contributions: record.source_contributions } : {}) }), code: () => of.mapCode(code(), map) };
    record = whole();
    map = sameMap(mode === "attention" && attended ? attended : map);
    if (!(SHOWN[mode] ?? RIBBONS.weights.kinds).includes(map.kind)) map = record.maps.find(({ kind }) => kind === "cross");
    put();
    const shown = ({ attention, layers, heads, steps: written, why, patching }[name])();
    if (mode === "attention" || mode === "steps") save();
    return shown;
  }

  // The record of the sentence, with the parts that the server has added so far.
  function whole() {
    const { contributed } = sentence;
    const known = sentence.full ?? sentence.record;
    return contributed ? { ...known, ...contributed, maps: [...known.maps, ...contributed.maps] } : known;
  }

  // The map of the record like one that was shown before.
  function sameMap({ kind, layer, head }) {
    return record.maps.find((one) => one.kind === kind && one.layer === layer && one.head === head) ?? record.maps[0];
  }

  // Whether the words come from two texts, the source and the translation so far.
  function prefixed() {
    return map.kind === "contributions" && map.layer === null && record.prefix;
  }

  // What the lines of code need to know.
  function code() {
    return { run: seen.run, image: seen.image, languages: seen.named ? seen.languages : null, source: sentence.source_text, target: sentence.text };
  }

  function save() {
    const wanted = view;
    const pdf = server.pdf && wanted.pdf ? () => server.pdf(sentence, wanted.pdf()) : null;
    showSaving(saving, { ...wanted, name: () => wanted.name, pdf });
  }

  // Put the words of a map onto the stage.
  function put() {
    const { without } = sentence;
    const changed = record === without?.record; // by heads that are off
    const own = of.sides(record, map).down === record.target && !changed;
    const before = (i) => goOn((sentence.record.tokens ?? []).slice(0, i).flat(), record.target.slice(0, i).join(" "), i);
    const asks = mode === "why" && server.ways;
    const choose = own && server.ways ? (side, i) => { if (side === "below") (asks && i < explained().length ? contrast.choose : before)(i); } : null;
    const hint = choose ? `Choose a word of the ${of.noun} to ${asks ? "ask why it is there and not another" : "see alternatives"}.` : "";
    stage = of.stage(words, { record, map, languages: seen.languages, marked: changed ? without.marked : sentence.marked }, { choose, hint });
    if (sentence.confidence != null) about.textContent = `Confidence: ${percent(sentence.confidence)}.`;
    ways.replaceChildren();
  }

  function attention() {
    const [choice, table] = [element("select", { ariaLabel: "layer and head" }), element("div")];
    const details = element("details", {}, element("summary", { textContent: "Table of weights" }), table);
    const draw = () => { if (details.open) showTable(table, tabled()); };
    details.addEventListener("toggle", draw);
    const method = element("select", { ariaLabel: "what ribbons show" });
    const methods = server.contributions || record.maps.some(({ kind }) => kind === "contributions") ? RIBBONS : { weights: RIBBONS.weights };
    method.append(...Object.entries(methods).map(([value, { name }]) => element("option", { value, textContent: name })));
    method.value = Object.keys(RIBBONS).find((name) => RIBBONS[name].kinds.includes(map.kind));
    method.addEventListener("change", async () => {
      const { kinds } = RIBBONS[method.value];
      if (!record.maps.some(({ kind }) => kinds.includes(kind))) {
        if (!(await known("contributed", server.contributions))) return;
        record = whole();
      }
      attended = record.maps.find(({ kind }) => kinds.includes(kind));
      await show(mode);
      panel.querySelector("select").focus();
    });
    const offered = record.maps.filter(({ kind }) => RIBBONS[method.value].kinds.includes(kind));
    choice.append(...offered.map((one, i) => element("option", { value: i, textContent: one.name })));
    choice.value = offered.indexOf(map);
    choice.addEventListener("change", () => { map = attended = offered[Number(choice.value)]; put(); draw(); });
    const labels = [element("label", { hidden: method.length < 2, textContent: "Ribbons " }, method), element("label", { hidden: offered.length < 2, textContent: "Layer and head " }, choice)];
    panel.append(element("div", { className: "bar" }, ...labels), ...(of.table ? [details] : []));
    if (map.weights) view.pdf = () => ({ view: "map", kind: map.kind, layer: map.layer, head: map.head });
  }

  // The table of a map; of contributions through all layers also those of the translation so far.
  function tabled() {
    const { down, across } = sides(record, map);
    if (!prefixed()) return { down, across, weights: map.weights };
    return { down, across: [...across, ...record.fed], weights: map.weights.map((row, t) => [...row, ...record.prefix[t]]) };
  }

  async function layers() {
    const found = await known("layers", server.layers);
    if (!found) return;
    const light = (word) => stage.words.below.forEach((one, i) => one.classList.toggle("chosen", i === word));
    const shown = showLayers(panel, found, { lang: seen.languages?.[1], light });
    view = { name: "layers", picture: shown.picture, data: () => found, code: () => of.layersCode(code()), pdf: () => ({ view: "layers" }) };
    save();
  }

  async function heads() {
    if (server.maps && !(await known("full", server.maps))) return;
    const { without } = sentence;
    record = without?.record ?? whole();
    map = sameMap(map);
    put();
    const [state, title, grid] = [element("div", { className: "switched" }), element("p", { className: "title", textContent: map.name }), element("div")];
    panel.replaceChildren(state, title, grid);
    if (server.ablate) showSwitched(state, without, { text: sentence.text, lang: seen.languages?.[1], reset: () => ablate(new Set()) });
    const off = without?.heads ?? [];
    const turn = (name) => {
      const heads = new Set(sentence.off);
      if (!heads.delete(name)) heads.add(name);
      return ablate(heads, name);
    };
    const open = (one) => { map = one; title.textContent = one.name; put(); };
    const all = showHeads(grid, record, { of, chosen: map, off: new Set(off), turn: server.ablate && turn, open });
    const kinds = ["cross", "encoder", "decoder"].filter((kind) => record.maps.some((one) => one.kind === kind));
    const lines = { ...code(), target: without?.text ?? sentence.text, off };
    view = { name: "heads", picture: all.picture, data: () => ({ ...record, off }), code: () => of.headsCode(lines, kinds), pdf: () => ({ view: "heads", ablate: off }) };
    save();
  }

  // Translate with these heads off, and show what changes; `name` is the one that was switched.
  async function ablate(off, name) {
    const mine = sentence;
    mine.off = off;
    panel.classList.add("waiting");
    const answer = off.size ? await asked(() => server.ablate(mine, [...off])) : null;
    if (mine.off !== off) return; // another switch was used since
    panel.classList.remove("waiting");
    if (off.size && !answer) mine.off = new Set(mine.without?.heads); // refused
    else mine.without = answer && { heads: [...off], ...answer, marked: { above: new Set(), below: difference(answer.record.target, mine.record.target)[0] } };
    if (mine !== sentence || mode !== "heads") return;
    await show(mode);
    if (panel.contains(document.activeElement)) return; // the reader has moved on
    (panel.querySelector(`[data-head="${name}"]`) ?? panel.querySelector(".switch"))?.focus();
  }

  async function written() {
    const [control, tree] = [element("div"), element("div", { className: "beam" })];
    panel.append(element("div", { className: "writing" }, control, tree));
    let beam = null;
    const depth = (i) => record.sizes.slice(0, i + 1).reduce((a, b) => a + b, 0);
    film = showFilm(control, record.target.length, {
      step: (i) => { stage.showStep(i); beam?.grow(depth(i)); },
      say: (i) => {
        const before = i ? `after “${isolated(record.target.slice(0, i).join(" "))}”, the model writes` : "the model starts with";
        return `Step ${i + 1} of ${record.target.length}: ${before} “${isolated(record.target[i])}” (${percent(record.probabilities[i])}).`;
      },
    });
    const mine = sentence;
    if (!sentence.tree && server.tree) sentence.tree = await asked(() => server.tree(mine));
    if (mine !== sentence || mode !== "steps" || !sentence.tree) return;
    const choose = server.ways ? (tokens, text, ended) => (ended ? server.choose(sentence, text.replace(/\s*<\/s>$/, ""), 0) : goOn(tokens, text, 0)) : null;
    const title = element("p", { className: "title", textContent: beamTitle(sentence.tree) });
    const [place, found] = [element("div"), winner(sentence.tree)];
    const other = found === null || found === sentence.text.trim() ? "" : `This search finds “${isolated(found)}”, not the text above.`;
    tree.append(title, element("p", { className: "about", textContent: other }), place);
    beam = showBeam(place, sentence.tree, { choose, lang: seen.languages?.[1], noun: of.noun });
    beam.grow(depth(film.at()));
    view = { name: "beam", picture: beam.picture, data: () => sentence.tree, code: () => of.beamCode(code(), sentence.tree.beam), pdf: () => ({ view: "beam" }) };
    save();
  }

  // The words that are explained, without the end token.
  function explained() {
    return record.target.at(-1) === "</s>" ? record.target.slice(0, -1) : record.target;
  }

  // The most probable words after those before a word.
  function others(i) {
    const prefix = (sentence.record.tokens ?? []).slice(0, i).flat();
    return asked(() => server.ways(sentence, prefix, record.target.slice(0, i).join(" ")));
  }

  function why() {
    let chosen = null; // a word and another one that is not there
    const method = element("select", { ariaLabel: "method" });
    method.append(...Object.entries(methods).map(([value, textContent]) => element("option", { value, textContent })));
    const [said, result] = [element("p", { className: "about", ariaLive: "polite" }), element("div", { className: "faithful" })];
    panel.append(element("div", { className: "bar" }, element("label", { textContent: "Method " }, method)));
    if (server.ways) {
      contrast = contrasting({ words: explained(), lang: seen.languages?.[1], others, ask: (one) => { if (one || chosen) { chosen = one; ask(); } } });
      panel.append(contrast.box);
    }
    panel.append(said, result);
    method.addEventListener("change", ask);
    ask();

    async function ask() {
      const [mine, by, pair] = [sentence, method.value, chosen];
      result.textContent = "…";
      said.textContent = "";
      const found = await asked(() => explain(mine, by, pair));
      if (mine !== sentence || mode !== "why" || by !== method.value || pair !== chosen) return;
      if (!found) {
        result.replaceChildren(again(ask));
        return;
      }
      const rather = pair ? `instead of “${isolated(pair.instead_of)}” ` : "";
      const how = { verbs: [`${rather}depends on`, "matters to"], scale: " of the largest" };
      const weights = of.importances(record, found);
      if (weights) stage.update({ weights, ...how });
      else stage = showRibbons(words, { above: found.source, below: found.target, weights: scaled(found), ...how });
      if (pair) {
        stage.lightBelow(weights ? pair.word : 0);
        said.textContent = odds(found);
      }
      showFaithfulness(result, found);
      view = { name: "why", picture: () => stage.picture(), data: () => found, code: () => of.whyCode(code(), found.method, pair), pdf: () => ({ view: "why", method: found.method, ...pair }) };
      save();
    }
  }

  function patching() {
    const mine = sentence;
    patchView(panel, {
      sentence, languages: seen.languages ?? [], ask: (fields, refused) => asked(() => server.patch(mine, fields), refused),
      wanted: () => mine === sentence && mode === "patching",
      shown: ({ picture }, { fields, answer }) => {
        view = { name: "patching", picture, data: () => answer, code: () => of.patchCode(code(), fields), pdf: () => ({ view: "patching", ...fields }) };
        save();
      },
    });
  }

  async function goOn(prefix, text, word) {
    const mine = sentence;
    const found = await asked(() => server.ways(mine, prefix, text));
    if (mine !== sentence || !found) return;
    const title = text ? `Continuations after “${isolated(text)}”` : "Possible first words";
    showWays(ways, found, { title, lang: seen.languages?.[1], choose: (chosen) => server.choose(mine, chosen, word) });
  }

  // What is known of the sentence under a name; the server is asked once. Null if it refuses, or if another sentence or view is shown.
  async function known(name, question) {
    const [mine, view] = [sentence, mode];
    let refusal = "";
    if (!mine[name]) {
      panel.textContent = "…";
      const answer = await asked(() => question(mine), (error) => { refusal = error.message; });
      if (answer) mine[name] = answer;
    }
    if (mine !== sentence || mode !== view) return null;
    if (!mine[name]) panel.replaceChildren(element("p", { textContent: refusal }), again(() => show(mode)));
    return mine[name] ?? null;
  }

  function again(ask) {
    const button = element("button", { type: "button", textContent: "Try again" });
    button.addEventListener("click", ask);
    return button;
  }

  // Ask the server; say what is wrong, if something is.
  async function asked(question, refused = () => {}) {
    try {
      const answer = await question();
      server.problem?.(null);
      return answer;
    } catch (error) {
      refused(error);
      server.problem?.(error);
      return null;
    }
  }
}

// What the tree shows; the search that wrote the text may have been wider.
function beamTitle({ beam, own = beam }) {
  return `Beam search keeps the ${beam} most probable prefixes at each step${own > beam ? ` (this model's default is ${own})` : ""}.`;
}

// Buttons of which one is pressed; one Tab stop.
function tabs(className, ariaLabel, entries, press) {
  const buttons = new Map(entries.map(([key, textContent, title = ""]) => {
    const button = element("button", { type: "button", role: "tab", textContent, title });
    button.addEventListener("click", () => press(key));
    return [key, button];
  }));
  const bar = element("div", { className: `tabs ${className}`, role: "tablist", ariaLabel }, ...buttons.values());
  roving([[...buttons.values()]]);
  const show = (key) => { for (const [one, button] of buttons) { button.ariaSelected = one === key; button.tabIndex = one === key ? 0 : -1; } };
  return { bar, press: show };
}
