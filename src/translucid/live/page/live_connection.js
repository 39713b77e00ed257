// A session of live translation on the server, over a WebSocket, or over requests if the server has none; docs/live.md describes its
// messages.

import { gettext } from "./messages.js";

const PART_LENGTH = 1000; // characters; a longer text is sent in parts
const CLOSED = gettext("The connection to the server was closed. Play the text again");

export class LiveConnection {
  // options: the fields of the session.
  // handlers: { onText(text, messages): what is written, and what the user should know; onRecord(record): of all decisions so far;
  // onProblem(message): the session has failed }.
  // maxLength: of a part, in characters.
  constructor(options, handlers, maxLength) {
    this.handlers = handlers;
    this.partLength = Math.min(PART_LENGTH, maxLength);
    this.record = null;
    this.options = { ...options, record: true };
    this.pending = [this.options]; // messages until the connection is open
    this.requests = null; // without WebSockets, a promise for the answers to all messages so far
    this.path = "live";
    let wasOpen = false;
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.addEventListener("open", () => {
      wasOpen = true;
      for (const message of this.pending) this.socket.send(JSON.stringify(message));
      this.pending = [];
    });
    this.socket.addEventListener("message", ({ data }) => this.receive(JSON.parse(data)));
    this.socket.addEventListener("close", () => {
      if (wasOpen) this.fail(CLOSED);
      else this.useRequests();
    });
  }

  useRequests() {
    this.requests = Promise.resolve();
    for (const message of this.pending) this.send(message);
    this.pending = [];
  }

  // Send a message as a request, and receive the answer.
  async request(message) {
    if (!this.handlers) return;
    const { api_key } = this.options;
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify(api_key ? { ...message, api_key } : message);
    try {
      const response = await fetch(this.path, { method: "POST", headers, body });
      const answer = await response.json();
      if (answer.session) this.path = `live/${answer.session}`;
      this.receive(answer);
    } catch {
      this.fail(CLOSED);
    }
  }

  // Let the session read the next part of the text.
  read(text) {
    const characters = Array.from(text); // code points, so that no surrogate pair is split
    for (let start = 0; start < characters.length; start += this.partLength) {
      this.send({ text: characters.slice(start, start + this.partLength).join("") });
    }
  }

  // End the text; another one may follow.
  finish() {
    this.send({ finish: true });
  }

  // Close the connection. Nothing more is received.
  close() {
    this.handlers = null;
    this.pending = [];
    // Browsers report an error if a connection is closed before it is open.
    if (this.socket.readyState === WebSocket.CONNECTING)
      this.socket.addEventListener("open", () => this.socket.close());
    else this.socket.close();
  }

  send(message) {
    if (this.requests) this.requests = this.requests.then(() => this.request(message));
    else if (this.socket.readyState !== WebSocket.OPEN) this.pending.push(message);
    else this.socket.send(JSON.stringify(message));
  }

  receive({ text, record, messages = [], error }) {
    if (!this.handlers) return;
    if (error) {
      this.fail(error);
      return;
    }
    if (record?.sentences) {
      this.record = merged(this.record, record);
      this.handlers.onRecord(this.record);
    }
    if (text || messages.length) this.handlers.onText(text, messages);
  }

  fail(message) {
    const { handlers } = this;
    this.close();
    handlers?.onProblem(message);
  }
}

// Add a record, whose sentences are those since the end of the last one, to the record so far.
function merged(known, latest) {
  if (!known) return latest;
  const kept = known.sentences.filter(({ ended }) => ended);
  const record = { ...latest, sentences: [...kept, ...latest.sentences] };
  return latest.pivot ? { ...record, pivot: merged(known.pivot, latest.pivot) } : record;
}
