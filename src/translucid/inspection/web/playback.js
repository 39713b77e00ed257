// A slider and a play button for the steps of decoding.

import { element } from "./elements.js";
import { gettext } from "./messages.js";

const STEP_MILLISECONDS = 1100;
const [PLAY, PAUSE] = [`▶ ${gettext("Play")}`, `❚❚ ${gettext("Pause")}`];

// Show the controls in `root`, starting at a step.
//
// count: the number of steps.
// onStep(index): shows a step.
// describe(index): returns a description of a step, for the live region.
// milliseconds: the time of a step.
// first: the index of the step, the first one if not given.
// Returns { stop(), currentStep(), show(index) }.
export function showPlayback(root, count, { onStep, describe, milliseconds = STEP_MILLISECONDS, first = 0 }) {
  /** @type {number | undefined} */
  let timer;
  const button = element("button", { type: "button", className: "play-button", textContent: PLAY });
  const slider = element("input", {
    type: "range",
    min: 0,
    max: count - 1,
    value: first,
    ariaLabel: gettext("decoding step"),
  });
  const description = element("p", { className: "step-description", ariaLive: "polite" });
  const currentStep = () => Number(slider.value);
  root.replaceChildren(element("div", { className: "toolbar playback" }, button, slider), description);
  slider.addEventListener("input", () => {
    stop();
    showStep();
  });
  button.addEventListener("click", () => (timer === undefined ? start() : stop()));
  showStep();
  return { stop, currentStep, show };

  function show(index) {
    stop();
    slider.value = index;
    showStep();
  }

  function showStep() {
    const text = describe(currentStep());
    slider.setAttribute("aria-valuetext", text);
    description.textContent = text;
    onStep(currentStep());
  }

  function start() {
    if (currentStep() === count - 1) slider.value = 0;
    button.textContent = PAUSE;
    showStep();
    timer = setInterval(advance, milliseconds);
  }

  function advance() {
    if (!root.isConnected || currentStep() === count - 1) {
      stop();
      return;
    }
    slider.value = currentStep() + 1;
    showStep();
  }

  function stop() {
    clearInterval(timer);
    timer = undefined;
    button.textContent = PLAY;
  }
}
