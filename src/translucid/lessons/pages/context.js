// Lesson 13: the translation of a sentence with or without the previous sentence.
import { el } from "./dom.js";
import { formatNumber } from "./formatting.js";
import { filled, gettext } from "./messages.js";
import { hint, liveRegion, tableHead } from "./widgets.js";

export function contextFigure(container) {
  let sentence;
  const checkbox = el("input", {
    type: "checkbox",
    "data-name": "previous-sentence",
    checked: true,
    on: { change: () => draw() },
  });
  const previousSentence = el("span", {});
  const translation = el("p", { class: "translation" });
  const summary = liveRegion();
  const table = el("div", {});
  container.append(
    el(
      "fieldset",
      { class: "choice" },
      el("legend", {}, gettext("previous sentence")),
      el("label", {}, checkbox, previousSentence),
    ),
    translation,
    summary,
    table,
  );
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    checkbox.checked = true;
    previousSentence.textContent = sentence.before;
    draw();
  }

  // Translations and log-odds are recorded with the previous sentence, then without it.
  function draw() {
    const selected = checkbox.checked ? 0 : 1;
    const [first, second] = sentence.compared;
    const highlighted = highlightDifferences(sentence.translations[selected], sentence.translations[0]);
    translation.replaceChildren(el("span", { class: "label" }, `${sentence.sentence} → `), ...highlighted);
    summary.textContent =
      first === second
        ? gettext("The translation is the same with the previous sentence and without it.")
        : oddsSummary(first, second, sentence.log_odds[selected]);
    const sources = [`${sentence.before} ‖ ${sentence.sentence}`, sentence.sentence];
    const rows = sources.map((source, i) =>
      el(
        "tr",
        { class: i === selected ? "chosen" : null },
        el("th", { scope: "row" }, source),
        el("td", { class: "text" }, sentence.translations[i]),
        el("td", { class: "odds" }, formatNumber(sentence.log_odds[i])),
      ),
    );
    table.replaceChildren(
      el(
        "table",
        { class: "data-table" },
        tableHead(gettext("the model reads"), gettext("translation"), "L"),
        el("tbody", {}, ...rows),
      ),
      hint(
        `L = log p(${first}) − log p(${second}). `,
        gettext("Words that differ from the translation with the previous sentence are bold."),
      ),
    );
  }
}

function oddsSummary(first, second, logOdds) {
  const [likelier, other] = logOdds < 0 ? [second, first] : [first, second];
  const ratio = formatNumber(Math.exp(Math.abs(logOdds)), 1);
  return gettext("“{likelier}” is {ratio} times as probable as “{other}”.", { likelier, ratio, other });
}

// The words of a text; those that differ from the word at the same position of a reference are bold.
function highlightDifferences(text, reference) {
  const referenceWords = reference.split(" ");
  return text.split(" ").flatMap((word, i) => {
    const separator = i ? " " : "";
    return [separator, word === referenceWords[i] ? word : el("strong", {}, word)];
  });
}

// What the text says about the record: a passage whose translation does not need the previous sentence, if there is one.
export function contextFacts({ sentences }) {
  const same = sentences.filter(({ translations }) => translations[0] === translations[1]);
  const change = ({ log_odds: [withSentence, without] }) => Math.abs(withSentence - without);
  const [first, ...rest] = same.length ? same : sentences;
  const shown = rest.reduce((a, b) => (change(b) > change(a) ? b : a), first);
  const question = same.length
    ? gettext(
        "After “{before}”, the translation of “{sentence}” stays the same when that sentence is off. Has the model read it?",
      )
    : gettext(
        "After “{before}”, the translation of “{sentence}” changes when that sentence is off. Has the model read it?",
      );
  return {
    question: filled(question, { before: shown.before, sentence: shown.sentence }),
    with: formatNumber(shown.log_odds[0]),
    without: formatNumber(shown.log_odds[1]),
  };
}
