// Tells the other tabs of this browser which segments of a document have changed. The messages have no text.

const channel = new BroadcastChannel("translucid.documents");

// Say that segments have changed; `isOnServer` if translations on the server have, otherwise only edits in this browser.
export function tellOtherTabs(id, numbers, isOnServer = false) {
  channel.postMessage({ id, numbers, isOnServer });
}

// Call a function with { id, numbers, isOnServer } when another tab has changed segments; `numbers` are null for many.
export function onOtherTabs(receive) {
  channel.addEventListener("message", ({ data }) => receive(data));
}
