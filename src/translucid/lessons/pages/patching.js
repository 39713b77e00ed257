// Lesson 12: a state of one sentence in the run on another, at each layer and word, and what is written then.
import { el, number, percent, shown } from "./dom.js";
import { choice, hint, picker, said } from "./parts.js";

export function patching(root) {
  let [sentence, part, chosen] = [null, null, [0, 0]];
  const about = el("div", {});
  const kinds = el("div", {});
  const table = el("div", {});
  const told = said();
  const written = el("p", { class: "written" });
  root.append(about, kinds, table, told, written);
  return (given) => {
    sentence = given;
    const [a, b] = sentence.words;
    const runs = [["CLEAN", sentence.clean, sentence.translations[0], sentence.log_odds.clean], ["OTHER", sentence.other, sentence.translations[1], sentence.log_odds.other]];
    about.replaceChildren(el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "run"), el("th", { scope: "col" }, "source"), el("th", { scope: "col", class: "text" }, "translation"), el("th", { scope: "col" }, `L = log p(${a}) − log p(${b})`))),
      el("tbody", {}, ...runs.map(([name, source, translation, odds]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "text" }, source), el("td", { class: "text" }, translation), el("td", { class: "odds" }, number(odds)))))));
    kinds.replaceChildren(choice("states", sentence.parts.map((one) => ({ label: one.kind, value: one })), (one) => { part = one; begin(); }).node);
    [part] = sentence.parts;
    begin();
  };

  function begin() {
    const flat = part.carried.flat();
    const first = flat.indexOf(Math.max(...flat));
    const width = part.words.length;
    chosen = [Math.floor(first / width), first % width];
    const names = part.words.map((word, i) => (word === part.clean_words[i] ? shownWord(word) : `${part.clean_words[i]} → ${word}`));
    table.replaceChildren(picker(part.layers, names, (l, w) => ({ text: [percent(part.carried[l][w])], name: `${part.layers[l]}, ${names[w]}: ${percent(part.carried[l][w])}`, weight: part.carried[l][w] }),
      chosen, (l, w) => { chosen = [l, w]; draw(); }, "layer ↓ word →"), hint("Each cell is a run of its own on OTHER, in which one state is that of CLEAN. Blue: how far L moves towards CLEAN. Choose a cell."));
    draw();
  }

  function draw() {
    const [l, w] = chosen;
    const { clean, other } = sentence.log_odds;
    const carried = part.carried[l][w];
    told.textContent = `${part.layers[l]}, “${part.words[w]}”: L goes from ${number(other)} to ${number(other + carried * (clean - other))}, ${percent(carried)} of the way to CLEAN.`;
    written.replaceChildren(...(part === sentence.parts[0] ? [el("span", { class: "label" }, "OTHER, patched, is translated as "), sentence.moved[l][w]] : []));
  }
}

function shownWord(word) {
  return word.startsWith("<") ? word : shown(`▁${word}`);
}
