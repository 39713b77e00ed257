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
  gettextNoop(
    "both sentences have the same translation. Give two words: one of the translation, and one in its place.",
  ),
  gettextNoop("the vocabulary lacks characters of {word}. Choose another word."),
  gettextNoop("the translation lacks the word {word}. Choose a word of {translation}."),
  gettextNoop(
    "the sentences have different numbers of words: {words} is to be paired with {others}. Give pairs of words as 0-0 1-2 with `pairs`, or sentences of as many words.",
  ),
  gettextNoop(
    "{word} begins with the pieces of {other}, so that no piece tells them apart. Give the word that follows {first} too.",
  ),
  gettextNoop("there are no words to patch. Give two sentences with words in them."),
  gettextNoop("a sentence has {tokens} tokens, the model takes {limit}. Give shorter sentences."),
  gettextNoop(
    "the log-odds of {word} and {other} are the same for both sentences. Choose words whose probabilities differ.",
  ),
  gettextNoop("there are no words to explain. Give a text with words in it."),
  gettextNoop("attention can't tell two words apart that follow the same words. Use erasure."),
  gettextNoop("there is no word to contrast with. Name another word that the model could write."),
  gettextNoop("the model does not know all characters of {word}. Choose another word."),
  gettextNoop("{word} is the word itself. Choose another word to contrast it with."),
  gettextNoop("{word} is too long: the model takes {limit} pieces. Choose another word."),
  gettextNoop(
    "contributions and norms exist only where attention and residual connections add up, in a Transformer. Show the attention weights instead.",
  ),
  gettextNoop(
    "contributions and norms do not exist for model.decoder=ssru, whose relu is no sum of its inputs. Show the attention weights instead.",
  ),
  gettextNoop(
    "a lens is for Transformers: this model does not predict from the states of its layers. Show its attention instead.",
  ),
  gettextNoop(
    "this model has {count} weights; the figure computes with at most {limit} weights. Export it with --to web.",
  ),
  gettextNoop("model.kind={kind} does not run in the browser. Export a Transformer or an rnn-bahdanau model."),
  gettextNoop("model.{option}={value} does not run in the browser. Train with model.{name}={other} for it."),
  gettextNoop("a multilingual model does not run in the browser. Train one for a single pair."),
  gettextNoop("only vocabularies of the kind bpe run in the browser. Train with data.tokenizer.kind=bpe."),
  gettextNoop("there is no model {name} for {source} to {target}"),
  gettextNoop("{target} is not available as a target language from {source}"),
  gettextNoop("there are no words to classify"),
  gettextNoop("{name} has characters that this model does not know"),
  gettextNoop("prefix is longer than a translation of this text may be"),
  gettextNoop("The body took more than {seconds} seconds to come in"),
  gettextNoop("Too many connections watch this session"),
  gettextNoop("a suggestion has two texts of some thousand characters at most"),
  gettextNoop("a suggestion has the character {name}, which no file can hold"),
  gettextNoop("{file}: is not a picture that can be read. Give a JPEG, PNG, WebP, GIF or BMP file."),
  gettextNoop("{file}: is truncated or broken ({error}). Fetch it or save it again."),
  gettextNoop("{file}: has {count} bytes, more than {limit}. Save it smaller."),
  gettextNoop("{file}: has more than {limit} pixels. Make it smaller."),
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
