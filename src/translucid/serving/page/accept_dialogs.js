// The dialogs of a document: accept many translations at once, and what to do with unaccepted edits before a download.

import { allSegments } from "./all_segments.js";
import { beginStep, recordStep } from "./editor_history.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { $ } from "./page_elements.js";
import { translatedError } from "./server_messages.js";

const TEXTS_PER_REQUEST = 50;
let editor; // the functions of documents.js, see initAcceptDialogs
let requestedLink = $("document-download");
let skipsDialog = false; // during a download despite unaccepted edits

// Set up. `documentEditor` has the functions
//   getDocument(): the server's record of the open document, or null
//   readDrafts(), writeDrafts(drafts): the unaccepted edits, by segment number
//   request(path, method, fields): a request to the server
//   refreshProgress(): fetch the document's record again; resolves to whether that worked
//   reloadSegments(): fetch and show the segments again
//   showProblem(error or null)
//   showSegment(number, message): go to a segment, and show a message at it
export function initAcceptDialogs(documentEditor) {
  editor = documentEditor;
  guardDownload($("document-download"));
  $("accept-and-download").addEventListener("click", async () => {
    $("unaccepted-dialog").close("accept");
    if (await acceptMany({})) download();
  });
  $("download-without-edits").addEventListener("click", () => {
    $("unaccepted-dialog").close("download");
    download();
  });
  $("unaccepted-dialog").addEventListener("close", () => {
    const { returnValue } = $("unaccepted-dialog");
    const [number] = Object.keys(editor.readDrafts());
    if (!returnValue && number) editor.showSegment(Number(number));
  });
  $("accept-all").addEventListener("click", openAcceptAllDialog);
  $("confirm-accept-all").addEventListener("click", () => {
    $("accept-all-dialog").close();
    acceptMany({ rest: true, doubtful: $("accept-doubtful").checked });
  });
}

// The file of a link lacks unaccepted edits: ask what to do with them before a download. `onQuestion` is called before.
export function guardDownload(link, onQuestion = () => {}) {
  link.addEventListener("click", (event) => {
    const count = Object.keys(editor.readDrafts()).length;
    if (skipsDialog || !count) return;
    event.preventDefault();
    requestedLink = link;
    onQuestion();
    askAboutEdits(count);
  });
}

function askAboutEdits(count) {
  const edits = ngettext(
    "{count} of your edits is not accepted yet.",
    "{count} of your edits are not accepted yet.",
    count,
  );
  $("unaccepted-text").textContent = `${edits} ${gettext("The file contains only accepted translations.")}`;
  $("unaccepted-dialog").returnValue = "";
  $("unaccepted-dialog").showModal();
}

function download() {
  skipsDialog = true;
  requestedLink.click();
  skipsDialog = false;
}

async function openAcceptAllDialog() {
  if (!(await editor.refreshProgress())) return;
  const { segments, accepted, doubtful } = editor.getDocument();
  const unaccepted = segments - accepted;
  const withoutWarning = unaccepted - doubtful;
  $("accept-all-text").textContent = gettext(
    "Not accepted yet: {count}, of which {harmless} without a warning. This accepts them, with your edits.",
    { count: formatNumber(unaccepted), harmless: formatNumber(withoutWarning) },
  );
  $("accept-doubtful-label").hidden = !doubtful;
  $("accept-doubtful-text").textContent = gettext("also those to check ({count})", { count: formatNumber(doubtful) });
  $("accept-doubtful").checked = !withoutWarning;
  $("accept-all-dialog").showModal();
}

// Accept the edits, and with `rest` all other translations, the doubtful ones only with `doubtful`; return whether all were accepted.
async function acceptMany({ rest = false, doubtful = false }) {
  const { id } = editor.getDocument();
  const isOpen = () => editor.getDocument()?.id === id;
  const edits = Object.entries(editor.readDrafts());
  try {
    await allSegments(editor.request, editor.getDocument());
    const before = beginStep(edits.map(([number]) => Number(number)));
    const { problems, numbers } = await acceptTexts(id, edits, { rest, doubtful });
    if (!isOpen()) return false;
    editor.showProblem(problems.size ? new Error(describeProblems(problems)) : null);
    await allSegments(editor.request, editor.getDocument());
    if (!isOpen()) return false;
    for (const number of numbers) if (!before.has(number)) before.set(number, { accepted: null, draft: null });
    recordStep(ngettext("acceptance of {count} segment", "acceptance of {count} segments", numbers.length), before);
    const [first] = problems;
    if (first) await editor.showSegment(...first);
    return !problems.size;
  } catch (error) {
    if (isOpen()) editor.showProblem(error);
    return false;
  }
}

// Accept texts, [[number, text], …], of the open document; `choice` is { rest, doubtful } of the request. Return the problems by
// segment number, and the numbers of what was accepted.
export async function acceptTexts(id, texts, choice = {}) {
  const problems = new Map();
  const numbers = [];
  for (let i = 0; i < texts.length || (choice.rest && i === 0); i += TEXTS_PER_REQUEST) {
    const some = Object.fromEntries(texts.slice(i, i + TEXTS_PER_REQUEST));
    const rest = Boolean(choice.rest) && i + TEXTS_PER_REQUEST >= texts.length;
    const response = await editor.request(`${id}/accept`, "POST", { ...choice, texts: some, rest });
    if (editor.getDocument()?.id !== id) break;
    removeAcceptedDrafts(some, response.problems);
    for (const [number, problem] of Object.entries(response.problems))
      problems.set(Number(number), translatedError(problem));
    numbers.push(...response.numbers);
  }
  if (editor.getDocument()?.id === id) {
    await editor.refreshProgress();
    await editor.reloadSegments();
  }
  return { problems, numbers };
}

function describeProblems(problems) {
  return [...problems]
    .map(([number, problem]) => gettext("Segment {number}: {problem}", { number: number + 1, problem }))
    .join(" ");
}

// Remove the drafts that the server has accepted, unless they have been edited since.
function removeAcceptedDrafts(texts, problems) {
  const drafts = editor.readDrafts();
  for (const [number, text] of Object.entries(texts)) {
    if (!problems[number] && drafts[number] === text) delete drafts[number];
  }
  editor.writeDrafts(drafts);
}
