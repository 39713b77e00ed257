// Translations through a pivot language: both steps are shown like the translations of two models.

import { modelFor } from "./languages.js";
import { gettext, languageName } from "./messages.js";

// Return the views of a response of /look for attention_view.js: one, or one for each step through a pivot language. `modelIndex`
// is 0 for the selected model, 1 for the compared one.
export function viewsOf(response, model, modelIndex) {
  if (!response.steps) return [{ response, model, modelIndex, title: model.name }];
  return response.steps.map((stepResponse, step) => {
    const { source, target, model: name } = stepResponse;
    const title = `${languageName(source)} → ${languageName(target)} (${name})`;
    return { response: stepResponse, model: modelOf(stepResponse), modelIndex, step, title };
  });
}

// Return the response after the user has chosen another translation of a sentence in one step. `request(path, model, fields)` asks
// the server; `translations` are those of all sentences in the step.
export async function withChosenTranslation(request, response, step, translations) {
  const steps = [...response.steps];
  const changed = translations.findIndex((text, i) => text !== steps[step].sentences[i].text);
  const q = steps[step].sentences[changed].source_text;
  const inspected = await request("look", modelOf(steps[step]), { q, translations: [translations[changed]] });
  steps[step] = withSentence(steps[step], changed, inspected.sentences[0]);
  if (step === 0) {
    // the second step translates the chosen text
    const secondStep = await request("look", modelOf(steps[1]), { q: translations[changed] });
    steps[1] = withSentence(steps[1], changed, asOneSentence(translations[changed], secondStep));
  }
  const { text } = steps[1].sentences[changed];
  const old = response.sentences.filter(({ origin }) => origin !== "memory")[changed];
  const updated = { ...old, text, warnings: [], confidence: null };
  const sentences = response.sentences.map((sentence) => (sentence === old ? updated : sentence));
  const translation = response.translation.replace(old.text, () => text); // a function, as `$` is special in a replacement text
  return { ...response, steps, sentences, translation };
}

function modelOf({ model: name, source, target }) {
  return modelFor(name, source, target);
}

function withSentence(step, index, sentence) {
  const sentences = step.sentences.with(index, sentence);
  return { ...step, sentences, translation: sentences.map(({ text }) => text).join(" ") };
}

// Return a response as one sentence, even if the server has split its text.
function asOneSentence(source_text, { translation, sentences }) {
  if (sentences.length === 1) return sentences[0];
  const joined = (name) => sentences.flatMap((sentence) => sentence[name]);
  return { source_text, text: translation, pieces: joined("pieces"), warnings: joined("warnings"), confidence: null };
}

// Show through which language a text was translated, with the text in this language if it is known.
export function showPivotNote(container, pivot, steps) {
  container.hidden = !pivot;
  if (!pivot) return;
  const pivotText = steps?.[0]?.translation ?? "";
  const label = gettext("Translated through {language}", { language: languageName(pivot) });
  if (!pivotText) {
    container.replaceChildren(label);
    return;
  }
  const quote = document.createElement("q");
  Object.assign(quote, { textContent: pivotText, lang: pivot, dir: "auto" });
  container.replaceChildren(label, ": ", quote);
}
