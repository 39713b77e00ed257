// The dialog with a document's review files: to download for a reviewer, and to upload with corrections.

import { guardDownload } from "./accept_dialogs.js";
import { allSegments } from "./all_segments.js";
import { withApiKey } from "./api_key.js";
import { beginStep, recordStep, statesOf } from "./editor_history.js";
import { element } from "./elements.js";
import { formatNumber, gettext, ngettext } from "./messages.js";
import { readResponse } from "./requests.js";
import { createDialog } from "./shortcuts.js";

let editor; // the functions of documents.js
let showNotice; // of the tools
/** @type {any} */
let dialog = null;
const links = [
  { format: "docx", label: gettext("Download a Word table") },
  { format: "xlf", label: gettext("Download XLIFF 2.1") },
].map(({ format, label }) => ({
  format,
  link: element("a", { className: "button", download: "", textContent: label }),
}));
const input = element("input", { type: "file", accept: ".docx,.xlf,.xliff" });
const status = element("p", { role: "status" });
const lines = element("ul", { id: "review-lines" });

// Open the dialog. `tools` has showNotice(text, options).
export function openReview(documentEditor, tools) {
  editor = documentEditor;
  showNotice = tools.showNotice;
  dialog ??= createReviewDialog();
  for (const { format, link } of links) link.href = `documents/${editor.getDocument().id}/review?format=${format}`;
  status.textContent = "";
  lines.replaceChildren();
  dialog.showModal();
  links[0].link.focus();
}

function createReviewDialog() {
  for (const { link } of links) guardDownload(link, () => dialog.close());
  input.addEventListener("change", () => {
    if (input.files?.length) editor.enqueue(() => upload(input.files[0]));
  });
  return createDialog(
    "review-dialog",
    gettext("Review"),
    element("p", {
      className: "hint",
      textContent: gettext("The file has all segments, accepted ones as reviewed. Upload it again with corrections."),
    }),
    element("div", { className: "bar" }, ...links.map(({ link }) => link)),
    element("label", { textContent: `${gettext("Corrected file")} ` }, input),
    status,
    lines,
  );
}

// Upload a corrected file; its corrections are one step of the history, and replace edits that are not accepted.
async function upload(file) {
  const openDocument = editor.getDocument();
  const form = new FormData();
  for (const [field, value] of Object.entries(withApiKey({}))) form.append(field, value);
  form.append("file", file, file.name);
  status.textContent = gettext("Reading the file…");
  lines.replaceChildren();
  try {
    await allSegments(editor.request, openDocument);
    const answer = await readResponse(fetch(`documents/${openDocument.id}/review`, { method: "POST", body: form }));
    if (editor.getDocument()?.id !== openDocument.id) return;
    const { numbers, corrected, problems, warnings } = answer;
    beginStep([]);
    const before = statesOf(numbers); // the server's answer is not in the segments yet
    await editor.refreshProgress();
    await editor.reloadSegments();
    const segments = await allSegments(editor.request, editor.getDocument());
    if (editor.getDocument()?.id !== openDocument.id) return;
    editor.setTexts(new Map(numbers.map((number) => [number, segments[number].target])));
    recordStep(gettext("review"), before);
    const done = ngettext("{count} segment accepted", "{count} segments accepted", numbers.length, {
      count: formatNumber(numbers.length),
    });
    status.textContent = gettext("{accepted}, {corrected} of them corrected.", {
      accepted: done,
      corrected: formatNumber(corrected),
    });
    lines.replaceChildren(...[...problems, ...warnings].map((line) => element("li", { textContent: line })));
    showNotice(status.textContent, { numbers, canUndo: numbers.length > 0 });
  } catch (error) {
    status.textContent = error.message;
  } finally {
    input.value = "";
  }
}
