// Creates HTML and SVG elements: el("p", { class: "hint", on: { click: onClick } }, "text", child).
//
// properties: attributes by name, and
//   on: event listeners by the type of the event,
//   style: CSS properties by name.
// An attribute that is true is present without a value; one that is false, null or undefined is absent.

export function el(tag, properties = {}, ...children) {
  return configure(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return configure(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function configure(element, { on = {}, style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener);
  element.append(...children);
  return element;
}
