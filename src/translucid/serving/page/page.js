// The page: type, see the translation, where the model looked, what else it could have said, and why it said so.

import { showAttention } from "/attention.js";

const $ = (id) => document.getElementById(id);
let models = [];
let shown = null; // the last answer of /look, of the first model
let turn = 0; // answers that come too late are thrown away
let timer;

start();

async function start() {
  const [list, settings] = await Promise.all([fetch("/models"), fetch("/frontend/settings")].map(async (r) => (await r).json()));
  models = list;
  for (const [i, one] of models.entries()) {
    const text = `${one.name} (${one.source} → ${one.target})`;
    $("model").append(option(i, text));
    $("other").append(option(i, text));
  }
  document.querySelector(".key").hidden = !settings.apiKeys;
  if (models.length < 2) $("other").parentElement.hidden = true;
  name();
  $("source").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 250); count(settings.charLimit); });
  for (const id of ["model", "other", "key"]) $(id).addEventListener("change", () => { name(); run(); });
  $("explain").addEventListener("click", explain);
  $("search").addEventListener("toggle", trees);
  count(settings.charLimit);
}

function option(value, textContent) {
  return Object.assign(document.createElement("option"), { value, textContent });
}

function name() {
  const one = models[Number($("model").value)];
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const say = (code) => { try { return names.of(code); } catch { return code; } };
  $("source-language").textContent = say(one.source);
  $("target-language").textContent = say(one.target);
}

function count(limit) {
  $("count").textContent = `${$("source").value.length.toLocaleString("en")} of ${limit.toLocaleString("en")} characters`;
}

async function ask(path, model, fields) {
  const body = { source: model.source, target: model.target, model: model.name, ...fields };
  if ($("key").value) body.api_key = $("key").value;
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function run() {
  const mine = ++turn;
  const text = $("source").value;
  const first = models[Number($("model").value)];
  const second = $("other").value === "" ? null : models[Number($("other").value)];
  $("compared").hidden = !second;
  $("search").open = false;
  document.body.classList.add("busy");
  try {
    if (text.length > 500) return await stream(mine, first, text);
    const answers = await Promise.all([first, second].filter(Boolean).map((model) => ask("/look", model, { q: text })));
    if (mine !== turn) return;
    shown = answers[0];
    $("translation").textContent = shown.translation;
    attention($("attention"), shown);
    words();
    if (second) {
      $("compared-name").textContent = second.name;
      $("compared-translation").textContent = answers[1].translation;
      attention($("compared-attention"), answers[1]);
    } else {
      $("compared-attention").replaceChildren();
    }
    problem("");
  } catch (error) {
    if (mine === turn) problem(error.message);
  } finally {
    if (mine === turn) document.body.classList.remove("busy");
  }
}

// A long text is translated paragraph by paragraph, each shown when it is there; it is not looked into.
async function stream(mine, model, text) {
  shown = null;
  for (const id of ["attention", "compared-attention", "words", "ways", "explanation"]) $(id).replaceChildren();
  $("translation").textContent = "";
  for (const part of text.split(/(\n+)/)) {
    const answer = part.trim() ? (await ask("/translate", model, { q: part })).translatedText : part;
    if (mine !== turn) return;
    $("translation").textContent += answer;
  }
  problem("A text of more than 500 characters is translated, but not looked into.");
}

function problem(text) {
  $("problem").textContent = text;
}

function pieces(answer) {
  return answer.sentences.flatMap((sentence) => sentence.pieces);
}

function attention(place, answer) {
  place.replaceChildren();
  for (const piece of pieces(answer)) {
    if (!piece.maps) { place.textContent = "This model has no attention: one vector is all that it knows of the source."; return; }
    const part = document.createElement("section");
    place.append(part);
    showAttention(part, piece);
  }
}

// The words of the translation as buttons; each asks for the likeliest ways to go on from there.
function words() {
  $("words").replaceChildren();
  $("ways").replaceChildren();
  $("explanation").replaceChildren();
  if (!shown) return;
  for (const sentence of shown.sentences) {
    if (sentence.pieces.length !== 1 || !sentence.pieces[0].maps) continue;
    const [piece] = sentence.pieces;
    const line = Object.assign(document.createElement("p"), { className: "words" });
    piece.target.forEach((text, w) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "word alternative", textContent: text });
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
    const model = models[Number($("model").value)];
    const found = await ask("/continue", model, { q: sentence.source_text, prefix });
    if (mine !== turn) return;
    document.querySelectorAll(".word.chosen").forEach((word) => word.classList.remove("chosen"));
    button.classList.add("chosen");
    $("ways").replaceChildren(...found.map((way) => choice(sentence, way)));
    problem("");
  } catch (error) {
    problem(error.message);
  }
}

function choice(sentence, way) {
  const button = Object.assign(document.createElement("button"), { type: "button" });
  const cell = (className, textContent) => Object.assign(document.createElement("span"), { className, textContent });
  button.append(cell("probability", `${(100 * Math.exp(way.probability)).toFixed(1)} %`), cell("next", way.next || "(end)"), cell("rest", way.text));
  button.addEventListener("click", () => {
    const before = $("translation").textContent;
    $("translation").textContent = before.replace(sentence.text, way.text);
    sentence.text = way.text;
  });
  const item = document.createElement("li");
  item.append(button);
  return item;
}

async function trees() {
  const mine = turn;
  const text = $("source").value;
  $("trees").replaceChildren();
  if (!$("search").open || !text.trim()) return;
  $("trees").textContent = "…";
  try {
    const answer = await ask("/beam", models[Number($("model").value)], { q: text });
    if (mine !== turn) return;
    $("trees").replaceChildren(...answer.trees.map((svg) => Object.assign(document.createElement("img"), {
      src: `data:image/svg+xml,${encodeURIComponent(svg)}`,
      alt: "The tree of the beam search: each word with its probability, the best path marked",
    })));
  } catch (error) {
    $("trees").textContent = "";
    problem(error.message);
  }
}

async function explain() {
  const mine = turn;
  const text = $("source").value;
  if (!text.trim()) return;
  $("explanation").textContent = "…";
  try {
    const answer = await ask("/look", models[Number($("model").value)], { q: text, explain: $("method").value });
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
      showAttention(part, { source: explanation.source, target: explanation.target, maps: [{ name: explanation.method, weights }], verbs: ["depends on", "matters to"] });
    }
  } catch (error) {
    $("explanation").textContent = "";
    problem(error.message);
  }
}
