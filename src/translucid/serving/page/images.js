// Images: give one, see what the model writes about it, where it looked for each word, what else it could have said.

import { $, RETRY, answered, element, option, wayButton } from "./asking.js";
import { roving } from "./roving.js";
import { waiting } from "./waiting.js";

const LARGEST = 1024; // pixels of a side; a larger image is made smaller before it is sent
const SENT = ["image/jpeg", "image/png", "image/webp"]; // as they are; others as JPEG
const WAYS = 8; // to go on that are offered
const BEST = 4; // captions
const DIM = 0.72; // how dark the picture becomes where the model did not look
const GLOW = 0.25; // how light, where it looked most; on a dark picture nothing else would be seen
const EVEN = 0.2; // share of a ninth of the picture under which no place stands out
let image = null; // what is sent
let shown = null; // the last answer
let chosen = null; // the number of the word for which others are offered
let turn = 0; // answers that come too late are thrown away
let timer;
const work = waiting($("images"), (text) => { $("image-problem").textContent = text; });

// Begin; `show` brings this part of the page to the front.
export function startImages(captioners, show) {
  $("captioner").append(...captioners.map((one) => option(one.name, one.name)));
  $("captioner").parentElement.hidden = captioners.length < 2;
  for (const id of ["captioner", "key"]) $(id).addEventListener("change", () => { if (image) run({ nbest: BEST }); });
  for (const id of ["file", "camera"]) {
    $(id).addEventListener("change", () => { if ($(id).files.length) takeImage($(id).files[0]); $(id).value = ""; });
  }
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (!file || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    show();
    takeImage(file);
  });
}

// Show an image, and have it written about.
export async function takeImage(file) {
  const mine = ++turn;
  clear();
  image = null;
  $("image").hidden = true;
  try {
    const bitmap = await createImageBitmap(file);
    if (mine !== turn) return;
    const scale = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
    for (const canvas of [$("picture"), $("veil")]) {
      canvas.width = Math.max(1, Math.round(scale * bitmap.width));
      canvas.height = Math.max(1, Math.round(scale * bitmap.height));
    }
    const pen = $("picture").getContext("2d");
    pen.fillStyle = "white"; // as the model sees what is transparent
    pen.fillRect(0, 0, $("picture").width, $("picture").height);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(bitmap, 0, 0, $("picture").width, $("picture").height);
    bitmap.close();
    $("image").hidden = false;
    if (scale === 1 && SENT.includes(file.type)) image = file;
    else image = await new Promise((done) => { $("picture").toBlob(done, "image/jpeg", 0.92); });
  } catch {
    if (mine === turn) problem(new Error("This file is no image that the browser can show."));
    return;
  }
  if (mine === turn) run({ nbest: BEST });
}

function ask(fields) {
  const form = new FormData();
  const all = { model: $("captioner").value, ...($("key").value ? { api_key: $("key").value } : {}), ...fields };
  for (const [name, value] of Object.entries(all)) form.append(name, value);
  form.append("file", image, "image");
  return answered(fetch("caption", { method: "POST", body: form }));
}

// Have a caption written, or look at one that is given.
async function run(fields) {
  clearTimeout(timer);
  const mine = ++turn;
  work.begin();
  try {
    const answer = await ask(fields);
    if (mine !== turn) return;
    problem();
    show(answer);
    if (fields.nbest) best(answer);
  } catch (error) {
    if (mine !== turn) return;
    if (fields.nbest) clear(); // else what there is, is of this image
    problem(error);
    if (error.gone) timer = setTimeout(() => run(fields), RETRY);
  } finally {
    if (mine === turn) work.end();
  }
}

// Nothing that belongs to another image stays beside a new one.
function clear() {
  clearTimeout(timer);
  shown = chosen = null;
  for (const id of ["caption", "caption-ways", "nbest"]) $(id).replaceChildren();
  $("instead").hidden = $("others").hidden = true;
  $("seen").textContent = "";
  $("picture").setAttribute("aria-label", "the image");
  light(null);
  problem();
}

function problem(error) {
  $("image-problem").textContent = error ? error.message : "";
}

// The words of the caption as buttons: pointed at, the picture lights up; chosen, others are offered.
function show(answer) {
  shown = answer;
  chosen = null;
  $("instead").hidden = true;
  $("picture").setAttribute("aria-label", answer.caption || "the image");
  const words = answer.words.map(({ word }, w) => {
    const button = element("button", { type: "button", className: "word", textContent: word, dir: "auto" });
    button.setAttribute("aria-label", `${word}: other words`);
    for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => look(w));
    for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => look(chosen));
    button.addEventListener("click", () => instead(w));
    return button;
  });
  $("caption").replaceChildren(...words.flatMap((word) => [word, " "]));
  roving([words]);
  look(null);
}

// Say of a word how likely it was and where the model looked, and light that up; of none, how that is done.
function look(w) {
  if (!shown) return;
  [...$("caption").children].forEach((button, i) => button.classList.toggle("lit", i === w));
  if (w === null) {
    const how = matchMedia("(hover: none)").matches ? "Tap a word" : "Point at a word, or go there with the arrow keys";
    const first = shown.grid ? `${how}: the picture lights up where the model looked.` : "This model has no attention: it saw the picture as a whole.";
    $("seen").textContent = shown.words.length ? `${first} Choose it for other words.` : "The model wrote nothing.";
    light(null);
    return;
  }
  const { word, probability, weights } = shown.words[w];
  const sure = `“${word}” was written with probability ${(100 * probability).toFixed(1)} %`;
  $("seen").textContent = weights ? `${sure}; it looked ${place(weights)}.` : `${sure}.`;
  light(weights);
}

// Name the ninth of the picture that has most of the weights.
function place(weights) {
  const shares = Array(9).fill(0);
  weights.forEach((row, r) => row.forEach((weight, c) => {
    shares[3 * Math.floor((3 * r + 1.5) / weights.length) + Math.floor((3 * c + 1.5) / row.length)] += weight;
  }));
  const most = Math.max(...shares);
  const [r, c] = [Math.floor(shares.indexOf(most) / 3), shares.indexOf(most) % 3];
  const name = r === 1 && c === 1 ? "centre" : `${["upper", "middle", "lower"][r]} ${["left", "centre", "right"][c]}`;
  return most < EVEN ? "at no place in particular" : `most at the ${name} (${Math.round(100 * most)} %)`;
}

// Darken the picture where weights [rows][columns] are small; null takes that away.
function light(weights) {
  const veil = $("veil");
  const pen = veil.getContext("2d");
  pen.clearRect(0, 0, veil.width, veil.height);
  if (!weights) return;
  const flat = weights.flat();
  const most = flat.reduce((one, other) => Math.max(one, other), 1e-9);
  const cells = element("canvas", { width: weights[0].length, height: weights.length });
  for (const [colour, opacity] of [[[0, 0, 0], (x) => DIM * (1 - x)], [[255, 240, 180], (x) => GLOW * x * x]]) {
    const pixels = new ImageData(cells.width, cells.height);
    flat.forEach((weight, i) => pixels.data.set([...colour, Math.round(255 * opacity(weight / most))], 4 * i));
    cells.getContext("2d").putImageData(pixels, 0, 0);
    pen.drawImage(cells, 0, 0, veil.width, veil.height); // made larger, it is smoothed
  }
}

// Offer other words in the place of one, and what the caption would be with each.
async function instead(w) {
  const mine = turn;
  chosen = w;
  look(w);
  [...$("caption").children].forEach((button, i) => button.classList.toggle("chosen", i === w));
  try {
    const answer = await ask({ prefix: shown.words.slice(0, w).map(({ word }) => word).join(" "), ways: WAYS });
    if (mine !== turn || chosen !== w) return;
    $("instead-name").textContent = `Instead of “${shown.words[w].word}”`;
    const choose = async (caption) => { await run({ caption }); [...$("caption").children].slice(0, w + 1).at(-1)?.focus(); };
    const item = (way) => wayButton(way.probability, way.next, way.caption, "", () => choose(way.caption));
    $("caption-ways").replaceChildren(...answer.ways.map(item));
    $("instead").hidden = false;
    problem();
  } catch (error) {
    if (mine === turn) problem(error);
  }
}

// List the best captions; one that is chosen is looked at.
function best(answer) {
  const all = [answer, ...answer.alternatives];
  $("nbest").replaceChildren(...all.map(({ caption, score }) => {
    const button = element("button", { type: "button", title: "log-probability, the longer a caption the less it counts; and the caption" });
    const text = element("span", { className: "rest", textContent: caption, dir: "auto" });
    button.append(element("span", { className: "probability", textContent: score.toFixed(2) }), text);
    button.addEventListener("click", () => run({ caption }));
    const item = element("li", {});
    item.append(button);
    return item;
  }));
  $("others").hidden = all.length < 2;
}
