// Lesson 6: every head as a small picture; one of them large, and what the model does without it.
import { el, svg, number, percent, shown } from "./dom.js";
import { choice, hint } from "./parts.js";
import { showRibbons } from "./ribbons.js";

const KINDS = [
  { label: "translation to source", value: ["decoder", "cross"] },
  { label: "source to itself", value: ["encoder", "self"] },
  { label: "translation to itself", value: ["decoder", "self"] },
];

export function heads(root) {
  let [sentence, chosen] = [null, 0];
  const kinds = choice("attention", KINDS, () => { chosen = 0; begin(); });
  const all = el("div", {});
  const one = el("div", { class: "seen" });
  const lost = el("div", {});
  root.append(kinds.node, all, one, el("h3", {}, "Without this head"), lost);
  return (given) => { sentence = given; begin(); };

  function listed() {
    const [side, kind] = kinds.value;
    const names = Object.keys(sentence.maps).filter((name) => name.startsWith(`${side}.`) && name.endsWith(`.${kind}`));
    return names.flatMap((name) => sentence.maps[name].map((weights, head) => ({ name, head, weights, layer: name.split(".")[1] })));
  }

  function begin() {
    const found = listed();
    const small = choice("all heads", found.map((each, i) => ({ label: thumbnail(each.weights), value: i, title: `layer ${each.layer}, head ${each.head}` })), (i) => { chosen = i; draw(); }, { chosen, kind: "thumbnails" });
    small.node.querySelectorAll("label").forEach((label, i) => label.append(el("small", {}, `${found[i].layer}.${found[i].head}`)));
    small.node.style.setProperty("--heads", found.filter((each) => each.name === found[0].name).length);
    all.replaceChildren(small.node);
    draw();
  }

  function draw() {
    const { name, head, weights } = listed()[chosen];
    const [side, kind] = kinds.value;
    const rows = side === "encoder" ? sentence.source : sentence.target;
    const columns = kind === "cross" || side === "encoder" ? sentence.source : sentence.fed;
    showRibbons(one, { above: columns.map(shown), below: rows.map(shown), weights, probabilities: null, verbs: ["attends to", "is attended to by"] });
    const without = sentence.without[name][head];
    const cost = sentence.probabilities.reduce((sum, p, t) => sum + Math.log(Math.max(p, 1e-4)) - Math.log(Math.max(without[t], 1e-4)), 0);
    lost.replaceChildren(el("div", { class: "lost", role: "table", "aria-label": "probabilities without this head" },
      el("div", { role: "row", class: "head" }, ...["piece", "all heads", "without this head"].map((text) => el("span", { role: "columnheader" }, text))),
      ...sentence.target.map((piece, t) => el("div", { role: "row", class: without[t] < sentence.probabilities[t] / 2 ? "hurt" : "" }, el("span", { role: "rowheader", class: "name" }, shown(piece)),
        el("span", { role: "cell", class: "amount" }, percent(sentence.probabilities[t], 1)), el("span", { role: "cell", class: "amount" }, percent(without[t], 1))))),
      hint(`Forced decoding of the same translation with this head's context set to 0. The translation loses ${number(cost)} nats of log-probability.`));
  }
}

function thumbnail(weights) {
  return svg("svg", { viewBox: `0 0 ${weights[0].length} ${weights.length}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...weights.flatMap((row, r) => row.map((w, c) => svg("rect", { x: c, y: r, width: 1.02, height: 1.02, "fill-opacity": w }))));
}
