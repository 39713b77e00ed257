// The last two lines of a session of live translation, for streaming software: /live?overlay&session=NAME. A line that is shown
// grows by whole words, and never changes.

const LINE_LENGTH = 42; // as in subtitles; wide characters count as two
const LINES = 2;
const RETRY_MILLISECONDS = 2000;
const query = new URLSearchParams(location.search);
const root = /** @type {HTMLElement} */ (document.getElementById("lines"));
const problem = /** @type {HTMLElement} */ (document.getElementById("problem"));
const lineLength = Number(query.get("line-length")) || LINE_LENGTH;
/** @type {string[]} */
let lines = [];

// Add words to the last line, or to the next one if they have no room.
function write(text) {
  for (const [word] of text.matchAll(/\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+)/g)) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last + word) <= lineLength) lines[lines.length - 1] = last + word;
    else lines.push(word.trimStart());
  }
  lines = lines.slice(-LINES);
  root.dir = "auto";
  root.replaceChildren(...lines.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
}

function widthOf(text) {
  return Array.from(text).reduce(
    (width, character) => width + (/[\u1100-\u11ff\u2e80-\ud7af\uff00-\uff60]/.test(character) ? 2 : 1),
    0,
  );
}

const session = query.get("session") ?? "";
const key = query.get("api_key");

function connect() {
  const address = new URL("live", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  let retry = listen; // without WebSockets, or a server, the socket never opens
  socket.addEventListener("open", () => {
    retry = connect;
    socket.send(JSON.stringify({ watch: session, ...(key ? { api_key: key } : {}) }));
  });
  socket.addEventListener("message", receiver());
  socket.addEventListener("close", () => setTimeout(retry, RETRY_MILLISECONDS));
}

// Watch the session by server-sent events.
function listen() {
  const address = new URL(`live/${encodeURIComponent(session)}`, location.href);
  if (key) address.searchParams.set("api_key", key);
  const events = new EventSource(address);
  events.addEventListener("message", receiver());
  events.addEventListener("error", () => {
    events.close();
    setTimeout(connect, RETRY_MILLISECONDS);
  });
}

// Return a handler of messages with what is written, of which the first has the end of what was written before.
function receiver() {
  let isFirst = true;
  return ({ data }) => {
    const { text, error, status } = JSON.parse(data);
    // A session that has not begun yet is awaited without a message.
    problem.textContent = error && status !== 404 ? error : "";
    if (error) return;
    if (isFirst) lines = [];
    isFirst = false;
    write(text);
  };
}

if (session) connect();
else problem.textContent = "Name the session to show: /live?overlay&session=NAME";
