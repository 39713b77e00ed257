// What was typed but not accepted, and accepting many translations at once.
//
// startAccepting({ document, drafts, keepDrafts, ask, refresh, again, problem }): document() is what the server tells of the document,
// drafts() what was typed, by the number of the segment; refresh() learns anew how far it is, again() shows the segments anew.

import { $ } from "./asking.js";

const TOGETHER = 50; // typed translations that are accepted with one request
let parts;
let downloading = false; // although something was typed that is not accepted

export function startAccepting(given) {
  parts = given;
  $("document-download").addEventListener("click", askBeforeDownload);
  $("accept-drafts").addEventListener("click", async () => { $("unaccepted").close(); if (await acceptMany({})) download(); });
  $("without-drafts").addEventListener("click", () => { $("unaccepted").close(); download(); });
  $("accept-all").addEventListener("click", offer);
  $("accept-now").addEventListener("click", () => { $("accepting").close(); acceptMany({ rest: true, doubtful: $("accept-doubtful").checked }); });
}

// What was typed and not accepted is not in the file: ask what is to become of it.
function askBeforeDownload(event) {
  const count = Object.keys(parts.drafts()).length;
  if (downloading || !count) return;
  event.preventDefault();
  const what = count === 1 ? "1 translation that you typed is" : `${many(count)} translations that you typed are`;
  $("unaccepted-text").textContent = `${what} not accepted yet. The file has only what is accepted.`;
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
  $("accepting-text").textContent = `Not accepted yet: ${many(segments - accepted)}, of which ${many(sure)} without a warning. They are taken as they stand, or as you typed them.`;
  $("for-doubtful").hidden = !doubtful;
  $("doubtful-text").textContent = `also those that want a look (${many(doubtful)})`;
  $("accept-doubtful").checked = !sure;
  $("accepting").showModal();
}

// Accept what was typed, and with `rest` all other translations as they stand; return whether nothing was wrong with any.
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
