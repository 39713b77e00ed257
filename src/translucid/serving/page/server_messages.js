// Messages of the server in the language of the page: warnings, errors, kinds of documents, and places in documents. The API is in
// English; the page recognizes the messages in these tables, and shows others as they are. Tests compare the tables with the code.

import { filled, gettextNoop, LANGUAGE, languageInText, translated } from "./messages.js";
import { escapeRegex } from "./page_elements.js";

const WARNINGS = [
  gettextNoop("capitals: the model has hardly seen words in capitals; lower case may do better"),
  gettextNoop("capitals: the model has hardly seen words that begin with capitals; lower case may do better"),
  gettextNoop("capitals: the model has never seen {letters}"),
  gettextNoop("lower case: the model has never seen {letters}"),
  gettextNoop("copied: most words are those of the source"),
  gettextNoop("detached attention: it is spread over the source (entropy {entropy}, {usual} is usual)"),
  gettextNoop("form of address: formal, not informal"),
  gettextNoop("form of address: informal, not formal"),
  gettextNoop(
    "improbable: the model has hardly learned such sentences (log-probability {value} a token, {usual} in validation)",
  ),
  gettextNoop("invented: {parts}"),
  gettextNoop("length: {length} characters, {limit} at most"),
  gettextNoop("long: {tokens} tokens are more than the model takes ({limit}), translated in pieces"),
  gettextNoop("lost: {parts}"),
  gettextNoop("placed: {parts}"),
  gettextNoop("repeated: {part}"),
  gettextNoop("shortlist: it has no translations of {words}"),
  gettextNoop("term not used: {term}"),
  gettextNoop("too long: 1 word for {source}"),
  gettextNoop("too long: {count} words for {source}"),
  gettextNoop("too short: nothing came out"),
  gettextNoop("too short: 1 sentence for {source}"),
  gettextNoop("too short: {count} sentences for {source}"),
  gettextNoop("too short: 1 word for {source}"),
  gettextNoop("too short: {count} words for {source}"),
  gettextNoop("unknown characters: {characters}"),
  gettextNoop("unknown script: {script}"),
  gettextNoop("unknown words: the training text does not have {words}"),
  gettextNoop("wrong language: the source looks like {language}, not {expected}"),
  gettextNoop("wrong language: the translation looks like {language}, not {expected}"),
];

const ERRORS = [
  gettextNoop("{count} characters exceed the limit of {limit}"),
  gettextNoop("{count} texts exceed the limit of {limit}"),
  gettextNoop("more than {limit} bytes"),
  gettextNoop("more than {limit} requests a minute"),
  gettextNoop("more than {limit} requests a day"),
  gettextNoop("the text is too long for this model"),
  gettextNoop("an API key is needed"),
  gettextNoop("Invalid API key"),
  gettextNoop("too many wrong API keys"),
  gettextNoop("The server is busy, please come again"),
  gettextNoop("The server is busy with large requests, please come again"),
  gettextNoop("The server is busy with live translation, please come again"),
  gettextNoop("The server is shutting down"),
  gettextNoop("The server's disk is full, please come again later"),
  gettextNoop("Internal error; it is in the server's log"),
  gettextNoop("It took more than {seconds} seconds"),
  gettextNoop("It was cancelled"),
  gettextNoop("{language} is not supported"),
  gettextNoop("a sentence had no end after {count} words, and was ended there"),
  gettextNoop("Suggestions are disabled on this server."),
  gettextNoop("No more suggestions are taken: the memory is full"),
  gettextNoop("Too many suggestions are waiting, please come again"),
  gettextNoop("Too many documents are being translated, please come again"),
  gettextNoop("The document is not read yet"),
  gettextNoop("The document is not translated yet"),
  gettextNoop("There is no such file, or not any more"),
  gettextNoop("There is no such segment"),
  gettextNoop("The translation is empty"),
  gettextNoop("{tag} is there twice. Each stands once."),
  gettextNoop("{tag} does not close what was opened last. Put it behind its beginning."),
  gettextNoop("{tag} is missing. Put it where it belongs."),
  gettextNoop("the file has more than {limit} bytes"),
  gettextNoop("{file} is of no kind that is translated here"),
  gettextNoop("{file} is of no kind that is translated here. Save it as {ending}, and translate that."),
  gettextNoop(
    "{file} is of no kind that is translated here. Translate the file that it was exported from; " +
      "or open it in Word, save it as .docx, and translate that.",
  ),
  gettextNoop("{file}: has more than {limit} texts. Split it."),
  gettextNoop("{file}: has more than {limit} MiB. Split it."),
  gettextNoop(
    "{file}: is in a format before 2007, or has a password. Save it again in today's format, without a password.",
  ),
  gettextNoop(
    "{file}: is another kind of document than its name says. Save it again with the program that it is from.",
  ),
];

const KINDS = [
  gettextNoop("SubRip subtitles"),
  gettextNoop("WebVTT subtitles"),
  gettextNoop("text"),
  gettextNoop("OpenDocument text"),
  gettextNoop("OpenDocument spreadsheet"),
  gettextNoop("JSON strings"),
  gettextNoop("YAML strings"),
  gettextNoop("Android strings"),
  gettextNoop(".NET resources"),
  gettextNoop("iOS strings"),
  gettextNoop("Apple string catalogs"),
  gettextNoop("Qt translations"),
  gettextNoop("Java properties"),
  gettextNoop("table"),
];

const PLACES = [
  gettextNoop("line {number}"),
  gettextNoop("paragraph {number}"),
  gettextNoop("text {number}"),
  gettextNoop("picture {number}"),
  gettextNoop("slide {number}"),
  gettextNoop("notes {number}"),
  gettextNoop("master {number}"),
  gettextNoop("layout {number}"),
  gettextNoop("chart {number}"),
  gettextNoop("diagram {number}"),
  gettextNoop("header {number}"),
  gettextNoop("footer {number}"),
  gettextNoop("form {name}"),
  gettextNoop("for {numbers}"),
  gettextNoop("footnotes"),
  gettextNoop("endnotes"),
  gettextNoop("comments"),
  gettextNoop("text box"),
  gettextNoop("headers and footers"),
  gettextNoop("chart"),
  gettextNoop("diagram"),
  gettextNoop("drawing"),
  gettextNoop("note"),
  gettextNoop("message"),
  gettextNoop("list"),
  gettextNoop("list of choices"),
  gettextNoop("image"),
  gettextNoop("title"),
  gettextNoop("description"),
  gettextNoop("subject"),
  gettextNoop("contents"),
  gettextNoop("about the book"),
];
const CODES = ["language", "expected"]; // values that are codes of languages
const patterns = new Map(); // by message

export const translatedWarning = (text) => translatedMessage(text, WARNINGS);

export const translatedError = (text) => translatedMessage(text, ERRORS);

export const translatedKind = (name) => translatedMessage(name, KINDS);

// Return a place, such as "header 1, paragraph 2", in the language of the page.
export function translatedPlace(place) {
  const parts = place.split(", ");
  return parts.map((part) => translatedMessage(part, PLACES)).join(", ");
}

function translatedMessage(text, messages) {
  if (LANGUAGE === "en") return text;
  for (const message of messages) {
    const match = patternOf(message).exec(text);
    if (!match) continue;
    const values = { ...match.groups };
    for (const name of CODES) if (values[name]) values[name] = languageInText(values[name]);
    return filled(translated(message), values);
  }
  return text;
}

// Return the pattern of an English message with values in place of the names in braces.
function patternOf(message) {
  let pattern = patterns.get(message);
  if (!pattern) {
    const parts = message.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? `(?<${part}>.+?)` : escapeRegex(part)));
    pattern = new RegExp(`^${parts.join("")}$`, "s");
    patterns.set(message, pattern);
  }
  return pattern;
}
