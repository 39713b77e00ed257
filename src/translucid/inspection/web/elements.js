// Creates HTML and SVG elements, and formats the numbers and texts in them.

import { formatNumber, gettext } from "./messages.js";

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
const MARKUP_TOKENS = /<\/?s>|__?\w+__?/g; // special tokens such as </s> and __es__: their letters say nothing about the text

// Create an HTML element with the given DOM properties.
export function element(tag, properties = {}, ...children) {
  const created = Object.assign(document.createElement(tag), properties);
  created.append(...children);
  return created;
}

// Create a bar for a value. Bars of negative values end at a line that marks zero.
//
// className: that of the bar, "bar-fill" and perhaps another one.
// scale: { minimum: at most 0, maximum: at least 0 }, the ends of the track.
export function createBar(className, value, { minimum, maximum }) {
  const fraction = (length) => length / Math.max(maximum - minimum, 1e-9);
  const fill = element("span", { className });
  fill.style.setProperty("--bar-start", fraction(Math.min(0, value) - minimum));
  fill.style.setProperty("--bar-length", fraction(Math.abs(value)));
  const track = element("span", { className: "bar-track" }, fill);
  if (minimum < 0) track.append(element("span", { className: "zero-line" }));
  track.style.setProperty("--zero", fraction(-minimum));
  return track;
}

// Create a switch with an accessible name. onToggle(whether it is on now): the user has clicked it.
export function createSwitch(ariaLabel, isOn, onToggle) {
  const button = element("button", { type: "button", className: "switch", role: "switch", ariaLabel });
  const show = (isNowOn) =>
    Object.assign(button, { ariaChecked: isNowOn, textContent: isNowOn ? gettext("on") : gettext("off") });
  show(isOn);
  button.addEventListener("click", () => {
    const isNowOn = button.ariaChecked !== "true";
    show(isNowOn);
    onToggle(isNowOn);
  });
  return button;
}

export function createRetryButton(onRetry) {
  const button = element("button", { type: "button", textContent: gettext("Try again") });
  button.addEventListener("click", onRetry);
  return button;
}

// Create an SVG element with the given attributes.
export function svgElement(tag, attributes = {}, ...children) {
  const created = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

// Create an SVG image that can be saved as a file, because it does not depend on the style sheets of the page.
export function standaloneSvg(width, height, backgroundColor, ...children) {
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  const attributes = { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": "system-ui, sans-serif" };
  const background = svgElement("rect", { ...size, fill: backgroundColor });
  return svgElement("svg", attributes, background, ...children);
}

// Attach a shadow root with its own styles to a host element, and return the container for its content.
export function createShadowContainer(host, styles) {
  const root = host.attachShadow({ mode: "open" });
  root.append(element("style", { textContent: styles }), element("div"));
  return root.lastChild;
}

// Return the values of CSS custom properties at an element, by their names without "--".
export function themeColors(container, ...names) {
  const style = getComputedStyle(container);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export function formatPercent(fraction) {
  return fraction > 0 && fraction < 0.005 ? `< ${formatNumber(1)} %` : `${formatNumber(Math.round(100 * fraction))} %`;
}

// Format a number with two decimals and a minus sign, which is as wide as a plus.
export function formatSigned(value) {
  return formatNumber(value, 2).replace("-", "\u2212");
}

// Return the writing direction of words, "rtl" or "ltr", by their first letter.
export function textDirection(words) {
  const firstLetter = words.join(" ").replace(MARKUP_TOKENS, "").match(/\p{L}/u)?.[0] ?? "";
  return RIGHT_TO_LEFT.test(firstLetter) ? "rtl" : "ltr";
}

// Isolate right-to-left text, so that it does not reorder the sentence around it.
export function isolateText(text) {
  return textDirection([text]) === "rtl" ? `\u2068${text}\u2069` : text;
}

// Shorten the text of an SVG text element until it fits into `maxWidth` pixels. The element must be in the page to be measured.
export function truncateToWidth(textElement, maxWidth) {
  const characters = Array.from(textElement.textContent); // code points, so that no surrogate pair is split
  while (characters.length > 1 && textElement.getComputedTextLength() > maxWidth) {
    characters.pop();
    textElement.textContent = `${characters.join("")}…`;
  }
}
