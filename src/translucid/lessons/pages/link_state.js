// Keeps in the address what a reader has chosen in the figure and below it, so that the address is a link to what the page shows.
//
// Such as heads.html#sentence=1&all-heads=3&choice=2&open=0: the values of controls of the figure by their data-name, the buttons
// of the figure that are pressed (a mask, for example), the chosen answer, and the opened parts of the page. What is as it was at first
// is left out.

const DELAY_MILLISECONDS = 200; // browsers limit how often an address changes
const CONTROLS = "[data-name]";
const PRESSED = "[aria-pressed]";

// Restore what the address says, and keep the address up to date.
//
// figure: the element of the figure; its forms, in which readers type sentences, are not part of the link
// Returns restore(), which restores again, after the figure has received a sentence from the server.
export function linkState(figure) {
  const first = readState(figure);
  /** @type {number | undefined} */
  let timer;
  restore();
  for (const type of ["input", "change", "click", "toggle"]) document.addEventListener(type, scheduleUpdate, true);
  return restore;

  function scheduleUpdate() {
    clearTimeout(timer);
    timer = setTimeout(update, DELAY_MILLISECONDS);
  }

  function update() {
    const link = new URLSearchParams(location.hash.slice(1));
    const state = readState(figure);
    for (const [name, value] of Object.entries({ ...first, ...state })) {
      const isChanged = name in state && value !== first[name];
      if (isChanged) link.set(name, value);
      else link.delete(name);
    }
    const { typed } = figure.dataset;
    if (typed) link.set("text", typed);
    const isSame = location.hash.slice(1) === String(link) || (!location.hash.includes("=") && !link.size);
    if (!isSame) history.replaceState(null, "", `#${link}`);
  }

  // Controls appear when others change, such as those of a sentence, so each is looked for when it is its turn.
  function restore() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      stateParts(figure)
        .find((part) => part.name === name)
        ?.set(value);
    }
  }
}

function readState(figure) {
  return Object.fromEntries(stateParts(figure).map(({ name, get }) => [name, get()]));
}

// Return the parts of the state: [{ name, get(), set(value) }, …]. Unknown values are ignored.
function stateParts(figure) {
  const parts = [...figure.querySelectorAll(CONTROLS)].map(controlPart);
  const buttons = () => [...figure.querySelectorAll(`button${PRESSED}`)];
  const choices = () => [...document.querySelectorAll(".choices button")];
  const details = () => [...document.querySelectorAll("main details")];
  const isPressed = (button) => button.ariaPressed === "true";
  const click = (button) => button.click();
  const others = [
    { name: "pressed", elements: buttons, isOn: isPressed, change: click },
    { name: "choice", elements: choices, isOn: isPressed, change: click },
    { name: "open", elements: details, isOn: ({ open }) => open, change: (part) => part.toggleAttribute("open") },
  ].map(({ name, elements, isOn, change }) => ({
    name,
    get: () => indices(elements(), isOn),
    set: setter(elements, isOn, change),
  }));
  return [...parts, ...others];
}

// Return the indices of elements that are on, such as "0.3".
function indices(elements, isOn) {
  return elements.flatMap((part, i) => (isOn(part) ? [i] : [])).join(".");
}

// Return a function that changes the elements whose state differs from a list of indices. In a group of which one is always on, only
// the one to choose is changed.
function setter(elements, isOn, change) {
  return (value) => {
    const wanted = new Set(value.split(".").filter(Boolean).map(Number));
    const count = elements().length;
    for (let i = 0; i < count; i += 1) if (wanted.has(i) && !isOn(elements()[i])) change(elements()[i]);
    for (let i = 0; i < count; i += 1) if (!wanted.has(i) && isOn(elements()[i])) change(elements()[i]);
  };
}

function controlPart(control) {
  const { name } = control.dataset;
  if (control instanceof HTMLFieldSetElement) {
    const inputs = [...control.querySelectorAll("input")];
    const set = (value) => {
      const input = inputs[Number(value)];
      if (input && !input.checked) input.click();
    };
    return { name, get: () => String(inputs.findIndex((input) => input.checked)), set };
  }
  const property = control.type === "checkbox" ? "checked" : "value";
  const set = (value) => {
    const previous = control[property];
    control[property] = property === "checked" ? value === "true" : value;
    if (control instanceof HTMLSelectElement && control.selectedIndex < 0) control.value = previous;
    for (const type of ["input", "change"]) control.dispatchEvent(new Event(type, { bubbles: true }));
  };
  return { name, get: () => String(control[property]), set };
}
