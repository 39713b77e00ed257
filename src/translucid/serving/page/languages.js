// Languages and models: choosing languages selects a model, and choosing a model selects languages.

import { $, option } from "./asking.js";

export const DETECT = "auto";
const names = new Intl.DisplayNames(["en"], { type: "language" });
const RIGHT_TO_LEFT = ["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"];
let models = [];
let found = null; // the detected language

export function say(code) {
  try { return names.of(code); } catch { return code; }
}

export function direction(code) {
  try { return RIGHT_TO_LEFT.includes(new Intl.Locale(code).maximize().script) ? "rtl" : "ltr"; } catch { return "ltr"; }
}

// Set up; `changed` is called when the user has chosen.
export function startLanguages(all, changed) {
  models = all;
  for (const [i, one] of models.entries()) {
    const side = (codes) => (codes.length === 1 ? codes[0] : `${codes.length} languages`);
    const between = [one.sources, ...(one.pivot ? [[one.pivot]] : []), one.targets].map(side).join(" → ");
    for (const id of ["model", "other"]) $(id).append(option(i, `${one.name} (${between})`));
  }
  choose(models[0].sources[0], null);
  for (const id of ["model", "from", "to", "other"]) {
    $(id).addEventListener("change", () => {
      if (id === "from") found = null;
      if (id === "model") choose($("from").value, $("to").value, model());
      else choose($("from").value, $("to").value);
      changed();
    });
  }
  $("tucked").hidden = models.length < 2;
  document.addEventListener("pointerdown", ({ target }) => { if (!$("tucked").contains(target)) $("tucked").open = false; });
  $("tucked").addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && $("tucked").open) { $("tucked").open = false; $("tucked").firstElementChild.focus(); }
  });
}

function model() {
  return models[Number($("model").value)];
}

// Whether a model has several language pairs, so that requests must name them.
function isMany({ sources, targets }) {
  return sources.length * targets.length > 1;
}

// A model for languages that are not those chosen.
export function named(name, source, target) {
  return { name, source, target, many: isMany(models.find((one) => one.name === name)) };
}

function can({ sources, targets }, source, target) {
  return sources.includes(source) && targets.includes(target) && (source !== target || targets.length === 1);
}

function unique(codes) {
  return [...new Set(codes)];
}

// Choose the available languages nearest to those wanted, and a model for them, or `fixed` if given.
function choose(wanted, into, fixed = null) {
  const of = fixed ? [fixed] : models;
  const sources = unique(of.flatMap((one) => one.sources));
  const auto = wanted === DETECT && sources.length > 1;
  const source = auto ? (sources.includes(found) ? found : sources[0]) : sources.includes(wanted) ? wanted : sources[0];
  const reachable = unique(of.flatMap((one) => one.targets.filter((code) => can(one, source, code))));
  const target = reachable.includes(into) ? into : reachable[0];
  // A model that has the pair itself precedes two models with a pivot language, which come last.
  const preferred = fixed ?? (model()?.pivot ? null : model());
  const chosen = [preferred, ...models].find((one) => one && can(one, source, target));
  $("model").value = models.indexOf(chosen);
  const every = unique(models.flatMap((one) => one.sources));
  const targets = unique(models.flatMap((one) => one.targets.filter((code) => can(one, source, code))));
  fill("from", every, auto ? DETECT : source, every.length > 1);
  fill("to", targets, target, false);
  show();
}

function fill(id, codes, chosen, detect) {
  const sorted = codes.map((code) => [say(code), code]).sort(([a], [b]) => a.localeCompare(b, "en"));
  const first = detect ? [option(DETECT, found && chosen === DETECT ? `${say(found)} (detected)` : "Detect language")] : [];
  $(id).replaceChildren(...first, ...sorted.map(([text, code]) => option(code, text)));
  $(id).value = chosen;
  $(id).hidden = codes.length < 2;
}

// The chosen model and languages; `many`: whether the model has others, so that requests must name them.
export function first() {
  const { name, sources, pivot } = model();
  const source = $("from").value === DETECT ? (found ?? sources[0]) : $("from").value;
  return { name, source, target: $("to").value, many: isMany(model()), pivot };
}

// The model to compare with, for the same languages or the nearest it has; null if none is chosen.
export function second() {
  if ($("other").value === "") return null;
  const { name, sources, targets } = models[Number($("other").value)];
  const one = first();
  const source = sources.includes(one.source) ? one.source : sources[0];
  const target = targets.includes(one.target) ? one.target : targets.find((code) => code !== source) ?? targets[0];
  return named(name, source, target);
}

// Whether to detect the language.
export function detecting() {
  return $("from").value === DETECT;
}

// Use the most probable detected language that some model translates from.
export function take(detected) {
  const known = ({ language, confidence }) => confidence > 0 && models.some((one) => one.sources.includes(language));
  found = detected.find(known)?.language ?? null;
  choose(DETECT, $("to").value);
}

// Restore the choice of a link or of the history, as far as it is available.
export function restore({ from, to, model: name }) {
  const chosen = models.find((one) => one.name === name && can(one, from, to));
  found = null;
  choose(from, to, chosen ?? null);
}

// Whether a model translates in the opposite direction.
export function reversible() {
  const { source, target } = first();
  return models.some((one) => can(one, target, source));
}

export function reverse() {
  const { source, target } = first();
  found = null;
  choose(target, source);
}

// Show the languages and set their writing directions; when comparing, show the models' names.
export function show() {
  const [one, other] = [first(), second()];
  $("source-language").textContent = say(one.source);
  $("target-language").textContent = say(one.target);
  for (const [label, id] of [["source-language", "from"], ["target-language", "to"]]) {
    $(label).classList.toggle("unseen", !$(id).hidden);
  }
  $("model-name").textContent = one.name;
  $("swap").disabled = !reversible();
  $("detected").textContent = detecting() && found ? `detected: ${say(found)}` : "";
  for (const [id, pane, code] of [["source", "source-pane", one.source], ["translation", "target-pane", one.target]]) {
    $(id).lang = code;
    $(pane).dir = direction(code);
  }
  $("translation-name").hidden = !other;
  if (!other) return;
  $("translation-name").textContent = `${say(one.target)} (${one.name})`;
  $("compared-name").textContent = `${say(other.target)} (${other.name})`;
  $("compared-translation").lang = other.target;
  $("compared").dir = direction(other.target);
}
