// Show where a translator looked: words that light up each other, a choice of layer and head, the table of weights.
//
// record: { source: [words], target: [words], maps: [{ name, weights: [target][source] }], probabilities: [target],
//   verbs: [what a target word did, what was done to a source word], languages: [codes of source and target] }

const UNSURE = 0.3; // a word below this probability is underlined

export function showAttention(root, record) {
  const [did, was] = record.verbs ?? ["looked at", "was looked at by"];
  let map = record.maps[0];
  root.classList.add("attention");
  root.replaceChildren();
  const choice = element("select", { ariaLabel: "layer and head" });
  record.maps.forEach((one, i) => choice.append(element("option", { value: i, textContent: one.name })));
  const label = element("label", { textContent: "Attention: ", hidden: record.maps.length < 2 });
  label.append(choice);
  const controls = element("div", { className: "controls" });
  controls.append(label);
  const [from, into] = record.languages ?? ["", ""];
  const source = words(record.source, "source", from);
  const target = words(record.target, "translation", into);
  const said = element("p", { className: "said", ariaLive: "polite" });
  const table = element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "table of attention weights" });
  const details = element("details", {});
  details.append(element("summary", { textContent: "Table of weights" }), table);
  root.append(controls, source.line, target.line, said, details);

  choice.addEventListener("change", () => { map = record.maps[Number(choice.value)]; draw(); clear(); });
  record.probabilities?.forEach((p, t) => target.words[t].classList.toggle("unsure", p < UNSURE));
  target.words.forEach((word, t) => hear(word, () => light(target, t, source, map.weights[t], did)));
  source.words.forEach((word, s) => hear(word, () => light(source, s, target, map.weights.map((row) => row[s]), was)));
  draw();
  clear();

  function hear(word, show) {
    for (const event of ["mouseenter", "focus", "click"]) word.addEventListener(event, show);
    for (const event of ["mouseleave", "blur"]) word.addEventListener(event, clear);
  }

  function light(from, index, to, weights, verb) {
    clear();
    from.words[index].classList.add("chosen");
    weights.forEach((weight, i) => to.words[i].style.setProperty("--weight", weight));
    const best = weights.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w >= 0.05);
    const list = best.map(([weight, i]) => `${to.texts[i]} ${percent(weight)}`).join(", ");
    const sure = from === target && record.probabilities ? ` (written with probability ${percent(record.probabilities[index])})` : "";
    said.textContent = `${from.texts[index]}${sure} ${verb} ${list || "nothing in particular"}`;
    const cells = from === target ? table.querySelectorAll(`[data-t="${index}"]`) : table.querySelectorAll(`[data-s="${index}"]`);
    cells.forEach((cell) => cell.classList.add("lit"));
  }

  function clear() {
    for (const side of [source, target]) {
      for (const word of side.words) { word.classList.remove("chosen"); word.style.removeProperty("--weight"); }
    }
    table.querySelectorAll(".lit").forEach((cell) => cell.classList.remove("lit"));
    const how = matchMedia("(hover: none)").matches ? "Tap a word" : "Point at a word, or go there with Tab";
    said.textContent = `${how}: what it ${did} lights up.`;
  }

  function draw() {
    const grid = element("table", {});
    const head = element("tr", {});
    head.append(element("td", {}), ...record.source.map((text, s) => data(element("th", { textContent: text, scope: "col" }), { s })));
    const top = element("thead", {});
    top.append(head);
    const body = element("tbody", {});
    map.weights.forEach((row, t) => {
      const line = element("tr", {});
      line.append(data(element("th", { textContent: record.target[t], scope: "row" }), { t }));
      row.forEach((weight, s) => {
        const cell = data(element("td", { title: `${record.target[t]} ← ${record.source[s]} ${percent(weight)}` }), { t, s });
        cell.style.setProperty("--weight", weight);
        line.append(cell);
      });
      body.append(line);
    });
    grid.append(top, body);
    table.replaceChildren(grid);
  }
}

function words(texts, side, lang) {
  const line = element("p", { className: "words", dir: "auto", lang });
  line.append(element("span", { className: "side", textContent: side }));
  const buttons = texts.map((text) => element("button", { type: "button", className: "word", textContent: text, dir: "auto" }));
  for (const button of buttons) line.append(button, " ");
  return { line, words: buttons, texts };
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function data(node, values) {
  Object.assign(node.dataset, values);
  return node;
}

function percent(weight) {
  return `${Math.round(100 * weight)} %`;
}
