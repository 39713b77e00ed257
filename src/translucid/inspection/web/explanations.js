// Explanations of predictions: their weights between words, tests of their faithfulness, and contrasts ("why A and not B?").
//
// An explanation is what the field "explanation" of /look contains: { source, target: the words, importance: [target][source],
//   faithfulness, random: both { comprehensiveness, sufficiency }, fit, share, contrast: { word, instead_of, log_odds } or nothing }.

import { createBar, element, formatPercent, formatSigned, isolateText } from "./elements.js";
import { formatNumber, gettext, LANGUAGE, pgettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

const MAX_RATIO = 1e6; // larger ratios are not written out
export const METHODS = {
  erasure: gettext("erasure: leave out one word at a time"),
  lime: gettext("LIME: a local linear model"),
  gradients: gettext("integrated gradients"),
};
export const IMAGE_METHODS = {
  erasure: gettext("erasure: leave out one cell at a time"),
  lime: gettext("LIME: a local linear model of patches"),
  gradients: METHODS.gradients,
};

// Return explanations that are stored with the sentences as { methods, explain }, like a server's. The object is empty if no
// sentence has any.
export function storedExplanations(sentences) {
  const names = new Set(sentences.flatMap(({ explanations }) => Object.keys(explanations ?? {})));
  if (!names.size) return {};
  const methods = Object.fromEntries([...names].map((name) => [name, METHODS[name] ?? name]));
  return { methods, explain: async (sentence, method) => sentence.explanations?.[method] };
}

// Return the weights of an explanation between all words of a record, [target][source]; null if it is about other words.
export function explanationWeights(record, { source, target, importance, contrast }) {
  const wordCount = record.target.length - 1; // without the end token
  const hasSameTarget = contrast ? contrast.word < wordCount : wordCount === target.length;
  if (record.words.length !== source.length || !hasSameTarget) return null;
  const zeros = Array(record.source.length).fill(0);
  const rows = normaliseImportance(importance).map((row) => {
    const weights = [...zeros];
    record.words.forEach((position, i) => {
      weights[position] = row[i];
    });
    return weights;
  });
  return contrast ? weightsForOneWord(record.target, contrast.word, rows[0], zeros) : [...rows, zeros];
}

// Return one entry for each word: `weights` for the word at `index`, and `zeros` for all others.
export function weightsForOneWord(words, index, weights, zeros) {
  return words.map((_, i) => (i === index ? weights : zeros));
}

// Divide importances by the largest absolute value.
export function normaliseImportance(importance) {
  const largest = Math.max(...importance.flat().map(Math.abs), 1e-9);
  return importance.map((row) => row.map((value) => value / largest));
}

// Show how faithful an explanation is: its comprehensiveness and sufficiency, beside the mean of random explanations.
//
// explanation.share: for images, the share of the image that counts as most important; for texts it is one source word.
export function showFaithfulness(root, explanation) {
  const { faithfulness, random, fit } = explanation;
  const isContrast = Boolean(explanation.contrast);
  const measures = measureTexts(explanation.share, isContrast);
  const values = measures.flatMap(({ name }) => [faithfulness[name], random[name]]);
  const scale = { minimum: Math.min(0, ...values), maximum: Math.max(0, ...values) };
  const parts = measures.map(({ name, text }) =>
    element(
      "div",
      {},
      element("p", { textContent: text }),
      faithfulnessBar(gettext("this"), "bar-fill", faithfulness[name], scale),
      faithfulnessBar(gettext("random"), "bar-fill random", random[name], scale),
    ),
  );
  if (scale.minimum < 0) {
    const note = isContrast
      ? gettext("Below zero, the log-odds rose.")
      : gettext("Below zero, the word became more probable.");
    parts.push(element("p", { textContent: note }));
  }
  if (fit?.length) {
    const meanFit = fit.reduce((sum, value) => sum + value, 0) / fit.length;
    const percentage = Math.round(100 * meanFit);
    parts.push(
      element("p", {
        textContent: gettext("The linear model explains {percentage} % of the variance (R² {fit}).", {
          percentage: formatNumber(percentage),
          fit: formatNumber(meanFit, 2),
        }),
      }),
    );
  }
  root.replaceChildren(...parts);
}

function measureTexts(share, isContrast) {
  const part = share
    ? gettext("the most important {share} of the image", { share: formatPercent(share) })
    : gettext("the most important source word");
  const comprehensiveness = isContrast
    ? gettext("How much the log-odds of the two words fall without {part} (comprehensiveness; high is faithful):", {
        part,
      })
    : gettext("How much a word's log-probability falls without {part} (comprehensiveness; high is faithful):", {
        part,
      });
  const sufficiency = isContrast
    ? gettext("How much they fall with only {part} (sufficiency; low is faithful):", { part })
    : gettext("How much it falls with only {part} (sufficiency; low is faithful):", { part });
  return [
    { name: "comprehensiveness", text: comprehensiveness },
    { name: "sufficiency", text: sufficiency },
  ];
}

function faithfulnessBar(label, className, value, scale) {
  const track = createBar(className, value, scale);
  const number = element("span", { textContent: gettext("{value} nats", { value: formatSigned(value) }) });
  return element("div", { className: "measure" }, element("span", { textContent: label }), track, number);
}

// Create a form that asks why a word was written and not another one.
//
// words: the words that can be explained.
// lang: their language code.
// findAlternatives(index): returns a promise for probable words in the place of a word, [{ next, probability: its logarithm }], or null.
// hasAllWords: whether all words can be explained together.
// onChange({ word, instead_of } or null, index or null): the user asks for a contrast, or for an explanation of a word or of all.
// Returns { container, selectWord(index or null), chooseAlternative(text) }.
export function createContrastForm({ words, lang = "", findAlternatives, hasAllWords = true, onChange }) {
  const wordOptions = words.map((textContent, value) => element("option", { value, textContent }));
  const allWordsOption = element("option", { value: "", textContent: gettext("all words") });
  const wordSelect = element(
    "select",
    { ariaLabel: gettext("word to explain") },
    ...(hasAllWords ? [allWordsOption] : []),
    ...wordOptions,
  );
  const alternativeInput = element("input", {
    type: "text",
    ariaLabel: gettext("another word"),
    maxLength: 100,
    lang,
    dir: "auto",
    autocomplete: "off",
    spellcheck: false,
  });
  const alternativeLabel = element("label", { textContent: `${gettext("and not")} ` }, alternativeInput);
  const form = element(
    "form",
    { className: "toolbar", hidden: true },
    alternativeLabel,
    element("button", { textContent: gettext("Why not?") }),
  );
  const suggestions = element("div", {
    className: "suggestions",
    role: "group",
    ariaLabel: gettext("likely other words"),
  });
  wordSelect.addEventListener("change", () => selectWord(wordSelect.value === "" ? null : Number(wordSelect.value)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    chooseAlternative(alternativeInput.value.trim());
  });
  const toolbar = element(
    "div",
    { className: "toolbar" },
    element("label", { textContent: `${pgettext("before a word", "Why")} ` }, wordSelect),
    form,
  );
  return { container: element("div", { className: "contrast" }, toolbar, suggestions), selectWord, chooseAlternative };

  async function selectWord(index) {
    wordSelect.value = index ?? "";
    form.hidden = index === null;
    alternativeInput.value = "";
    suggestions.replaceChildren();
    onChange(null, index);
    if (index === null) return;
    const alternatives = (await findAlternatives(index)) ?? [];
    const isStillSelected = wordSelect.value === `${index}`;
    if (isStillSelected) showSuggestions(alternatives, words[index]);
  }

  function showSuggestions(alternatives, currentWord) {
    const probabilities = new Map();
    for (const { next, probability } of alternatives) {
      const isNew = next && next !== currentWord && !probabilities.has(next);
      if (isNew) probabilities.set(next, Math.exp(probability));
    }
    const buttons = [...probabilities].map(([text, probability]) => {
      const title = formatPercent(probability);
      const button = element("button", {
        type: "button",
        textContent: text,
        title,
        lang,
        dir: "auto",
        ariaPressed: "false",
      });
      button.addEventListener("click", () => chooseAlternative(text));
      return button;
    });
    suggestions.replaceChildren(...buttons);
    addRovingTabindex([buttons]);
  }

  function chooseAlternative(text) {
    if (!text) {
      alternativeInput.focus();
      return;
    }
    alternativeInput.value = text;
    for (const button of suggestions.children) button.ariaPressed = `${button.textContent === text}`;
    const word = Number(wordSelect.value);
    onChange({ word, instead_of: text }, word);
  }
}

// Return a sentence about the odds between the two words of a contrast. Explanations with `source` words are shown in two colors.
export function describeOdds({ target: [word], source, contrast: { instead_of, log_odds } }) {
  const [first, second] = [word, instead_of].map((text) => `“${isolateText(text)}”`);
  const ratio = Math.exp(Math.abs(log_odds));
  const times =
    ratio < MAX_RATIO ? ratio.toLocaleString(LANGUAGE, { maximumSignificantDigits: 2 }) : gettext("over a million");
  const [likelier, other] = log_odds < 0 ? [second, first] : [first, second];
  const odds = gettext("Here, {likelier} is {times} times as probable as {other}.", { likelier, times, other });
  return source ? `${odds} ${gettext("Blue supports {first}, orange {second}.", { first, second })}` : odds;
}
