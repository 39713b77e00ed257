// What both parts of the page need: elements, and questions to the server.

export const $ = (id) => document.getElementById(id);
export const RETRY = 3000; // milliseconds after which a server that is gone is asked again

export function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

export function option(value, textContent) {
  return element("option", { value, textContent });
}

// Return what the server answers, or throw what is wrong; `gone` says that it may be back later.
export async function answered(response) {
  let status = 0;
  try {
    const got = await response;
    status = got.status;
    const answer = await got.json();
    if (got.ok) return answer;
    throw Object.assign(new Error(answer.error), { told: true, gone: status >= 500 });
  } catch (error) {
    if (error.told) throw error;
    throw Object.assign(new Error("The server does not answer. The page tries again by itself."), { gone: true });
  }
}

// One of the likeliest ways to go on: how likely, the next word, and what comes of it.
export function wayButton(probability, next, text, lang, choose) {
  const button = element("button", { type: "button", disabled: !text.trim() });
  const rest = element("span", { className: "rest", textContent: text, dir: "auto", lang });
  const likely = element("span", { className: "probability", textContent: `${(100 * probability).toFixed(1)} %` });
  button.append(likely, element("span", { className: "next", textContent: next || "(end)" }), rest);
  button.addEventListener("click", choose);
  const item = element("li", {});
  item.append(button);
  return item;
}
