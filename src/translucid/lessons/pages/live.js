// Lesson 14: a sentence that is heard word by word, and its translation, which waits for words.
import { el } from "./dom.js";
import { formatNumber } from "./formatting.js";
import { filled, gettext, ngettext } from "./messages.js";
import { liveRegion, matrix, slider } from "./widgets.js";

export function liveFigure(container) {
  let sentence;
  let heard;
  const sliders = el("div", { class: "controls" });
  const translation = el("p", { class: "translation" });
  const summary = liveRegion();
  const table = el("div", {});
  container.append(sliders, translation, summary, table);
  let lagSlider;
  return showSentence;

  function showSentence(newSentence) {
    sentence = newSentence;
    const count = sentence.words.length;
    heard = Math.min(Math.ceil(count / 2), count);
    const largest = sentence.lags.length;
    lagSlider = slider("lag", gettext("lag f, in words"), { min: 1, max: largest, value: Math.min(2, largest) }, draw);
    const heardSlider = slider(
      "words-heard",
      gettext("words heard"),
      { min: 1, max: count, value: heard },
      (number) => {
        heard = number;
        draw();
      },
    );
    sliders.replaceChildren(heardSlider.node, lagSlider.node);
    draw();
  }

  function draw() {
    const { lag, written, refused } = sentence.lags[lagSlider.value - 1];
    const shown = written.filter(([, time]) => time <= heard);
    const waiting = refused.find((piece) => piece.heard === heard);
    const output = joinWords(shown.map(([text]) => text));
    translation.replaceChildren(
      el("span", { class: "label" }, `${sentence.words.slice(0, heard).join(" ")} … → `),
      `${output} …`,
    );
    if (heard === sentence.words.length)
      translation.replaceChildren(el("span", { class: "label" }, `${sentence.words.join(" ")} → `), output);
    summary.textContent = describe(waiting, lag);
    const rows = shown.map(([text, time, row]) => ({ name: text, time, row, isWaiting: false }));
    if (waiting) rows.push({ name: waiting.text || gettext("end"), time: heard, row: waiting.row, isWaiting: true });
    const names = rows.map(({ name, isWaiting }) => (isWaiting ? `${name} …` : name));
    table.replaceChildren(
      matrix(names, sentence.words, (r, c) => attentionCell(rows[r], c, lag), `${gettext("heard")} →`),
    );
  }

  // The weight of a source word. A word that had not been heard is hatched, and the last words then have a frame.
  function attentionCell({ time, row }, column, lag) {
    if (column >= time)
      return el("td", { class: "weight masked" }, el("span", { class: "visually-hidden" }, gettext("not heard")));
    const isLast = time < sentence.words.length && column >= time - lag;
    const weight = formatNumber(row[column]);
    const note = isLast ? el("span", { class: "visually-hidden" }, gettext("one of the last words")) : "";
    return el("td", { class: isLast ? "weight last" : "weight", style: { "--weight": row[column] } }, weight, note);
  }

  function describe(waiting, lag) {
    if (heard === sentence.words.length) return gettext("The sentence has ended: the rest is written.");
    if (!waiting) return gettext("Nothing waits.");
    if (waiting.at === null) return gettext("The translation could end here, but the sentence has not ended: wait.");
    return ngettext(
      "“{piece}” looks most at “{word}”, the last word: wait.",
      "“{piece}” looks most at “{word}”, one of the last {count} words: wait.",
      lag,
      { piece: waiting.text, word: sentence.words[waiting.at] },
    );
  }
}

// The text of written words; a sign follows a word without a space.
function joinWords(words) {
  return words.reduce((text, word) => text + (text && /^[\p{L}\p{N}¿¡]/u.test(word) ? " " : "") + word, "");
}

// What the text says about the record: a sentence that is translated differently because a word did not wait.
export function liveFacts({ sentences }) {
  const changes = [];
  for (const sentence of sentences) {
    for (const { lag, text } of sentence.lags) if (text !== sentence.whole) changes.push({ sentence, lag, text });
  }
  if (!changes.length) {
    return {
      question: gettext("At all lags, the translations above are those of the whole sentences. Must it be so?"),
      answer: gettext("Here, no word depends on one that is heard later than the lag."),
    };
  }
  const [{ sentence, lag, text }] = changes;
  const largest = Math.max(...changes.filter((change) => change.sentence === sentence).map((change) => change.lag));
  const most = sentence.lags.length;
  return {
    question: gettext(
      "“{sentence}” is “{whole}” if the model hears it to its end. With a lag of {lag}, it is “{text}”. Why did the attention not wait?",
      { sentence: sentence.text, whole: sentence.whole, lag, text },
    ),
    answer: filled(
      largest < most
        ? gettext("A larger lag waits for more of them: a lag of {lag} is enough here.")
        : gettext("A larger lag waits for more of them: not even a lag of {lag} is enough here."),
      { lag: largest < most ? largest + 1 : most },
    ),
  };
}
