// Making elements: el("p", { class: "said", on: { click } }, "text", child), and the same for SVG.

export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function filled(node, { on = {}, style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  for (const [event, hear] of Object.entries(on)) node.addEventListener(event, hear);
  node.append(...children);
  return node;
}

// A piece of a word as a reader wants it: pieces that go on with a word begin with a dot.
export function shown(piece) {
  if (piece.startsWith("▁")) return piece.slice(1) || "␣";
  return piece.startsWith("<") ? piece : `·${piece}`;
}

// A number with a real minus sign.
export function number(value, digits = 2) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

export function percent(value, digits = 0) {
  return `${number(100 * value, digits)} %`;
}
