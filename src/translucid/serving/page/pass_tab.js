// The tab "Pass": all that the model computes, in this browser, with the module of the web export; see pass.js.

import { element } from "./elements.js";
import { startEngine } from "./engine_client.js";
import { gettext } from "./messages.js";
import { loadStyle } from "./page_elements.js";
import { showPass } from "./pass.js";

const NOTE = gettext(
  "This browser computes the numbers, with weights of 8 bits: they can differ a little from those of other tabs.",
);
const engines = new Map(); // by model and languages

// Fill the tab.
export async function showTab(inspector) {
  const { sentence, server, content, panel } = inspector;
  await loadStyle("pass.css");
  const engine = await inspector.load("engine", () => engineOf(content, server));
  if (!engine) return;
  const isCurrent = inspector.currentState();
  const { ids, isTooLong } = await engine.ask("encode", { text: sentence.source_text });
  if (!isCurrent()) return;
  if (isTooLong) {
    panel.replaceChildren(element("p", { textContent: gettext("The sentence is too long for this model.") }));
    return;
  }
  Object.assign(sentence, { ids, tokens: sentence.record.tokens.flat() });
  const { step = "", point = "" } = server.place;
  const place = { step: Number(step), points: point.split(",").filter(Boolean), onChange };
  await showPass(inspector, engine, place);

  function onChange() {
    Object.assign(server.place, { step: String(place.step), point: place.points.join(",") });
  }
}

// Return what the figure needs of a model, which the server sends once; see pass.js.
async function engineOf({ run, languages }, server) {
  const key = JSON.stringify([run, languages]);
  if (engines.has(key)) return engines.get(key);
  const model = await server.ask("weights", {});
  const [sourcePieces, targetPieces = sourcePieces] = model.tokenizers.map(({ pieces }) => pieces);
  const ask = startEngine(model, () => new Worker("pass_engine.js"));
  engines.set(key, {
    ask,
    options: model.options,
    start: model.search.start,
    sourcePieces,
    targetPieces,
    note: NOTE,
  });
  return engines.get(key);
}
