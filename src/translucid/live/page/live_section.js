// Live translation: a text is typed or played word by word, and words are written as soon as the policy allows.

import { showKeyError, withApiKey } from "./api_key.js";
import { element } from "./elements.js";
import { showExportMenu } from "./export_menu.js";
import { formalityField, selectedModel } from "./languages.js";
import { LiveConnection } from "./live_connection.js";
import { formatNumber, gettext, languageName, ngettext } from "./messages.js";
import { loadStyle, option } from "./page_elements.js";
import { pythonString } from "./python_code.js";
import { WORD_MILLISECONDS } from "./recording.js";
import { asSentence, readResponse } from "./requests.js";
import { translatedWarning } from "./server_messages.js";
import { averageLagging, Staircase, UNSPACED } from "./staircase.js";
import { copyToClipboard } from "./storage.js";

const POLICIES = {
  alignatt: gettext("AlignAtt: where it attends most"),
  edatt: gettext("EDAtt: how much it attends there"),
  "wait-k": gettext("wait-k: count words"),
  agreement: gettext("local agreement"),
  whole: gettext("whole sentence"),
};
const PLAY = `▶ ${gettext("Play")}`;
const [DEFAULT_LAG, MAX_LAG] = [2, 8]; // words
const MESSAGE_DURATION = 1500; // milliseconds
// The rest of a text that may still be changed: a word that no space follows. In scripts without spaces, a character is a word.
const UNFINISHED = new RegExp(`[^\\s${UNSPACED}]*$`, "u");
const WORDS = new RegExp(`[${UNSPACED}]\\s*|[^\\s${UNSPACED}]+\\s*`, "gu");

// Set up the section in `root`.
export async function initSection(root, settings) {
  await Promise.all(["staircase.css", "live_section.css"].map(loadStyle));
  root.replaceChildren();
  new LiveSection(root, settings);
}

class LiveSection {
  constructor(root, settings) {
    this.settings = settings;
    this.connection = null; // of the current session
    this.heard = ""; // the text that the session has heard
    this.isFinished = false; // whether its end was sent
    this.hasFailed = false;
    this.player = null; // the timer of a text that is played
    this.notPlayed = []; // its words that have not been played yet
    this.sentences = []; // of the session's record
    this.shown = -1; // the index of the sentence whose staircase is shown
    this.staircase = null;
    this.createElements(root);
    this.addListeners();
    this.loadExamples();
  }

  createElements(root) {
    this.text = element("textarea", {
      id: "live-text",
      dir: "auto",
      spellcheck: false,
      placeholder: gettext("Type or paste"),
    });
    this.play = element("button", { type: "button", className: "quiet", textContent: PLAY });
    this.play.title = gettext("Play the text at speaking pace");
    this.finish = element("button", {
      type: "button",
      className: "quiet",
      textContent: gettext("End the sentence"),
      disabled: true,
    });
    this.finish.title = gettext("Write the rest (Ctrl Enter)");
    this.clear = element("button", {
      type: "button",
      className: "quiet",
      textContent: gettext("Clear"),
      disabled: true,
    });
    // Text is only added to the log, so that each word is read aloud once.
    this.output = element("div", {
      className: "live-output",
      dir: "auto",
      tabIndex: 0,
      ariaLabel: gettext("Translation"),
    });
    for (const [name, value] of [
      ["role", "log"],
      ["aria-live", "polite"],
      ["aria-relevant", "additions"],
    ]) {
      this.output.setAttribute(name, value);
    }
    this.copy = element("button", { type: "button", className: "quiet", textContent: gettext("Copy"), disabled: true });
    this.status = element("span", { className: "hint" });
    this.status.setAttribute("role", "status");
    this.note = element("p", { className: "hint" }); // what the user should know, such as that a sentence was too long
    this.note.setAttribute("role", "status");
    this.lagging = element("span", { className: "hint end" });
    this.problem = element("p", { className: "problem" });
    this.problem.setAttribute("role", "alert");
    this.policy = element("select", {}, ...Object.entries(POLICIES).map(([name, label]) => option(name, label)));
    this.lag = element("input", { type: "range", min: 0, max: MAX_LAG, value: DEFAULT_LAG });
    this.lagText = element("output", {});
    this.examples = element("ul", { className: "live-examples", ariaLabel: gettext("Examples") });
    this.previous = element("button", { type: "button", textContent: "‹", ariaLabel: gettext("previous sentence") });
    this.next = element("button", { type: "button", textContent: "›", ariaLabel: gettext("next sentence") });
    this.place = element("span", { className: "place" });
    this.pager = element("div", { className: "toolbar" }, this.previous, this.place, this.next);
    this.figureRoot = element("div", {});
    this.exportMenu = element("div", { className: "export-menu" });
    this.figure = element("section", {
      className: "inspector",
      ariaLabel: gettext("Attention of each decision"),
      hidden: true,
    });
    this.step = element("p", { className: "note" }); // which of two models is shown
    this.figure.append(this.step, this.pager, this.figureRoot, this.exportMenu);
    const footer = (...children) => element("div", { className: "pane-footer" }, ...children);
    const label = element("label", {
      className: "visually-hidden",
      htmlFor: "live-text",
      textContent: gettext("Text"),
    });
    root.append(
      element(
        "div",
        { className: "panes" },
        element("div", { className: "pane" }, label, this.text, footer(this.play, this.finish, this.clear)),
        element("div", { className: "pane" }, this.output, footer(this.copy, this.status, this.lagging)),
      ),
      element(
        "div",
        { className: "bar live-controls" },
        element("label", {}, `${gettext("Policy")} `, this.policy),
        element("label", {}, `${gettext("Lag")} `, this.lag, this.lagText),
      ),
      this.problem,
      this.note,
      this.examples,
      this.figure,
    );
    this.showLag();
  }

  addListeners() {
    this.text.addEventListener("input", (/** @type {any} */ event) => {
      this.stopPlaying();
      if (!event.isComposing) this.hear(); // an input method has not chosen its characters yet
    });
    this.text.addEventListener("compositionend", () => this.hear());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.end();
    });
    this.play.addEventListener("click", () => (this.player ? this.stopPlaying() : this.startPlaying()));
    this.finish.addEventListener("click", () => this.end());
    this.clear.addEventListener("click", () => {
      this.stopPlaying();
      this.text.value = "";
      this.restart();
      this.text.focus();
    });
    this.previous.addEventListener("click", () => this.showSentence(this.shown - 1));
    this.next.addEventListener("click", () => this.showSentence(this.shown + 1));
    this.copy.addEventListener("click", () => this.copyTranslation());
    this.policy.addEventListener("change", () => this.restart());
    this.lag.addEventListener("input", () => this.showLag());
    this.lag.addEventListener("change", () => this.restart());
    // Another model, or other languages.
    const languages = document.getElementById("language-bar");
    languages?.addEventListener("change", () => this.changeModel());
    document.getElementById("swap")?.addEventListener("click", () => {
      this.stopPlaying();
      if (this.output.textContent) this.text.value = this.output.textContent;
      this.changeModel();
    });
  }

  changeModel() {
    this.stopPlaying();
    this.showExamples();
    this.restart();
  }

  showLag() {
    const count = Number(this.lag.value);
    this.lagText.textContent = ngettext("{count} word", "{count} words", count);
    this.lag.disabled = this.policy.value === "whole";
  }

  // Send what has been typed and can't change any more. If words that were heard have changed, begin again.
  hear() {
    const { value } = this.text;
    const ready = value.replace(UNFINISHED, "");
    if (this.hasFailed && ready !== value) return; // try again after a word, not after each key
    const more = value.slice(this.heard.length);
    const continuesLastWord = this.isFinished && /^\S/.test(more);
    if (this.hasFailed || continuesLastWord || !value.startsWith(this.heard)) this.reset();
    if (more.trim()) this.isFinished = false;
    this.send(ready);
    this.updateButtons();
  }

  // Translate the whole text in a new session.
  restart() {
    const wasFinished = this.isFinished;
    const { heard } = this;
    this.showLag();
    this.reset();
    const { value } = this.text;
    if (wasFinished && value === heard) this.end();
    else this.send(this.player ? heard : value.replace(UNFINISHED, ""));
    this.updateButtons();
  }

  // End the session, and remove what it wrote.
  reset() {
    this.connection?.close();
    this.connection = null;
    this.heard = "";
    this.isFinished = false;
    this.hasFailed = false;
    this.sentences = [];
    this.shown = -1;
    this.staircase = null;
    this.output.replaceChildren();
    this.figure.hidden = true;
    this.lagging.textContent = "";
    this.problem.textContent = "";
    this.note.textContent = "";
    this.status.textContent = "";
    this.updateButtons();
  }

  // Let the session hear a text, which begins with what it has heard already.
  send(text) {
    const more = text.slice(this.heard.length);
    if (!more.trim()) return;
    this.heard = text;
    this.connected().read(more);
  }

  connected() {
    if (!this.connection) {
      const { name, source, target } = selectedModel();
      const decisions = { policy: this.policy.value, lag: Number(this.lag.value) };
      const options = { model: name, source, target, ...decisions, ...formalityField(name, target) };
      const handlers = {
        onText: (text, messages) => this.write(text, messages),
        onRecord: (record) => this.showRecord(record),
        onProblem: (message) => this.fail(message),
      };
      this.connection = new LiveConnection(withApiKey(options), handlers, this.settings.charLimit);
    }
    return this.connection;
  }

  // Hear the rest of the text, and end the sentence.
  end() {
    this.stopPlaying();
    const text = this.text.value;
    if (!text.trim()) return;
    if (this.hasFailed || !text.startsWith(this.heard)) this.reset();
    this.send(text);
    this.connection?.finish();
    this.isFinished = true;
    this.updateButtons();
  }

  fail(message) {
    this.stopPlaying();
    this.connection = null;
    this.hasFailed = true; // the next change of the text begins again
    this.problem.textContent = showKeyError(message)
      ? gettext("The server requires an API key: see above.")
      : asSentence(message);
  }

  // Append what was written; it never changes.
  write(text, messages) {
    if (messages.length) {
      this.note.textContent = messages.map((message) => asSentence(translatedWarning(message))).join(" ");
    }
    if (!text) return;
    this.output.append(element("span", { textContent: text }));
    this.output.scrollTop = this.output.scrollHeight;
    this.output.lang = selectedModel().target;
    this.updateButtons();
  }

  updateButtons() {
    const isEmpty = !this.text.value;
    this.clear.disabled = isEmpty;
    this.finish.disabled = !this.text.value.trim() || this.isFinished;
    this.copy.disabled = !this.output.textContent;
    this.examples.hidden = !isEmpty;
  }

  async copyTranslation() {
    const copied = await copyToClipboard(this.output.textContent);
    this.status.textContent = copied ? gettext("Copied") : gettext("This browser does not allow the page to copy.");
    setTimeout(() => {
      this.status.textContent = "";
    }, MESSAGE_DURATION);
  }

  // Play the text, or the first example, word by word from the beginning.
  startPlaying(text = this.text.value.trim() || this.exampleTexts()[0] || "") {
    if (!text) {
      this.text.focus();
      return;
    }
    this.reset();
    this.text.value = "";
    const words = text.match(WORDS) ?? [];
    this.notPlayed = words;
    const next = () => {
      const word = words.shift();
      if (word === undefined) {
        this.end();
        return;
      }
      this.text.value += word;
      this.text.scrollTop = this.text.scrollHeight;
      this.send(this.text.value.replace(words.length ? UNFINISHED : "", ""));
      this.updateButtons();
    };
    this.player = setInterval(next, WORD_MILLISECONDS);
    this.play.textContent = `❚❚ ${gettext("Stop")}`;
    next();
  }

  // Stop; the text is complete again, but the session has not heard the rest.
  stopPlaying() {
    if (!this.player) return;
    clearInterval(this.player);
    this.player = null;
    this.text.value += this.notPlayed.join("");
    this.play.textContent = PLAY;
  }

  async loadExamples() {
    try {
      this.allExamples = await readResponse(fetch("examples"));
    } catch {
      this.allExamples = {}; // the section works without examples
    }
    this.showExamples();
  }

  exampleTexts() {
    const { name } = selectedModel();
    return this.allExamples?.[name] ?? [];
  }

  showExamples() {
    const buttons = this.exampleTexts().map((text) => {
      const button = element("button", { type: "button", textContent: `▶ ${text}`, lang: selectedModel().source });
      button.addEventListener("click", () => {
        this.stopPlaying();
        this.startPlaying(text);
      });
      return element("li", {}, button);
    });
    this.examples.replaceChildren(...buttons);
  }

  // Show the decisions so far. `record` is that of the session, which docs/live.md describes.
  showRecord(record) {
    const showsLast = this.shown === this.sentences.length - 1;
    this.record = record;
    this.sentences = record.sentences.filter(({ source }) => source.length);
    this.figure.hidden = !this.sentences.length;
    if (this.figure.hidden) return;
    if (showsLast) this.showSentence(this.sentences.length - 1);
    else this.showSentence(this.shown);
    const lags = this.sentences.filter(({ ended }) => ended).map(averageLagging);
    const defined = lags.filter((lag) => lag !== null);
    const mean = defined.reduce((sum, lag) => sum + lag, 0) / defined.length;
    this.lagging.textContent = defined.length
      ? gettext("Average lagging: {count} words", { count: formatNumber(mean, 1) })
      : "";
  }

  // Show the staircase of a sentence, or what is new in it.
  showSentence(index) {
    const { record, sentences } = this;
    if (this.shown !== index) {
      this.shown = index;
      this.staircase = new Staircase(this.figureRoot, record);
      this.showExports();
    }
    this.staircase?.update(sentences[index]);
    this.staircase?.showLatest();
    this.pager.hidden = sentences.length < 2;
    this.place.textContent = gettext("Sentence {number} of {total}", { number: index + 1, total: sentences.length });
    this.previous.disabled = index === 0;
    this.next.disabled = index === sentences.length - 1;
    const [from, to] = record.languages.map(languageName);
    this.step.textContent = record.pivot ? gettext("The second step, from {from} to {to}", { from, to }) : "";
  }

  showExports() {
    showExportMenu(this.exportMenu, {
      name: "live-translation",
      svg: () => this.staircase?.svg(),
      data: () => this.record,
      html: () => recordingPage(this.record),
      code: () => pythonCode(this.record, this.heard, this.isFinished),
    });
  }
}

// Return a page in one file, which plays the session again.
async function recordingPage(record) {
  const template = await (await fetch("recording.html")).text();
  const page = new DOMParser().parseFromString(template, "text/html");
  page.title = record.sentences.map(({ text }) => text).join(" ") || page.title;
  // "</script>" in a text would end the script.
  /** @type {HTMLElement} */ (page.getElementById("record")).textContent = JSON.stringify(record).replaceAll(
    "<",
    "\\u003c",
  );
  return new Blob([`<!doctype html>\n${page.documentElement.outerHTML}`], { type: "text/html" });
}

function pythonCode({ model, languages, policy, lag }, heard, isFinished) {
  const pair = languages.map(pythonString);
  return [
    "from translucid import Translator",
    "",
    `translator = Translator.load(${pythonString(`runs/${model}`)}, source=${pair[0]}, target=${pair[1]})`,
    `session = translator.live(${pythonString(policy)}, lag=${lag})`,
    `print(session.read(${pythonString(heard)}))`,
    ...(isFinished ? ["print(session.finish())"] : []),
    "session.record",
  ].join("\n");
}
