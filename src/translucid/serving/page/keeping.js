// Data in this browser, and in links. None of it is sent to the server.

export function stored(name, empty, place = localStorage) {
  try { return JSON.parse(place.getItem(name)) ?? empty; } catch { return empty; }
}

export function store(name, value, isEmpty = false, place = localStorage) {
  try {
    if (isEmpty) place.removeItem(name);
    else place.setItem(name, JSON.stringify(value));
  } catch { /* storage is disabled or full */ }
}

const HERE = "translucid.text"; // the texts in this tab, for a reload

export function keepHere(state) {
  store(HERE, state, false, sessionStorage);
}

// The state from the link that opened the page, or from before a reload; null for neither.
export function keptHere() {
  return linked() ?? stored(HERE, null, sessionStorage);
}

// The state from a link. It follows the #, which browsers do not send to servers.
export function linked() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("text")) return null;
  return Object.fromEntries(["text", "from", "to", "model"].map((name) => [name, fields.get(name) ?? undefined]));
}

export function link(state) {
  const fields = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  return `${location.origin}${location.pathname}${location.search}#${fields}`;
}

// Remove the link from the address when the text changes.
export function unlink() {
  if (linked()) history.replaceState(null, "", location.pathname + location.search);
}

// Copy a text to the clipboard; return whether that worked.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // without TLS, browsers support only the old method
    const focused = document.activeElement;
    const area = Object.assign(document.createElement("textarea"), { value: text, readOnly: true, className: "unseen" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}
