// A slider and a play button for the steps of decoding.

import { element } from "./elements.js";

const STEP_MILLISECONDS = 1100;
const [PLAY, PAUSE] = ["▶ Play", "❚❚ Pause"];

// Show the controls in `root`, starting at the first step.
//
// count: the number of steps.
// onStep(index): shows a step.
// describe(index): returns a description of a step, for the live region.
// milliseconds: the time of a step.
// Returns { stop(), currentStep() }.
export function showPlayback(root, count, { onStep, describe, milliseconds = STEP_MILLISECONDS }) {
  /** @type {number | undefined} */
  let timer;
  const button = element("button", { type: "button", className: "play-button", textContent: PLAY });
  const slider = element("input", { type: "range", min: 0, max: count - 1, value: 0, ariaLabel: "decoding step" });
  const description = element("p", { className: "step-description", ariaLive: "polite" });
  const currentStep = () => Number(slider.value);
  root.replaceChildren(element("div", { className: "toolbar playback" }, button, slider), description);
  slider.addEventListener("input", () => {
    stop();
    showStep();
  });
  button.addEventListener("click", () => (timer === undefined ? start() : stop()));
  showStep();
  return { stop, currentStep };

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
