// A slider through the steps of writing: the words written so far, what the next one looks at, and the beam as it grows.
//
// showFilm(root, count, { step(index), say(index) }): `step` shows one of `count` steps, `say` tells of it.

import { element } from "./elements.js";

const PAUSE = 1100; // milliseconds a step

export function showFilm(root, count, { step, say }) {
  let timer = null;
  const play = element("button", { type: "button", className: "play", textContent: "▶ Play" });
  const slider = element("input", { type: "range", min: 0, max: count - 1, value: 0, ariaLabel: "decoding step" });
  const told = element("p", { className: "step", ariaLive: "polite" });
  root.replaceChildren(element("div", { className: "bar film" }, play, slider), told);
  slider.addEventListener("input", () => { pause(); show(); });
  play.addEventListener("click", () => (timer === null ? start() : pause()));
  show();
  return { stop: pause, at: () => Number(slider.value) };

  function show() {
    const index = Number(slider.value);
    slider.setAttribute("aria-valuetext", say(index));
    told.textContent = say(index);
    step(index);
  }

  function start() {
    if (Number(slider.value) === count - 1) slider.value = 0;
    play.textContent = "❚❚ Pause";
    show();
    timer = setInterval(() => {
      if (!root.isConnected || Number(slider.value) === count - 1) return pause();
      slider.value = Number(slider.value) + 1;
      return show();
    }, PAUSE);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Play";
  }
}
