// Activation patching: two sentences side by side, and for each layer and word how much of their difference its state carries.
//
// patchView(root, { sentence, languages: [source, target], ask(fields, refused): what Patching.to_json returns, with translations:
//   [clean, other], or null; wanted(): whether it is still to be shown; shown(view, { fields, answer }) }): fields are { other: a
//   sentence, words: [a, b] or nothing }; fields and answer stay with the sentence, as `patched`.

import { difference } from "./chips.js";
import { element, isolated, signed } from "./elements.js";
import { showGrid } from "./grid.js";

const EDGE = 12; // pixels around a picture
const HINT = "Each cell: how much of the difference in log-odds is carried over, in per cent, if the state of this layer at this word comes "
  + "from the first sentence. 0 is like the second sentence, 100 like the first; orange is below 0.";

export function patchView(root, { sentence, languages, ask, wanted, shown }) {
  const [form, result] = [element("div"), element("div")];
  root.append(form, result);
  showForm(form, { source: sentence.source_text, fields: sentence.patched?.fields, lang: languages[0] ?? "", compare });
  if (sentence.patched) show();

  async function compare(fields) {
    result.textContent = "…";
    let refusal = "";
    const answer = await ask(fields, (error) => { refusal = error.message; });
    if (answer) sentence.patched = { fields, answer };
    if (!wanted()) return;
    if (answer) show();
    else result.textContent = refusal;
  }

  function show() {
    shown(showPatching(result, sentence.patched.answer, languages), sentence.patched);
  }
}

function showForm(root, { source, fields, lang, compare }) {
  const input = (value, more) => element("input", { type: "text", value, lang, autocomplete: "off", ...more });
  const other = input(fields?.other ?? source, { required: true, maxLength: 500 });
  const [first, second] = [0, 1].map((i) => input(fields?.words?.[i] ?? "", { maxLength: 100, lang: "", size: 10 }));
  const form = element("form", { className: "patch-form", ariaLabel: "another sentence" },
    element("label", { className: "other", textContent: "Another sentence, which differs in a word " }, other),
    element("label", { textContent: "Word of the translation " }, first),
    element("label", { textContent: "instead of it " }, second),
    element("button", { textContent: "Compare" }));
  const note = element("p", { className: "about", textContent: "Without two words, the first difference of both translations is taken." });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = [first.value.trim(), second.value.trim()];
    compare({ other: other.value.trim(), ...(words.every(Boolean) ? { words } : {}) });
  });
  root.replaceChildren(form, note);
}

function showPatching(root, record, [from = "", into = ""]) {
  const { clean, other, words, prefix, log_odds, parts, notes, translations } = record;
  const differing = difference(clean.split(/\s+/), other.split(/\s+/));
  const pair = [[clean, log_odds.clean], [other, log_odds.other]].map(([text, odds], i) => element("div", { className: "sentence" },
    element("p", { lang: from, dir: "auto" }, ...marked(text, differing[i])),
    element("p", { lang: into, dir: "auto", textContent: translations[i] }),
    element("p", { className: "about", textContent: `log-odds of “${isolated(words[0])}” against “${isolated(words[1])}”: ${signed(odds)} nats` })));
  const after = prefix ? `after “${isolated(prefix)}”` : "as the first word";
  const title = element("p", { className: "title", textContent: `“${isolated(words[0])}” or “${isolated(words[1])}” ${after}` });
  const blocks = parts.map((part) => element("div", {}, element("p", { className: "title", textContent: capital(part.kind) }), element("div")));
  root.replaceChildren(element("div", { className: "pair" }, ...pair), title, element("p", { className: "about", textContent: HINT }), element("div", { className: "beside grids" }, ...blocks), ...notes.map((textContent) => element("p", { className: "about", textContent })));
  const grids = parts.map((part, i) => showGrid(blocks[i].lastChild, { label: part.kind, rows: part.layers, columns: part.words, cells: cellsOf(part) }));
  return { picture: () => stacked(grids.map((grid) => grid.picture())) };
}

function cellsOf({ layers, words, clean_words: clean, carried }) {
  return carried.map((row, l) => row.map((share, w) => {
    const word = clean[w] === words[w] ? isolated(words[w]) : `${isolated(words[w])} ← ${isolated(clean[w])}`;
    const value = `${Math.round(100 * share)}`.replace("-", "\u2212");
    return { text: value, value: share, about: `${layers[l]}, ${word}: ${value} %` };
  }));
}

function marked(text, indices) {
  const words = text.split(/\s+/);
  return words.flatMap((word, i) => [" ", indices.has(i) ? element("mark", { textContent: word }) : word]).slice(1);
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Several pictures below each other as one.
function stacked(pictures) {
  const [first] = pictures;
  const size = (one, name) => Number(one.getAttribute(name));
  const width = Math.max(...pictures.map((one) => size(one, "width")));
  let height = 0;
  for (const one of pictures) {
    one.setAttribute("y", height);
    height += size(one, "height") - EDGE;
  }
  const whole = first.cloneNode(false);
  for (const [name, value] of Object.entries({ width, height: height + EDGE, viewBox: `0 0 ${width} ${height + EDGE}`, y: 0 })) whole.setAttribute(name, value);
  whole.append(...pictures);
  return whole;
}
