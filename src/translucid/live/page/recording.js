// A recorded session that plays again: what was heard and written, and the staircase of each sentence.

import { element, textDirection } from "./elements.js";
import { showPlayback } from "./playback.js";
import { averageLagging, decisionsOf, STANDS_ALONE, Staircase } from "./staircase.js";

export const WORD_MILLISECONDS = 400; // at 150 words a minute
// Show a session's record, which docs/live.md describes, in `root`.
export function showRecording(root, record) {
  const sentences = record.sentences.filter(({ source }) => source.length);
  const views = sentences.map(wordsOf);
  const steps = sentences.flatMap(({ source, ended }, index) =>
    [...source, ...(ended ? [null] : [])].map((word, i) => ({ index, word, heard: i + 1 })),
  );
  const [playback, figure] = [element("div", {}), element("section", { ariaLabel: "attention" })];
  /** @type {Staircase | null} */
  let staircase = null;
  let shown = -1; // the index of the sentence whose staircase is shown
  root.classList.add("inspector", "recording");
  root.replaceChildren(
    element("h1", { textContent: "Live translation" }),
    element("p", { className: "note", textContent: settingsOf(record) }),
    lineOf(record, views, "source"),
    lineOf(record, views, "target"),
    playback,
    figure,
  );
  if (steps.length) showPlayback(playback, steps.length, { onStep, describe, milliseconds: WORD_MILLISECONDS });

  function onStep(i) {
    const { index, heard } = steps[i];
    if (index !== shown) {
      staircase = new Staircase(figure, record);
      staircase.update(sentences[index]);
      shown = index;
    }
    staircase?.showStep(heard);
    views.forEach(({ source, target }, v) => {
      const heardHere = v < index ? Infinity : v > index ? 0 : heard;
      for (const { span, at } of [...source, ...target]) span.classList.toggle("upcoming", at > heardHere);
    });
  }

  function describe(i) {
    const { index, word, heard } = steps[i];
    const written = views[index].target.filter(({ at }) => at === heard).map(({ span }) => span.textContent.trim());
    const event = word === null ? "the sentence ends" : `heard: ${word}`;
    return written.length ? `${event}; written: ${written.join(" ")}` : `${event}; nothing written`;
  }
}

function settingsOf({ model, languages, policy, lag, sentences }) {
  const lags = sentences.map(averageLagging).filter((value) => value !== null);
  const mean = lags.reduce((sum, value) => sum + value, 0) / (lags.length || 1);
  return `${model ?? "model"}, ${languages.join(" → ")}, policy ${policy}, lag ${lag}; average lagging ${mean.toFixed(1)} words`;
}

// Return the words of a sentence and of its translation, each with the step at which it is heard or written.
function wordsOf(sentence) {
  const source = sentence.source.map((word, i) => ({ span: wordSpan(word, !STANDS_ALONE.test(word)), at: i + 1 }));
  let end = 0; // of the part before
  const target = decisionsOf(sentence)
    .filter(({ isWritten }) => isWritten)
    .map(({ text, heard, isAtEnd }) => {
      const start = sentence.text.indexOf(text, end);
      const span = wordSpan(text, start > end || end === 0);
      end = start + text.length;
      return { span, at: heard + Number(isAtEnd) };
    });
  return { source, target };
}

function wordSpan(word, isSpaced) {
  return element("span", { textContent: isSpaced ? ` ${word}` : word });
}

function lineOf({ languages }, views, side) {
  const words = views.flatMap((view) => view[side]);
  const lang = languages[side === "source" ? 0 : 1];
  const dir = textDirection(words.map(({ span }) => span.textContent));
  const line = element("p", { className: `recorded-text ${side}`, lang, dir });
  line.append(...words.map(({ span }) => span));
  return line;
}
