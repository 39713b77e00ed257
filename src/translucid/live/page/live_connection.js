// A session of live translation on the server, over a WebSocket; docs/live.md describes its messages.

const PART_LENGTH = 1000; // characters; a longer text is sent in parts

export class LiveConnection {
  // options: the fields of the session.
  // handlers: { onText(text, messages): what is written, and what the user should know; onRecord(record): of all decisions so far;
  // onProblem(message): the session has failed }.
  // maxLength: of a part, in characters.
  constructor(options, handlers, maxLength) {
    this.handlers = handlers;
    this.partLength = Math.min(PART_LENGTH, maxLength);
    this.record = null;
    this.pending = [{ ...options, record: true }]; // messages until the connection is open
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.addEventListener("open", () => {
      for (const message of this.pending) this.socket.send(JSON.stringify(message));
      this.pending = [];
    });
    this.socket.addEventListener("message", ({ data }) => this.receive(JSON.parse(data)));
    this.socket.addEventListener("close", () =>
      this.fail("The connection to the server was closed. Play the text again"),
    );
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
    if (this.socket.readyState === WebSocket.CONNECTING) this.pending.push(message);
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
