// Below the tab "Heads": why the chosen head looks from one word to another, as bars of the strongest pairs of parts.

import { axes } from "./attention_maps.js";
import { createBar, element, formatPercent, formatSigned, isolateText } from "./elements.js";
import { showCard, translatedLabel } from "./feature_card.js";
import { headName } from "./heads.js";
import { gettext, pgettext } from "./messages.js";
import { loadStyle } from "./page_elements.js";
import { addRovingTabindex } from "./roving.js";

const SHOWN = 10; // pairs
const CHOOSE = gettext("Choose a head, with all heads on, to see why it looks from one word to another.");
const HINT = gettext(
  "The score of a query and a key, q·k/√d, is the sum of the scores of pairs: a part of the query and a part of the key. Blue " +
    "raises the score, orange lowers it. Of a word with several pieces, it is that of the first. Choose a feature to see its card.",
);

// Show the part, for the map that is chosen.
export async function showPart(inspector, root) {
  await loadStyle("features.css");
  const { record, map, sentence, server } = inspector;
  const head = sentence.ablation ? null : headName(record, map);
  if (!head) {
    root.replaceChildren(element("p", { className: "note", textContent: CHOOSE }));
    return;
  }
  const { down, across } = axes(record, map);
  const querySelect = element("select", { ariaLabel: gettext("query") }, ...wordOptions(down));
  const keySelect = element("select", { ariaLabel: gettext("key") });
  const [summary, result] = [element("p", { ariaLive: "polite" }), element("div")];
  const card = element("div", { className: "feature-details" }); // stays when another word is chosen
  let latest = 0; // responses to earlier questions are ignored
  querySelect.addEventListener("change", () => chooseQuery(Number(querySelect.value)));
  keySelect.addEventListener("change", update);
  root.replaceChildren(
    element("p", { className: "title", textContent: gettext("Why does it look there?") }),
    element(
      "div",
      { className: "toolbar" },
      `${pgettext("word", "From")} `,
      querySelect,
      ` ${pgettext("word", "to")} `,
      keySelect,
    ),
    summary,
    result,
    card,
  );
  const linked = map.kind === "encoder" || server.place.word === "" ? -1 : Number(server.place.word);
  const strengths = map.weights.slice(0, -1).map((weights) => Math.max(...weights));
  await chooseQuery(down[linked] === undefined ? largestIndex(strengths) : linked);

  // Choose a query, and the key that it looks at most.
  function chooseQuery(query) {
    querySelect.value = String(query);
    if (map.kind !== "encoder") server.place.word = String(query);
    inspector.wordsView.highlightBelow?.(query);
    // The decoder looks at the words before the one that it predicts.
    const count = map.kind === "decoder" ? across.length - down.length + query + 1 : across.length;
    keySelect.replaceChildren(...wordOptions(across.slice(0, count)));
    keySelect.value = String(largestIndex(map.weights[query].slice(0, count)));
    return update();
  }

  async function update() {
    const [query, key] = [querySelect, keySelect].map(({ value }) => Number(value));
    latest += 1;
    const id = latest;
    result.classList.add("waiting");
    const fields = { q: sentence.source_text, translation: sentence.text, head, query, key };
    let problem = "";
    const score = await inspector.request(
      () => server.ask("graph/score", fields),
      (error) => {
        problem = error.message;
      },
    );
    if (id !== latest) return; // another word was chosen meanwhile
    result.classList.remove("waiting");
    const values = {
      query: isolateText(down[query]),
      key: isolateText(across[key]),
      score: formatSigned(score?.score ?? 0),
      weight: formatPercent(map.weights[query][key]),
    };
    summary.textContent = score
      ? gettext("“{query}” looks at “{key}” with a score of {score} (weight {weight}).", values)
      : problem;
    if (score) showScore(result, score, (feature) => showCard(inspector, card, feature));
    else result.replaceChildren();
  }
}

function showScore(root, score, openCard) {
  const shown = score.pairs.slice(0, SHOWN);
  const others = score.score - shown.reduce((sum, pair) => sum + pair.score, 0);
  const values = shown.map((pair) => pair.score);
  const scale = { minimum: Math.min(0, ...values), maximum: Math.max(0, ...values) };
  const buttons = [];
  const rows = shown.map((pair) => row([part(pair.query), part(pair.key)], pair.score, bar(pair.score)));
  rows.push(
    row([gettext("all other pairs")], others),
    row([element("strong", { textContent: gettext("the score") })], score.score),
  );
  root.replaceChildren(
    element("p", { className: "note", textContent: HINT }),
    element("table", { className: "pairs", ariaLabel: gettext("strongest pairs") }, element("tbody", {}, ...rows)),
  );
  addRovingTabindex(buttons);

  function row(parts, value, ...bars) {
    const name = element("th", { scope: "row" }, ...parts.map((child) => element("div", {}, child)));
    const figure = element("td", { className: "value", textContent: formatSigned(value) });
    return element("tr", {}, name, element("td", { className: "magnitude" }, ...bars), figure);
  }

  function bar(value) {
    return createBar(value < 0 ? "bar-fill negative" : "bar-fill", value, scale);
  }

  // Return the name of a part; that of a feature is a button.
  function part(text) {
    const [name, token] = text.split(" @ ");
    const place = token === undefined ? "" : ` ${gettext("at {token}", { token: isolateText(token) })}`;
    const label = score.labels[name] ? ` (${translatedLabel(score.labels[name])})` : "";
    if (!name.includes(".feature.")) return name + place;
    const button = element("button", { type: "button", textContent: name });
    button.addEventListener("click", () => openCard(name));
    buttons.push([button]);
    return element("span", {}, button, label + place);
  }
}

function wordOptions(words) {
  return words.map((textContent, value) => element("option", { textContent, value }));
}

function largestIndex(values) {
  return values.indexOf(Math.max(...values));
}
