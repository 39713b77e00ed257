// Unaccepted edits, and accepting many translations at once.
//
// startAccepting({ document, drafts, keepDrafts, ask, refresh, again, problem }): document() is the server's record of the
// document, drafts() the edits by segment number; refresh() fetches the progress again, again() shows the segments again.

import { $ } from "./asking.js";

const TOGETHER = 50; // edits that one request accepts
let parts;
let downloading = false; // despite unaccepted edits

export function startAccepting(given) {
  parts = given;
  $("document-download").addEventListener("click", askBeforeDownload);
  $("accept-drafts").addEventListener("click", async () => { $("unaccepted").close(); if (await acceptMany({})) download(); });
  $("without-drafts").addEventListener("click", () => { $("unaccepted").close(); download(); });
  $("accept-all").addEventListener("click", offer);
  $("accept-now").addEventListener("click", () => { $("accepting").close(); acceptMany({ rest: true, doubtful: $("accept-doubtful").checked }); });
}

// A download lacks unaccepted edits: ask what to do with them.
function askBeforeDownload(event) {
  const count = Object.keys(parts.drafts()).length;
  if (downloading || !count) return;
  event.preventDefault();
  const what = count === 1 ? "1 of your edits is" : `${many(count)} of your edits are`;
  $("unaccepted-text").textContent = `${what} not accepted yet. The file contains only accepted translations.`;
  $("unaccepted").showModal();
}

function download() {
  downloading = true;
  $("document-download").click();
  downloading = false;
}

async function offer() {
  if (!await parts.refresh()) return;
  const { segments, accepted, doubtful } = parts.document();
  const sure = segments - accepted - doubtful;
  $("accepting-text").textContent = `Not accepted yet: ${many(segments - accepted)}, of which ${many(sure)} without a warning. This accepts them, with your edits.`;
  $("for-doubtful").hidden = !doubtful;
  $("doubtful-text").textContent = `also those to check (${many(doubtful)})`;
  $("accept-doubtful").checked = !sure;
  $("accepting").showModal();
}

// Accept the edits, and with `rest` all other translations; return whether all were accepted.
async function acceptMany({ rest = false, doubtful = false }) {
  const { id } = parts.document();
  const typed = Object.entries(parts.drafts());
  const problems = [];
  try {
    for (let i = 0; i < typed.length || (rest && i === 0); i += TOGETHER) {
      const now = typed.slice(i, i + TOGETHER);
      const last = i + TOGETHER >= typed.length;
      const told = await parts.ask(`${id}/accept`, "POST", { texts: Object.fromEntries(now), rest: rest && last, doubtful });
      if (parts.document()?.id !== id) return false;
      const left = parts.drafts();
      for (const [number, text] of now) {
        if (told.problems[number]) problems.push(`Segment ${Number(number) + 1}: ${told.problems[number]}`);
        else if (left[number] === text) delete left[number];
      }
      parts.keepDrafts(left);
    }
    parts.problem(problems.length ? new Error(problems.join(" ")) : null);
    await parts.refresh();
    await parts.again();
  } catch (error) {
    if (parts.document()?.id === id) parts.problem(error);
    return false;
  }
  return parts.document()?.id === id && !problems.length;
}

function many(value) {
  return value.toLocaleString("en");
}
