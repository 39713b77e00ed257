// What this browser keeps, and how it is given away in a link. Nothing of it is ever sent to the server.

export function stored(name, empty, place = localStorage) {
  try { return JSON.parse(place.getItem(name)) ?? empty; } catch { return empty; }
}

export function store(name, value, isEmpty = false, place = localStorage) {
  try {
    if (isEmpty) place.removeItem(name);
    else place.setItem(name, JSON.stringify(value));
  } catch { /* a browser that keeps nothing, or has no more room */ }
}

const HERE = "translucid.text"; // what is in the panes of this tab, for a reload

export function keepHere(state) {
  store(HERE, state, false, sessionStorage);
}

// What the link says that the page was opened with, or what this tab had before a reload; null for neither.
export function keptHere() {
  return linked() ?? stored(HERE, null, sessionStorage);
}

// What a link says. It stands behind the # of an address, which browsers keep to themselves.
export function linked() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("text")) return null;
  return Object.fromEntries(["text", "from", "to", "model"].map((name) => [name, fields.get(name) ?? undefined]));
}

export function link(state) {
  const fields = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  return `${location.origin}${location.pathname}${location.search}#${fields}`;
}

// Once the text is another one, its link is no longer in the address.
export function unlink() {
  if (linked()) history.replaceState(null, "", location.pathname + location.search);
}

// Put a text on the clipboard; return whether that went.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // of an address without TLS, browsers offer the old way alone
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
