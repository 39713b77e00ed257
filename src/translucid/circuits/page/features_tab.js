// The tab "Features": the strongest features of each token. A chosen one is described, and a slider changes the translation.

import { element } from "./elements.js";
import { showCard, translatedLabel } from "./feature_card.js";
import { translationRow } from "./heads.js";
import { formatNumber, gettext } from "./messages.js";
import { loadStyle } from "./page_elements.js";
import { addRovingTabindex } from "./roving.js";
import { diffWords, markWords } from "./word_diff.js";

const SHOWN = 3; // features of each token and sublayer
const [MAX_FACTOR, STEP] = [3, 0.25];
const SLIDER_DELAY = 200; // milliseconds after the last movement
const HINT = gettext(
  "The strongest features of each feed-forward sublayer: of source tokens in the encoder, and of each token of the translation " +
    "where the decoder predicts it. Darker features are more active. Choose one to see what it stands for, and to change it.",
);

// Fill the tab.
export async function showTab(inspector) {
  await loadStyle("features.css");
  const record = await inspector.load("features", ({ source_text: q, text: translation }) =>
    inspector.server.ask("features", { q, translation }),
  );
  if (record) new FeatureView(inspector, record);
}

class FeatureView {
  constructor(inspector, record) {
    this.inspector = inspector;
    this.details = element("section", { className: "feature-details", ariaLabel: gettext("chosen feature") });
    this.chips = new Map(); // by the name of a feature: its buttons
    const strongest = largestValues(record);
    const tables = ["source", "target"].map((side) => this.createTable(record, side, strongest));
    const columns = element("div", { className: "columns feature-tables" }, ...tables);
    const hint = element("p", { className: "note", textContent: HINT });
    inspector.panel.replaceChildren(hint, columns, this.details);
    const linked = inspector.server.place.node;
    if (this.chips.has(linked)) this.choose(linked);
  }

  createTable(record, side, strongest) {
    const tokens = record.tokens.filter((token) => token.side === side);
    const sublayers = Object.keys(tokens[0].features);
    const heads = [gettext("token"), ...sublayers].map((textContent) => element("th", { textContent, scope: "col" }));
    const chipRows = [];
    const rows = tokens.map((token) => {
      const cells = sublayers.map((sublayer) =>
        token.features[sublayer].slice(0, SHOWN).map((active) => this.createChip(token, active, strongest[sublayer])),
      );
      chipRows.push(cells.flat());
      const label = element("th", { textContent: shownToken(token.token), scope: "row", dir: "auto" });
      return element("tr", {}, label, ...cells.map((chips) => element("td", {}, ...chips)));
    });
    addRovingTabindex(chipRows.filter((row) => row.length));
    const title = { source: gettext("Source, encoder"), target: gettext("Translation, decoder") }[side];
    const table = element(
      "table",
      { className: "features", ariaLabel: title },
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows),
    );
    const heading = element("p", { className: "title", textContent: title });
    return element("div", {}, heading, element("div", { className: "scroll" }, table));
  }

  createChip(token, { feature, value, label: englishLabel = "" }, largest) {
    const label = translatedLabel(englishLabel);
    const number = feature.split(".").at(-1);
    const values = { feature, token: shownToken(token.token), value: formatNumber(value, 2) };
    const description = gettext("{feature} at {token}: {value}", values) + (label ? `, ${label}` : "");
    const chip = element("button", {
      type: "button",
      textContent: number,
      title: description,
      ariaLabel: description,
      ariaPressed: "false",
    });
    if (label) chip.append(" ", element("span", { className: "label", textContent: label }));
    chip.style.setProperty("--weight", (value / largest).toFixed(3));
    chip.addEventListener("click", () => this.choose(feature));
    if (!this.chips.has(feature)) this.chips.set(feature, []);
    this.chips.get(feature).push(chip);
    return chip;
  }

  choose(feature) {
    for (const [name, chips] of this.chips) {
      for (const chip of chips) chip.ariaPressed = `${name === feature}`;
    }
    this.inspector.server.place.node = feature;
    const [steering, card] = [element("div", {}), element("div", {})];
    const title = element("h3", { textContent: feature });
    this.details.replaceChildren(title, steering, card);
    showSlider(this.inspector, steering, feature);
    showCard(this.inspector, card, feature);
  }
}

// Return the words of a text as nodes, those marked in which it differs from the original.
export function markChanges(text, original) {
  const [words, others] = [text, original].map((side) => side.split(/\s+/));
  const [differing] = diffWords(words, others);
  return markWords(words, differing);
}

// Show a slider that scales a feature, and the changed translation beside the original.
export function showSlider(inspector, root, feature) {
  const { sentence, server, content } = inspector;
  const isCurrent = inspector.currentState();
  const slider = element("input", { type: "range", min: 0, max: MAX_FACTOR, step: STEP, value: 1 });
  const factorText = element("output", {});
  const lang = content.languages?.[1];
  const rows = [translationRow(gettext("original"), sentence.text, lang), translationRow("", sentence.text, lang)];
  const [name, changed] = rows[1].children;
  const table = element("table", { className: "translations" }, element("tbody", { ariaLive: "polite" }, ...rows));
  const label = element("label", { className: "factor", textContent: `${gettext("Strength")} ` }, slider, factorText);
  root.replaceChildren(label, table);
  let timer;
  let latest = 0;
  slider.addEventListener("input", () => {
    showFactor();
    clearTimeout(timer);
    timer = setTimeout(update, SLIDER_DELAY);
  });
  showFactor();
  showText(sentence.text);

  function showFactor() {
    const factor = Number(slider.value);
    factorText.textContent = factor === 0 ? gettext("off") : `${formatNumber(factor)} ×`;
    slider.setAttribute("aria-valuetext", factorText.textContent);
    name.textContent = factor === 1 ? gettext("unchanged") : factorText.textContent;
  }

  function showText(text) {
    changed.replaceChildren(...(text.trim() ? markChanges(text, sentence.text) : [gettext("(empty)")]));
  }

  async function update() {
    latest += 1;
    const id = latest;
    const factor = Number(slider.value);
    if (factor === 1) {
      showText(sentence.text);
      return;
    }
    table.classList.add("waiting");
    const fields = { q: sentence.source_text, features: [`${feature}=${factor}x`] };
    const response = await inspector.request(() => server.ask("features/steer", fields));
    if (id !== latest || !isCurrent()) return;
    table.classList.remove("waiting");
    if (response) showText(response.text);
  }
}

// Return the largest value of each sublayer.
function largestValues({ tokens }) {
  const largest = {};
  for (const { features } of tokens) {
    for (const [sublayer, active] of Object.entries(features)) {
      largest[sublayer] = Math.max(largest[sublayer] ?? 1e-9, ...active.map(({ value }) => value));
    }
  }
  return largest;
}

function shownToken(token) {
  return token.replaceAll("▁", "") || "▁";
}
