// What all views need: elements of pages and of pictures, how figures are written, which way a text runs.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties = {}, ...children) {
  const one = Object.assign(document.createElement(name), properties);
  one.append(...children);
  return one;
}

// An element of a picture.
export function drawn(name, attributes = {}, ...children) {
  const one = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

// A place inside another with styles of its own, which those around it do not touch.
export function shadow(host, style) {
  const root = host.attachShadow({ mode: "open" });
  root.append(element("style", { textContent: style }), element("div"));
  return root.lastChild;
}

// A picture that stands by itself: no style of the page is needed to see it.
export function picture(width, height, paper, ...children) {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  const background = drawn("rect", { width: w, height: h, fill: paper });
  return drawn("svg", { width: w, height: h, viewBox: `0 0 ${w} ${h}`, "font-family": "system-ui, sans-serif" }, background, ...children);
}

export function percent(weight) {
  return weight > 0 && weight < 0.005 ? "< 1 %" : `${Math.round(100 * weight)} %`;
}

// Whether the first letter with a direction runs from right to left.
export function direction(words) {
  const letter = words.join(" ").replace(/<\/?s>|__?\w+__?/g, "").match(/\p{L}/u)?.[0] ?? "";
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u.test(letter) ? "rtl" : "ltr";
}

// A text within a sentence of the page's: what runs the other way does not turn the rest around.
export function isolated(text) {
  return direction([text]) === "rtl" ? `\u2068${text}\u2069` : text;
}

// Shorten a text of a picture until it fits into so many pixels; it has to be in the page, where it can be measured.
export function fit(text, room) {
  const characters = Array.from(text.textContent); // no half of a surrogate pair stays
  while (characters.length > 1 && text.getComputedTextLength() > room) {
    characters.pop();
    text.textContent = `${characters.join("")}…`;
  }
}

// The colours of a place, by the names of the tokens.
export function colours(place, ...names) {
  const style = getComputedStyle(place);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A number with two digits and a minus that is as wide as a plus.
export function signed(value) {
  return value.toFixed(2).replace("-", "\u2212");
}
