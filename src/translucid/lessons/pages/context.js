// Lesson 13: the translation of a sentence with the previous sentence on or off.
import { el, number } from "./dom.js";
import { hint, said } from "./parts.js";

export function context(root) {
  let sentence = null;
  const input = el("input", { type: "checkbox", checked: true, on: { change: () => draw() } });
  const before = el("span", {});
  const written = el("p", { class: "written" });
  const told = said();
  const table = el("div", {});
  root.append(el("fieldset", { class: "choice" }, el("legend", {}, "previous sentence"), el("label", {}, input, before)), written, told, table);
  return (given) => {
    sentence = given;
    input.checked = true;
    before.textContent = sentence.before;
    draw();
  };

  function draw() {
    const chosen = input.checked ? 0 : 1;
    const [first, second] = sentence.compared;
    const [all] = sentence.translations;
    const odds = sentence.log_odds[chosen];
    written.replaceChildren(el("span", { class: "label" }, `${sentence.sentence} → `), ...marked(sentence.translations[chosen], all));
    const [likely, other] = odds < 0 ? [second, first] : [first, second];
    told.textContent = first === second
      ? "The translation is the same with the previous sentence and without it."
      : `“${likely}” is ${number(Math.exp(Math.abs(odds)), 1)} times as probable as “${other}”.`;
    table.replaceChildren(el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "the model reads"), el("th", { scope: "col" }, "translation"), el("th", { scope: "col" }, "L"))),
      el("tbody", {}, ...[`${sentence.before} ‖ ${sentence.sentence}`, sentence.sentence].map((source, i) => el("tr", { class: i === chosen ? "chosen" : null },
        el("th", { scope: "row" }, source), el("td", { class: "text" }, sentence.translations[i]), el("td", { class: "odds" }, number(sentence.log_odds[i])))))),
    hint(`L = log p(${first}) − log p(${second}). Words that differ from the translation with the previous sentence are bold.`));
  }
}

// The words of a translation; those that another one does not have at their place are bold.
function marked(text, other) {
  const words = other.split(" ");
  return text.split(" ").flatMap((word, i) => [i ? " " : "", word === words[i] ? word : el("strong", {}, word)]);
}
