// The history of translations: only in this browser, bounded, and optional.

import { $, element } from "./asking.js";
import { say } from "./languages.js";
import { store, stored } from "./keeping.js";

const PAST = "translucid.history", OFF = "translucid.history.off";
const MOST = 50, LARGEST = 200_000; // number of entries, and of characters in total
const SETTLED = 2000; // milliseconds after which a translation counts as intended
let timer;
let coming = null; // the entry to store next

// Set up; `again` shows a chosen entry.
export function startPast(again) {
  $("open-history").addEventListener("click", () => { settle(); list(again); $("history").showModal(); });
  $("keep-history").checked = !stored(OFF, false);
  $("keep-history").addEventListener("change", () => {
    store(OFF, true, $("keep-history").checked);
    if (!$("keep-history").checked) forget(again);
  });
  $("clear-history").addEventListener("click", () => { forget(again); $("keep-history").focus(); });
  addEventListener("pagehide", settle);
}

// Store a translation unless another one follows soon.
export function remember(entry) {
  clearTimeout(timer);
  coming = entry;
  timer = setTimeout(settle, SETTLED);
}

// A text that extends the last one replaces it.
function settle() {
  clearTimeout(timer);
  if (!coming || stored(OFF, false)) return;
  const pair = ({ from, to }) => `${from} ${to}`;
  const [last, ...older] = stored(PAST, []);
  const same = last && pair(last) === pair(coming) && (coming.text.startsWith(last.text) || last.text.startsWith(coming.text));
  const others = (same ? older : [last, ...older]).filter((one) => one && !(one.text === coming.text && pair(one) === pair(coming)));
  let room = LARGEST;
  store(PAST, [coming, ...others].slice(0, MOST).filter((one) => (room -= one.text.length + one.translation.length) >= 0));
  coming = null;
}

function forget(again) {
  coming = null;
  store(PAST, [], true);
  list(again);
}

function list(again) {
  const past = stored(PAST, []);
  $("past").replaceChildren(...past.map((entry) => {
    const { text, translation, from, to } = entry;
    const button = element("button", { type: "button" });
    button.append(
      element("span", { className: "hint", textContent: `${say(from)} → ${say(to)}` }),
      element("span", { className: "one-line", textContent: text, lang: from, dir: "auto" }),
      element("span", { className: "one-line soft", textContent: translation, lang: to, dir: "auto" }),
    );
    button.addEventListener("click", () => { $("history").close(); again(entry); });
    const item = element("li", {});
    item.append(button);
    return item;
  }));
  $("no-past").hidden = past.length > 0;
  $("clear-history").disabled = !past.length;
}
