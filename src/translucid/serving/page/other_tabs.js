// Tells the other tabs of this browser which segments of a document have changed on the server. The messages have no text.

const channel = new BroadcastChannel("translucid.documents");

// Say that segments have changed on the server; `numbers` are null for many.
export function tellOtherTabs(id, numbers) {
  channel.postMessage({ id, numbers });
}

// Call a function with { id, numbers } when another tab has changed segments on the server; `numbers` are null for many.
export function onOtherTabs(receive) {
  channel.addEventListener("message", ({ data }) => receive(data));
}
