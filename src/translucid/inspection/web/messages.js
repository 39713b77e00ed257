// The texts of a page in its language, with the functions of GNU gettext. language.js has chosen the language and loaded its
// catalog; texts that it lacks stay English.
//
// A script of the project collects the texts: the first arguments of these functions are literals.

const page = /** @type {any} */ (globalThis);
const RIGHT_TO_LEFT = ["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"]; // scripts
const TRANSLATED_ATTRIBUTES = ["aria-label", "title", "placeholder", "data-label"];
const NOT_TRANSLATED = "script, style, noscript, kbd, code, math, [translate=no]";
const CONTEXT_END = "\u0004"; // between the context of a text and the text, in catalogs
const STORAGE_KEY = "translucid.language";
const { language = "en", forms = "", messages = {} } = page.pageCatalog ?? {};

export const LANGUAGE = language; // the code of the language of the page

// Return a text in the language of the page. `values` replace the names in braces: gettext("{count} words", { count: 2 }).
export function gettext(text, values = {}) {
  return filled(messages[text] || text, values);
}

// Return a text that has different translations elsewhere; `context` says for translators where it stands.
export function pgettext(context, text, values = {}) {
  return filled(messages[context + CONTEXT_END + text] || text, values);
}

// Return the form of a text for a number, which is also the value of {count}.
export function ngettext(singular, plural, count, values = {}) {
  const form = forms[count < 200 ? count : 100 + (count % 100)]; // rules of plurals depend on the last two digits at most
  const text = messages[singular]?.[form] || (count === 1 ? singular : plural);
  return filled(text, { count: formatNumber(count), ...values });
}

// Mark a text that is translated elsewhere, as in tables, and return it in English.
export const gettextNoop = (text) => text;

// Return the translation of a text that is not a literal: one that another file defines.
export function translated(text) {
  return messages[text] || text;
}

// Return a translated text with values in place of the names in braces; other names stay.
export function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (placeholder, name) => values[name] ?? placeholder);
}

// Format a number as in the language of the page, such as 1,000. `digits`: the number of decimals, if it is fixed.
export function formatNumber(value, /** @type {number | undefined} */ digits = undefined) {
  const isEasy = LANGUAGE === "en" && digits === undefined && Number.isSafeInteger(value);
  if (isEasy) return String(value).replace(/\B(?=(\d{3})+$)/g, ","); // the first number of a language takes a phone 60 ms
  const options = digits === undefined ? {} : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString(LANGUAGE, options);
}

// Format the day of a date in the form of ISO 8601.
export function formatDay(date) {
  if (LANGUAGE === "en") return date.slice(0, 10);
  return new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(date));
}

// Return the writing direction of a language, "ltr" or "rtl".
export function directionOf(code) {
  try {
    return RIGHT_TO_LEFT.includes(new Intl.Locale(code).maximize().script ?? "") ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}

// Return the name of a language in the language of the page, or in another one; the code itself if it has none. It is written as in
// a sentence.
export function languageInText(code, inLanguage = LANGUAGE) {
  try {
    return new Intl.DisplayNames([inLanguage], { type: "language", fallback: "none" }).of(code) ?? code;
  } catch {
    return code;
  }
}

// Return the name of a language as a heading or an entry of a list.
export function languageName(code, inLanguage = LANGUAGE) {
  const name = languageInText(code, inLanguage);
  return name === code ? code : name[0].toLocaleUpperCase(inLanguage) + name.slice(1);
}

// Translate the texts of the page that are in its HTML: each text and some attributes. An element with the attribute `data-message`
// is one message, with the elements in it.
export function translatePage() {
  Object.assign(document.documentElement, { lang: LANGUAGE, dir: page.pageCatalog ? directionOf(LANGUAGE) : "ltr" });
  if (page.pageCatalog) for (const part of document.body.querySelectorAll("*")) translateElement(part);
  document.documentElement.classList.remove("untranslated");
}

function translateElement(part) {
  const isMessage = part.hasAttribute("data-message"); // also a word of an equation
  if (!isMessage && part.closest(NOT_TRANSLATED)) return;
  for (const name of TRANSLATED_ATTRIBUTES) {
    const value = messages[part.getAttribute(name)];
    if (value) part.setAttribute(name, value);
  }
  if (isMessage) {
    part.innerHTML = translated(oneLine(part.innerHTML));
    return;
  }
  for (const node of part.childNodes) {
    const value = node.nodeType === Node.TEXT_NODE && messages[oneLine(node.nodeValue)];
    if (value) node.nodeValue = node.nodeValue.replace(/\S.*\S|\S/s, () => value);
  }
}

function oneLine(text) {
  return text.trim().replace(/\s+/g, " ");
}

// Return a menu of the languages of the page; null if there is only English. A choice is stored, and opens the page again.
export function createLanguageMenu() {
  const names = { en: "English", ...page.pageLanguages };
  if (!page.pageLanguages) return null;
  const select = document.createElement("select");
  Object.assign(select, { className: "page-language", ariaLabel: gettext("Language of this page") });
  for (const code of Object.keys(names).sort()) {
    const option = document.createElement("option");
    Object.assign(option, { value: code, textContent: names[code], lang: code });
    select.append(option);
  }
  select.value = LANGUAGE;
  select.addEventListener("change", () => chooseLanguage(select.value));
  return select;
}

function chooseLanguage(code) {
  const address = new URL(location.href);
  address.searchParams.delete("lang");
  const fragment = new URLSearchParams(address.hash.slice(1));
  if (fragment.has("lang")) {
    fragment.delete("lang");
    address.hash = fragment.toString();
  }
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(code));
  } catch {
    address.searchParams.set("lang", code); // the browser stores nothing
  }
  history.replaceState(null, "", address);
  location.reload();
}
