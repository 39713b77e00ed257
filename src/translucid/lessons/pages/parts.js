// What the figures are made of: choices, sliders, strips of numbers, bars.
import { el, svg, number } from "./dom.js";
import { roving } from "./roving.js";

let groups = 0;

// One of several, by click or arrow keys. options: [{ label, value, title }]; returns { node, value }.
export function choice(label, options, onChange, { chosen = 0, kind = "choice" } = {}) {
  const name = `choice-${(groups += 1)}`;
  const inputs = options.map((option, i) =>
    el("input", { type: "radio", name, value: i, checked: i === chosen, on: { change: () => onChange(option.value, i) } }),
  );
  const node = el("fieldset", { class: kind }, el("legend", {}, label),
    ...inputs.map((input, i) => el("label", { title: options[i].title }, input, el("span", {}, options[i].label))));
  return { node, get value() { return options[inputs.findIndex((input) => input.checked)].value; } };
}

// A number between two others. show: what stands beside it.
export function slider(label, { min, max, step = 1, value, show = String }, onInput) {
  const output = el("output", {}, show(value));
  const input = el("input", { type: "range", min, max, step, value, "aria-label": label });
  input.setAttribute("aria-valuetext", show(value));
  input.addEventListener("input", () => { told(); onInput(Number(input.value)); });
  const told = () => { output.textContent = show(Number(input.value)); input.setAttribute("aria-valuetext", output.textContent); };
  return { node: el("label", { class: "slider" }, el("span", {}, label), input, output), input,
    get value() { return Number(input.value); }, set value(to) { input.value = to; told(); } };
}

// A vector as a row of cells, blue above zero and orange below; the stronger the further from it.
export function strip(values, top, name, describe = null) {
  const cells = values.map((value, i) => {
    const cell = svg("rect", { x: i, y: 0, width: 1.02, height: 1, class: value < 0 ? "under" : "over", "fill-opacity": Math.min(1, Math.abs(value) / top) });
    cell.append(svg("title", {}, describe ? describe(i) : `${i}: ${number(value)}`));
    return cell;
  });
  return svg("svg", { class: "strip", viewBox: `0 0 ${values.length} 1`, preserveAspectRatio: "none", role: "img", "aria-label": name }, ...cells);
}

// A weight as a bar with its number.
export function bar(weight) {
  return el("span", { class: "bar" }, el("span", { class: "fill", style: { "--w": weight } }), el("span", { class: "amount" }, number(weight)));
}

// A table of weights [row][column], each cell as blue as its weight is large.
export function matrix(rows, columns, cell, corner = "") {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("td", {}, corner), ...columns.map((name) => el("th", { scope: "col" }, el("span", {}, name))))),
    el("tbody", {}, ...rows.map((name, r) => el("tr", {}, el("th", { scope: "row" }, name), ...columns.map((_, c) => cell(r, c))))),
  ));
}

// A table of buttons of which one is pressed. cell(r, c): { text: what stands in it, name: the same in words, weight: −1 to 1 }.
export function picker(rows, columns, cell, chosen, onChoose, corner) {
  const lines = rows.map(() => []);
  const table = matrix(rows, columns, (r, c) => {
    const { text, name, weight } = cell(r, c);
    const button = el("button", { type: "button", "aria-label": name, "aria-pressed": String(r === chosen[0] && c === chosen[1]), on: { click: () => { press(button); onChoose(r, c); } } }, ...text);
    lines[r].push(button);
    return el("td", { class: `weight picked${weight < 0 ? " against" : ""}`, style: { "--w": Math.min(1, Math.abs(weight)) } }, button);
  }, corner);
  roving(lines);
  return table;

  function press(button) {
    for (const one of lines.flat()) one.setAttribute("aria-pressed", String(one === button));
  }
}

export function hint(...text) {
  return el("p", { class: "hint" }, ...text);
}

// How wide a drawing in a place is, in pixels, so that its letters are as large as others.
export function room(place) {
  return Math.min(820, Math.max(300, place.clientWidth || 640));
}

// What has changed, for who can't see it.
export function said() {
  return el("p", { class: "said", "aria-live": "polite" });
}
