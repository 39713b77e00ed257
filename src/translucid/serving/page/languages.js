// The selection of languages and models: choosing languages selects a model, and choosing a model selects languages.

import { directionOf, gettext, LANGUAGE, languageName, ngettext } from "./messages.js";
import { $, option } from "./page_elements.js";

export const DETECT = "auto"; // in place of a source language
let models = [];
let detectedLanguage = null;

// Set up with all translation models; `onChange` is called when the user has changed the selection.
export function initLanguages(allModels, onChange) {
  models = allModels;
  for (const [i, model] of models.entries()) {
    for (const menu of [$("model"), $("compared-model")]) menu.append(option(i, modelLabel(model)));
  }
  select(models[0].sources[0], null);
  for (const menu of [$("model"), $("from"), $("to"), $("compared-model")]) {
    menu.addEventListener("change", () => {
      if (menu === $("from")) detectedLanguage = null;
      select($("from").value, $("to").value, menu === $("model") ? currentModel() : null);
      onChange();
    });
  }
  $("formality").addEventListener("change", onChange);
  initModelMenu();
}

function modelLabel({ name, sources, pivot, targets }) {
  const describe = (codes) =>
    codes.length === 1 ? codes[0] : ngettext("{count} language", "{count} languages", codes.length);
  const route = [sources, ...(pivot ? [[pivot]] : []), targets];
  return `${name} (${route.map(describe).join(" → ")})`;
}

function initModelMenu() {
  const menu = $("model-menu");
  menu.hidden = models.length < 2;
  document.addEventListener("pointerdown", ({ target }) => {
    if (!menu.contains(/** @type {Node?} */ (target))) menu.open = false;
  });
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
}

function currentModel() {
  return models[Number($("model").value)];
}

function hasManyPairs({ sources, targets }) {
  return sources.length * targets.length > 1;
}

// Return a model with languages, in the form of `selectedModel`.
export function modelFor(name, source, target) {
  const model = models.find((candidate) => candidate.name === name);
  const { commit, tabs, parts } = model;
  return { name, source, target, hasManyPairs: hasManyPairs(model), commit, tabs, parts };
}

function canTranslate({ sources, targets }, source, target) {
  return sources.includes(source) && targets.includes(target) && (source !== target || targets.length === 1);
}

function unique(codes) {
  return [...new Set(codes)];
}

function reachableTargets(someModels, source) {
  return unique(someModels.flatMap((model) => model.targets.filter((code) => canTranslate(model, source, code))));
}

// Select the available languages nearest to those wanted, and a model for them, or `requiredModel` if given.
function select(wantedSource, wantedTarget, requiredModel = null) {
  const candidates = requiredModel ? [requiredModel] : models;
  const sources = unique(candidates.flatMap((model) => model.sources));
  const isAutomatic = wantedSource === DETECT && sources.length > 1;
  const preferredSource = isAutomatic ? detectedLanguage : wantedSource;
  const source = sources.includes(preferredSource) ? preferredSource : sources[0];
  const targets = reachableTargets(candidates, source);
  const target = targets.includes(wantedTarget) ? wantedTarget : targets[0];
  // A model that has the pair itself precedes two models with a pivot language, which come last.
  const preferredModel = requiredModel ?? (currentModel()?.pivot ? null : currentModel());
  const model = [preferredModel, ...models].find((candidate) => candidate && canTranslate(candidate, source, target));
  $("model").value = String(models.indexOf(model));
  const allSources = unique(models.flatMap((candidate) => candidate.sources));
  fillSelect("from", allSources, isAutomatic ? DETECT : source, allSources.length > 1);
  fillSelect("to", reachableTargets(models, source), target, false);
  renderLanguages();
}

function fillSelect(id, codes, selected, canDetect) {
  const sorted = codes.map((code) => [languageName(code), code]).sort(([a], [b]) => a.localeCompare(b, LANGUAGE));
  const options = sorted.map(([name, code]) => option(code, name));
  if (canDetect) {
    const isDetected = detectedLanguage && selected === DETECT;
    options.unshift(
      option(
        DETECT,
        isDetected
          ? gettext("{language} (detected)", { language: languageName(detectedLanguage) })
          : gettext("Detect language"),
      ),
    );
  }
  $(id).replaceChildren(...options);
  $(id).value = selected;
  $(id).hidden = codes.length < 2;
}

// Return the selected model with languages, { name, source, target, hasManyPairs, pivot, commit, tabs, parts }.
export function selectedModel() {
  const model = currentModel();
  const { name, sources, pivot, commit, tabs, parts } = model;
  const source = isDetecting() ? (detectedLanguage ?? sources[0]) : $("from").value;
  return { name, source, target: $("to").value, hasManyPairs: hasManyPairs(model), pivot, commit, tabs, parts };
}

// Return the model to compare with, for the selected languages or the nearest that it has; null if none is selected.
export function comparedModel() {
  if ($("compared-model").value === "") return null;
  const { name, sources, targets } = models[Number($("compared-model").value)];
  const selected = selectedModel();
  const source = sources.includes(selected.source) ? selected.source : sources[0];
  const otherTarget = targets.find((code) => code !== source) ?? targets[0];
  const target = targets.includes(selected.target) ? selected.target : otherTarget;
  return modelFor(name, source, target);
}

// Return the field of a request with the selected form of address; none if the model of this name lacks a choice of it.
export function formalityField(name, target) {
  const formality = $("formality").value;
  const model = models.find((candidate) => candidate.name === name);
  return formality && model?.formality?.includes(target) ? { formality } : {};
}

// Return whether the source language is to be detected.
export function isDetecting() {
  return $("from").value === DETECT;
}

// Select the most probable of the detected languages [{ language, confidence }, …] that a model can translate.
export function applyDetection(detections) {
  const isUsable = ({ language, confidence }) =>
    confidence > 0 && models.some(({ sources }) => sources.includes(language));
  detectedLanguage = detections.find(isUsable)?.language ?? null;
  select(DETECT, $("to").value);
}

// Restore the selection of a link or of the history, as far as it is available.
export function restoreSelection({ from, to, model: name, formality = "" }) {
  const model = models.find((candidate) => candidate.name === name && canTranslate(candidate, from, to));
  detectedLanguage = null;
  $("formality").value = ["formal", "informal"].includes(formality) ? formality : "";
  select(from, to, model ?? null);
}

// Return whether a model translates in the opposite direction.
export function canSwap() {
  const { source, target } = selectedModel();
  return models.some((model) => canTranslate(model, target, source));
}

// Select the opposite direction.
export function swapLanguages() {
  const { source, target } = selectedModel();
  detectedLanguage = null;
  select(target, source);
}

// Show the languages and set their writing directions; when comparing, show the models' names.
export function renderLanguages() {
  const [selected, compared] = [selectedModel(), comparedModel()];
  $("source-language").textContent = languageName(selected.source);
  $("target-language").textContent = languageName(selected.target);
  $("source-language").classList.toggle("visually-hidden", !$("from").hidden);
  $("target-language").classList.toggle("visually-hidden", !$("to").hidden);
  $("model-name").textContent = selected.name;
  $("swap").disabled = !canSwap();
  $("formality").hidden = !currentModel().formality?.includes(selected.target);
  $("detected-language").textContent =
    isDetecting() && detectedLanguage
      ? gettext("detected: {language}", { language: languageName(detectedLanguage) })
      : "";
  for (const [id, pane, code] of [
    ["source", "source-pane", selected.source],
    ["translation", "target-pane", selected.target],
  ]) {
    $(id).lang = code;
    $(pane).dir = directionOf(code);
  }
  $("translation-heading").hidden = !compared;
  if (!compared) return;
  $("translation-heading").textContent = `${languageName(selected.target)} (${selected.name})`;
  $("compared-heading").textContent = `${languageName(compared.target)} (${compared.name})`;
  $("compared-translation").lang = compared.target;
  $("comparison").dir = directionOf(compared.target);
}
