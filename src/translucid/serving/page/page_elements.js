// Elements that all sections of the page use.

import { element } from "./elements.js";
import { gettext } from "./messages.js";

export const IS_MAC = /Mac|iP(hone|ad)/.test(navigator.platform);
const BAR_DELAY = 300; // milliseconds
const MESSAGE_DELAY = 3000; // milliseconds
const styles = new Map(); // by name: promises of the style sheets of sections that are loaded when they are opened

// Return the element with an id, of the type that page.d.ts lists.
/** @type {<Id extends keyof PageElements>(id: Id) => PageElements[Id]} */
export const $ = (id) => /** @type {any} */ (document.getElementById(id));

// Create an option for a select element.
export function option(value, textContent) {
  return element("option", { value, textContent });
}

// Return a regular expression for exactly this text.
export function escapeRegex(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

// Load a style sheet, once; without it, what needs it would be seen without its layout.
export function loadStyle(href) {
  if (!styles.has(href)) {
    const link = element("link", { rel: "stylesheet", href });
    const loaded = new Promise((resolve, reject) => {
      link.addEventListener("load", resolve);
      link.addEventListener("error", () => {
        styles.delete(href);
        link.remove();
        reject(new Error(gettext("{file} can't be loaded", { file: href })));
      });
    });
    styles.set(href, loaded);
    document.head.append(link);
  }
  return styles.get(href);
}

// Create the progress display of a section: nothing at first, then a thin bar, then a message in the element `notice`.
// Return `start`, which may be called repeatedly, and `stop`, to call when no request is pending.
export function progressIndicator(section, notice) {
  let timers = [];
  let message = "";
  return {
    start() {
      if (timers.length) return;
      const showBar = () => section.classList.add("loading");
      const showSlow = () => {
        message = notice.textContent = gettext("Still working. The server is taking longer than usual.");
      };
      timers = [setTimeout(showBar, BAR_DELAY), setTimeout(showSlow, MESSAGE_DELAY)];
    },
    stop() {
      for (const timer of timers) clearTimeout(timer);
      timers = [];
      section.classList.remove("loading");
      if (message && notice.textContent === message) notice.textContent = ""; // not the error that has replaced it
      message = "";
    },
  };
}
