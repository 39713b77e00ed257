// Seeing: where the model looked, what else it could have said, and why it said so.
//
// startSeeing(ask, settings) once; see(text, [{ answer, model }, …]) for the answers of /look on a text, the first model's first;
// clearSeeing() when there is nothing to see; leaveSeeing() when another text is on its way, so that answers to the old one are
// thrown away. #seeing tells the page: "choose" with { translations } when other ones were chosen, "problem" with an error or null.

import { $, element, wayButton } from "./asking.js";
import { showAttention } from "./attention.js";

const PANELS = ["attention", "compared-attention", "words", "ways", "explanation", "trees"];
let ask = null; // (path, model, fields): a question to the server
let shown = null; // the first model's answer and name, and the text
let turn = 0; // answers that come too late are thrown away

export function startSeeing(question, settings) {
  ask = question;
  // Only the ways to explain that the server has.
  for (const way of $("method").querySelectorAll("option")) if (!settings.explanations.includes(way.value)) way.remove();
  $("explain").addEventListener("click", explain);
  $("search").addEventListener("toggle", trees);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", trees);
}

export function leaveSeeing() {
  turn += 1;
  $("search").open = false;
}

export function clearSeeing() {
  shown = null;
  for (const id of PANELS) $(id).replaceChildren();
}

export function see(text, answers) {
  turn += 1;
  const [first, second] = answers;
  shown = { text, ...first };
  for (const place of document.querySelectorAll("#seeing h2 .of, #attention-of")) place.textContent = second ? first.model.name : "";
  $("compared-of").textContent = second ? second.model.name : "";
  attention($("attention"), first);
  $("compared-attention").replaceChildren();
  if (second) attention($("compared-attention"), second);
  words();
}

function tell(type, detail) {
  $("seeing").dispatchEvent(new CustomEvent(type, { detail }));
}

function attention(place, { answer, model }) {
  place.replaceChildren();
  for (const piece of answer.sentences.flatMap((sentence) => sentence.pieces)) {
    if (!piece.maps) { place.textContent = "This model has no attention: one vector is all that it knows of the source."; return; }
    const part = document.createElement("section");
    place.append(part);
    showAttention(part, { ...piece, languages: [model.source, model.target] });
  }
}

// The words of the translation as buttons; each asks for the likeliest ways to go on from there.
function words() {
  for (const id of ["words", "ways", "explanation"]) $(id).replaceChildren();
  for (const sentence of shown.answer.sentences) {
    if (sentence.pieces.length !== 1 || !sentence.pieces[0].maps) continue;
    const [piece] = sentence.pieces;
    const line = element("p", { className: "words", dir: "auto", lang: shown.model.target });
    piece.target.forEach((text, w) => {
      const button = element("button", { type: "button", className: "word alternative", textContent: text });
      button.setAttribute("aria-label", `ways to go on at ${text}`);
      button.addEventListener("click", () => ways(sentence, piece.tokens.slice(0, w).flat(), button));
      line.append(button, " ");
    });
    $("words").append(line);
  }
}

async function ways(sentence, prefix, button) {
  const mine = turn;
  try {
    const found = await ask("continue", shown.model, { q: sentence.source_text, prefix });
    if (mine !== turn) return;
    document.querySelectorAll(".word.chosen").forEach((word) => word.classList.remove("chosen"));
    button.classList.add("chosen");
    $("ways").replaceChildren(...found.map((way) => choice(sentence, way)));
    tell("problem", null);
  } catch (error) {
    if (mine === turn) tell("problem", error);
  }
}

function choice(sentence, way) {
  const translations = shown.answer.sentences.map((one) => (one === sentence ? way.text : one.text));
  const choose = () => tell("choose", { translations });
  return wayButton(Math.exp(way.probability), way.next, way.text, shown.model.target, choose);
}

async function trees() {
  const mine = turn;
  $("trees").replaceChildren();
  if (!$("search").open || !shown?.text.trim()) return;
  $("trees").textContent = "…";
  try {
    const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const answer = await ask("beam", shown.model, { q: shown.text, theme });
    if (mine !== turn) return;
    $("trees").replaceChildren(...answer.trees.map((svg) => element("img", {
      src: `data:image/svg+xml,${encodeURIComponent(svg)}`,
      alt: "The tree of the beam search: each word with its probability, the best path marked",
    })));
  } catch (error) {
    $("trees").textContent = "";
    if (mine === turn) tell("problem", error);
  }
}

async function explain() {
  const mine = turn;
  if (!shown?.answer.sentences.length) return;
  $("explanation").textContent = "…";
  try {
    const { sentences } = shown.answer;
    const whole = sentences.every((one) => one.pieces.length === 1) ? { translations: sentences.map((one) => one.text) } : {};
    const answer = await ask("look", shown.model, { q: shown.text, explain: $("method").value, ...whole });
    if (mine !== turn) return;
    $("explanation").replaceChildren();
    for (const { explanation } of answer.sentences) {
      if (!explanation) continue;
      const largest = Math.max(...explanation.importance.flat().map(Math.abs), 1e-9);
      const weights = explanation.importance.map((row) => row.map((x) => Math.max(x, 0) / largest));
      const part = document.createElement("section");
      const { faithfulness: ours, random } = explanation;
      const note = document.createElement("p");
      note.className = "hint";
      note.textContent =
        `Left out, the word that matters most takes ${ours.comprehensiveness.toFixed(2)} nats from the translated word's ` +
        `log-probability (a random word: ${random.comprehensiveness.toFixed(2)}); kept alone, it leaves ${ours.sufficiency.toFixed(2)} missing.`;
      $("explanation").append(part, note);
      const { source, target } = shown.model;
      const record = { source: explanation.source, target: explanation.target, maps: [{ name: explanation.method, weights }] };
      showAttention(part, { ...record, verbs: ["depends on", "matters to"], languages: [source, target] });
    }
  } catch (error) {
    if (mine !== turn) return;
    $("explanation").textContent = "";
    tell("problem", error);
  }
}
