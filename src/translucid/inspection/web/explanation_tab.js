// The tab "Why" of the inspector: explanations of the words, and contrasts with other words.

import { createRetryButton, element, isolateText } from "./elements.js";
import { createContrastForm, describeOdds, normaliseImportance, showFaithfulness } from "./explanations.js";
import { gettext } from "./messages.js";
import { showRibbons } from "./ribbons.js";

// Fill the tab with a choice of methods, a form for contrasts, and the faithfulness of the explanation.
export function showExplanationTab(inspector) {
  const { panel, server, content } = inspector;
  let contrast = null; // { word, instead_of }: why is the word there, and not the other one?
  const options = Object.entries(inspector.explanations.methods).map(([value, textContent]) =>
    element("option", { value, textContent }),
  );
  const methodSelect = element("select", { ariaLabel: gettext("method") }, ...options);
  const odds = element("p", { className: "note", ariaLive: "polite" });
  const faithfulness = element("div", { className: "faithfulness" });
  panel.append(
    element("div", { className: "toolbar" }, element("label", { textContent: `${gettext("Method")} ` }, methodSelect)),
  );
  if (server.continuations) {
    inspector.contrastForm = createContrastForm({
      words: inspector.wordsWithoutEnd(),
      lang: content.languages?.[1],
      findAlternatives: (index) => findAlternatives(inspector, index),
      onChange: (newContrast) => {
        if (!newContrast && !contrast) return;
        contrast = newContrast;
        explain();
      },
    });
    panel.append(inspector.contrastForm.container);
  }
  panel.append(odds, faithfulness);
  methodSelect.addEventListener("change", explain);
  explain();

  async function explain() {
    const { sentence } = inspector;
    const [method, askedContrast] = [methodSelect.value, contrast];
    const isCurrentTab = inspector.currentState();
    faithfulness.textContent = "…";
    odds.textContent = "";
    const explanation = await inspector.request(() => inspector.explanations.explain(sentence, method, askedContrast));
    if (!isCurrentTab() || method !== methodSelect.value || askedContrast !== contrast) return;
    if (!explanation) {
      faithfulness.replaceChildren(createRetryButton(explain));
      return;
    }
    showImportance(inspector, explanation, askedContrast);
    if (askedContrast) odds.textContent = describeOdds(explanation);
    showFaithfulness(faithfulness, explanation);
    exportExplanation(inspector, explanation, askedContrast);
  }
}

// Return the most probable words in the place of a word.
function findAlternatives(inspector, index) {
  const { sentence, server } = inspector;
  return inspector.request(() =>
    server.continuations(sentence, inspector.prefixTokens(index), inspector.prefixText(index)),
  );
}

// Show the importances between the words of the sentence. If the explanation is about other words, replace them.
function showImportance(inspector, explanation, contrast) {
  const { record, view } = inspector;
  const captions = { verbs: explanationVerbs(contrast && isolateText(contrast.instead_of)) };
  const weights = view.explanationWeights(record, explanation);
  if (weights) {
    inspector.wordsView.update({ weights, ...captions });
  } else {
    inspector.wordsView = showRibbons(inspector.wordsContainer, {
      above: explanation.source,
      below: explanation.target,
      weights: normaliseImportance(explanation.importance),
      ...captions,
    });
  }
  if (contrast) inspector.wordsView.highlightBelow(weights ? contrast.word : 0);
}

// Return the sentences about an explanation, in the form of ATTENTION_VERBS in ribbons.js. `other`: the other word of a contrast.
function explanationVerbs(other) {
  const toWords = {
    hint: gettext("{point} to see what it matters to, in per cent of the largest."),
    sentence: gettext("{word} matters to {list}"),
  };
  if (!other) {
    const hint = gettext("{point} to see what it depends on, in per cent of the largest.");
    return [{ hint, sentence: gettext("{word} depends on {list}") }, toWords];
  }
  return [
    {
      hint: gettext("{point} to see what it depends on instead of “{other}”, in per cent of the largest.", { other }),
      sentence: gettext("{word} instead of “{other}” depends on {list}", { other }),
    },
    toWords,
  ];
}

function exportExplanation(inspector, explanation, contrast) {
  const { method } = explanation;
  inspector.exported = {
    name: "why",
    svg: () => inspector.wordsView.svg(),
    data: () => explanation,
    code: () => inspector.view.explanationCode(inspector.codeArguments(), method, contrast),
    pdfFields: () => ({ view: "why", method, ...contrast }),
  };
  inspector.showExportMenu();
}
