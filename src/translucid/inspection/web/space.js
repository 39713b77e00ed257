// One space for all that is to be seen of a translation: its words stay where they are, and what is shown between them changes.
//
// showSpace(root, seen, server): seen is { run: a name, languages: [code, code], named: whether the code names them, sentences: [{
//   source_text, text, confidence, record, tree }], mode: the first, number: of the first sentence }. What it lacks is asked of the
//   server, whose functions may be absent: maps(sentence): a record with all maps, tree(sentence), explain(sentence, method),
//   ways(sentence, prefix), choose(sentence, text, word): another text from that word on, pdf(sentence, view), methods: { name: what it
//   is }, problem(error or null), moved(number): another sentence is shown, turned(mode).

import { beamCode, headsCode, mapCode, whyCode } from "./code.js";
import { showBeam } from "./beam.js";
import { element, percent } from "./elements.js";
import { showFilm } from "./film.js";
import { showHeads } from "./heads.js";
import { sides } from "./maps.js";
import { showRibbons } from "./ribbons.js";
import { roving } from "./roving.js";
import { showSaving } from "./saving.js";
import { showTable } from "./table.js";
import { showWays } from "./ways.js";
import { importances, scaled, showFaithfulness } from "./why.js";

const BLIND = "This model has no attention: one vector is all that it knows of the source.";

export function showSpace(root, seen, server = {}) {
  const { sentences } = seen;
  let [sentence, record, map, mode, stage, film, view] = [];
  const names = { attention: "Attention", heads: "Heads", steps: "Steps", ...(server.explain ? { why: "Why" } : {}) };
  const steps = tabs("sentences", "sentences", sentences.map((one, i) => [i, `${i + 1}`, one.source_text]), (i) => { open(i); server.moved?.(i); });
  const modes = tabs("modes", "what is to be seen", Object.entries(names), (name) => { show(name); server.turned?.(name); });
  const [words, ways, panel, saving] = ["stage", "ways", "panel", "saving"].map((className) => element("div", { className }));
  const about = element("p", { className: "about" });
  Object.assign(panel, { role: "tabpanel", ariaLabel: "more of it" });
  root.classList.add("seen");
  root.replaceChildren(...(sentences.length > 1 ? [steps.bar] : []), modes.bar, about, words, ways, panel, saving);
  mode = names[seen.mode] ? seen.mode : "attention";
  if (sentences.length) open(sentences[seen.number] ? seen.number : 0);
  return { open, focus: (word) => stage?.words.below[word]?.focus() };

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
    view = { name: "attention", picture: () => stage.picture(), data: () => ({ ...sides(record, map), ...map }), code: () => mapCode(code(), map) };
    if (mode !== "heads" && (map.kind === "encoder" || map.kind === "decoder")) [map] = record.maps;
    put();
    ({ attention, heads, steps: written, why }[name])();
    if (mode !== "heads" && mode !== "why") save();
  }

  // What the lines of code need to know.
  function code() {
    return { run: `runs/${seen.run}`, languages: seen.named ? seen.languages : null, source: sentence.source_text, target: sentence.text };
  }

  function save() {
    const wanted = view;
    const pdf = server.pdf && wanted.pdf ? () => server.pdf(sentence, wanted.pdf()) : null;
    showSaving(saving, { ...wanted, name: () => wanted.name, pdf });
  }

  // Put the words of a map onto the stage.
  function put() {
    const { down, across } = sides(record, map);
    const own = down === record.target;
    const choose = own && sentence.record.tokens && server.ways ? (side, i) => { if (side === "below") goOn(sentence.record.tokens.slice(0, i).flat(), down.slice(0, i).join(" "), i); } : null;
    const [source, target] = seen.languages ?? ["", ""];
    stage = showRibbons(words, {
      above: across, below: down, weights: map.weights, probabilities: own ? record.probabilities : null,
      languages: [map.kind === "decoder" ? target : source, own ? target : source],
      marked: own && across === record.source ? sentence.marked : null,
    }, { choose, hint: choose ? "Choose a word of the translation to see what else could stand there." : "" });
    if (sentence.confidence != null) about.textContent = `How sure it is of the whole: ${percent(sentence.confidence)}.`;
    ways.replaceChildren();
  }

  function attention() {
    const choice = element("select", { ariaLabel: "layer and head" });
    const offered = record.maps.filter((one) => one.kind === "cross" || one.kind === "rollout");
    choice.append(...offered.map((one, i) => element("option", { value: i, textContent: one.name })));
    choice.value = offered.indexOf(map);
    const table = element("div");
    const details = element("details", {}, element("summary", { textContent: "Table of weights" }), table);
    const draw = () => { if (details.open) showTable(table, { ...sides(record, map), weights: map.weights }); };
    choice.addEventListener("change", () => { map = offered[Number(choice.value)]; stage.update(map); draw(); });
    details.addEventListener("toggle", draw);
    panel.append(element("label", { hidden: offered.length < 2, textContent: "Layer and head " }, choice), details);
    view.pdf = () => ({ view: "map", kind: map.kind, layer: map.layer, head: map.head });
  }

  async function heads() {
    if (server.maps && !sentence.full) {
      const mine = sentence;
      panel.textContent = "…";
      const full = await asked(() => server.maps(sentence));
      if (full) mine.full = full;
      if (mine !== sentence || mode !== "heads" || !full) return;
    }
    record = sentence.full ?? record;
    map = record.maps.find((one) => one.kind === map.kind && one.layer === map.layer && one.head === map.head) ?? record.maps[0];
    panel.replaceChildren();
    const title = element("p", { className: "title", textContent: map.name });
    const grid = element("div");
    panel.append(title, grid);
    const all = showHeads(grid, record, { chosen: map, open: (one) => { map = one; title.textContent = one.name; put(); } });
    const kinds = ["cross", "encoder", "decoder"].filter((kind) => record.maps.some((one) => one.kind === kind));
    view = { name: "heads", picture: all.picture, data: () => record, code: () => headsCode(code(), kinds), pdf: () => ({ view: "heads" }) };
    save();
  }

  async function written() {
    const [control, tree] = [element("div"), element("div", { className: "beam" })];
    panel.append(control, tree);
    let beam = null;
    const depth = (i) => record.sizes.slice(0, i + 1).reduce((a, b) => a + b, 0);
    film = showFilm(control, record.target.length, {
      step: (i) => { stage.showStep(i); beam?.grow(depth(i)); },
      say: (i) => {
        const before = i ? `after “${record.target.slice(0, i).join(" ")}” it writes` : "it begins with";
        return `Step ${i + 1} of ${record.target.length}: ${before} “${record.target[i]}” (${percent(record.probabilities[i])}).`;
      },
    });
    const mine = sentence;
    if (!sentence.tree && server.tree) sentence.tree = await asked(() => server.tree(mine));
    if (mine !== sentence || mode !== "steps" || !sentence.tree) return;
    const choose = server.ways ? (tokens, text, ended) => (ended ? server.choose(sentence, text.replace(/\s*<\/s>$/, ""), 0) : goOn(tokens, text, 0)) : null;
    const title = element("p", { className: "title", textContent: `The beam: the ${sentence.tree.beam} likeliest beginnings are gone on with, the others dropped.` });
    const place = element("div");
    tree.append(title, place);
    beam = showBeam(place, sentence.tree, { choose, lang: seen.languages?.[1] });
    beam.grow(depth(film.at()));
    view = { name: "beam", picture: beam.picture, data: () => sentence.tree, code: () => beamCode(code(), sentence.tree.beam), pdf: () => ({ view: "beam" }) };
    save();
  }

  function why() {
    const method = element("select", { ariaLabel: "method" });
    method.append(...Object.entries(server.methods).map(([value, textContent]) => element("option", { value, textContent })));
    const button = element("button", { type: "button", textContent: "Explain" });
    const result = element("div", { className: "faithful" });
    panel.append(element("div", { className: "bar" }, element("label", { textContent: "Method " }, method), button), result);
    button.addEventListener("click", explain);
    explain();

    async function explain() {
      if (button.disabled) return;
      const mine = sentence;
      const focused = button.matches(":focus");
      button.disabled = true;
      const found = await asked(() => server.explain(mine, method.value));
      button.disabled = false;
      if (focused) button.focus();
      if (mine !== sentence || mode !== "why" || !found) return;
      const weights = importances(record, found);
      const how = { verbs: ["depends on", "matters to"], scale: " of the largest" };
      if (weights) stage.update({ weights, ...how });
      else stage = showRibbons(words, { above: found.source, below: found.target, weights: scaled(found), ...how });
      showFaithfulness(result, found);
      view = { name: "why", picture: () => stage.picture(), data: () => found, code: () => whyCode(code(), found.method), pdf: () => ({ view: "why", method: found.method }) };
      save();
    }
  }

  async function goOn(prefix, text, word) {
    const mine = sentence;
    const found = await asked(() => server.ways(mine, prefix));
    if (mine !== sentence || !found) return;
    const title = text ? `After “${text}” it could go on with` : "It could begin with";
    showWays(ways, found, { title, lang: seen.languages?.[1], choose: (chosen) => server.choose(mine, chosen, word) });
  }

  // Ask the server; say what is wrong, if something is.
  async function asked(question) {
    try {
      const answer = await question();
      server.problem?.(null);
      return answer;
    } catch (error) {
      server.problem?.(error);
      return null;
    }
  }
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
