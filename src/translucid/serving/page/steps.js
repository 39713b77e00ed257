// Translations through a pivot language: both steps are shown like the translations of two models.

import { named, say } from "./languages.js";

// The views of a response of /look: one, or one for each step. `which` is the index of the chosen model.
export function viewsOf(answer, model, which) {
  if (!answer.steps) return [{ answer, model, which, title: model.name }];
  return answer.steps.map((one, step) => ({
    answer: one, model: modelOf(one), which, step, title: `${say(one.source)} → ${say(one.target)} (${one.model})`,
  }));
}

function modelOf({ model: name, source, target }) {
  return named(name, source, target);
}

// The response after the user has chosen other translations in one step. `ask` is a request for a model.
export async function withChosen(ask, answer, step, translations) {
  const steps = [...answer.steps];
  const number = translations.findIndex((text, i) => text !== steps[step].sentences[i].text);
  const q = steps[step].sentences[number].source_text;
  const fixed = await ask("look", modelOf(steps[step]), { q, translations: [translations[number]] });
  steps[step] = withSentence(steps[step], number, fixed.sentences[0]);
  if (step === 0) { // the second step translates the chosen text
    const next = await ask("look", modelOf(steps[1]), { q: translations[number] });
    steps[1] = withSentence(steps[1], number, joined(translations[number], next));
  }
  const old = answer.sentences.filter(({ origin }) => origin !== "memory")[number];
  const { text } = steps[1].sentences[number];
  const sentences = answer.sentences.map((one) => (one === old ? { ...old, text, warnings: [], confidence: null } : one));
  return { ...answer, steps, sentences, translation: answer.translation.replace(old.text, () => text) };
}

function withSentence(step, number, sentence) {
  const sentences = step.sentences.with(number, sentence);
  return { ...step, sentences, translation: sentences.map(({ text }) => text).join(" ") };
}

// One sentence of a response, whose text may have been split again.
function joined(source_text, { translation, sentences }) {
  if (sentences.length === 1) return sentences[0];
  const all = (name) => sentences.flatMap((one) => one[name]);
  return { source_text, text: translation, pieces: all("pieces"), warnings: all("warnings"), confidence: null };
}

// Show through which language a text was translated, and its text in this language if it is known.
export function showPivot(place, pivot, steps) {
  place.hidden = !pivot;
  if (!pivot) return;
  const text = document.createElement("q");
  text.textContent = steps?.[0]?.translation ?? "";
  text.lang = pivot;
  text.dir = "auto";
  place.replaceChildren(`Translated through ${say(pivot)}`, ...(text.textContent ? [": ", text] : []));
}
