// The attribution graph of a word: choose a node to follow its edges, pin nodes, move with the arrow keys.

import { element, formatSigned } from "./elements.js";
import { translatedLabel } from "./feature_card.js";
import { formatNumber, gettext, pgettext } from "./messages.js";
import { addRovingTabindex } from "./roving.js";

const LISTED = 6; // edges in each list
const HELP = gettext(
  "Blue raises the logit, orange lowers it. Click a node, or move with the arrow keys and press Enter; P pins it, Escape leaves it.",
);

// Make a drawn graph interactive.
//
// container: an element for the view.
// graph: the record of the graph, with its picture as `svg`.
// options: `actions`, buttons for the chosen feature ({ label, run(node, output) }); `onChoose(node)`, called with the
//   record of the chosen node, or null; `chosen`, the name of the node to choose first; `labels`, what features mean.
// Returns an object with `choose(number)`.
export function showGraph(container, graph, options = {}) {
  const picture = element("div", { className: "scroll", innerHTML: graph.svg });
  const details = element("div", { className: "details" });
  details.setAttribute("aria-live", "polite");
  container.classList.add("graph-view");
  container.replaceChildren(picture, element("p", { className: "note", textContent: HELP }), details);
  const svg = picture.querySelector("svg");
  const shapes = new Map([...svg.querySelectorAll(".node")].map((shape) => [shape.dataset.node, shape]));
  const paths = [...svg.querySelectorAll(".edge")];
  const pinned = new Set();
  let chosen = null;

  for (const [name, shape] of shapes) {
    shape.setAttribute("role", "button");
    shape.setAttribute("aria-label", describeNode(graph, name));
    shape.append(title(describeNode(graph, name)));
    shape.addEventListener("click", () => choose(chosen === name ? null : name));
    shape.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") choose(name);
      else if (event.key === "p" || event.key === "P") pin(name);
      else if (event.key === "Escape") choose(null);
      else return;
      event.preventDefault();
    });
  }
  addRovingTabindex(rowsOf(shapes));
  scrollTo(picture, shapes.get("logit"));
  const first = graph.nodes.findIndex((node) => node.name === options.chosen);
  if (first >= 0) choose(String(first));
  return { choose };

  function choose(name) {
    chosen = name;
    options.onChoose?.(name === null || name === "logit" ? null : graph.nodes[Number(name)]);
    update();
    details.replaceChildren(...(name === null ? [] : describe(name)));
  }

  function pin(name) {
    if (!pinned.delete(name)) pinned.add(name);
    update();
    const button = details.querySelector(".pin");
    if (button && name === chosen) button.textContent = pinned.has(name) ? gettext("Unpin") : gettext("Pin");
  }

  // Show the edges of the chosen node and of pinned ones, and the nodes at their ends.
  function update() {
    const followed = new Set(pinned);
    if (chosen !== null) followed.add(chosen);
    const seen = new Set(followed);
    for (const path of paths) {
      const ends = [path.dataset.source, path.dataset.target];
      const isOn = ends.some((end) => followed.has(end));
      path.classList.toggle("on", isOn);
      if (isOn) for (const end of ends) seen.add(end);
    }
    svg.classList.toggle("following", followed.size > 0);
    for (const [name, shape] of shapes) {
      shape.classList.toggle("on", seen.has(name));
      shape.classList.toggle("chosen", name === chosen);
      shape.classList.toggle("pinned", pinned.has(name));
      shape.setAttribute("aria-pressed", String(pinned.has(name)));
    }
  }

  function describe(name) {
    const parts = [element("h3", { textContent: describeNode(graph, name) })];
    const actions = element("div", { className: "actions" });
    const output = element("div", {});
    const pinButton = element("button", {
      type: "button",
      className: "pin",
      textContent: pinned.has(name) ? gettext("Unpin") : gettext("Pin"),
    });
    pinButton.addEventListener("click", () => pin(name));
    actions.append(pinButton);
    if (name !== "logit") {
      const node = graph.nodes[Number(name)];
      const label = (options.labels ?? graph.labels)?.[node.name];
      if (label) parts.push(element("p", { textContent: translatedLabel(label) }));
      parts.push(facts(node));
      if (node.kind === "feature") {
        for (const action of options.actions ?? []) {
          const button = element("button", { type: "button", textContent: action.label });
          button.addEventListener("click", () => action.run(node, output));
          actions.append(button);
        }
      }
    }
    const incoming = graph.edges.filter((edge) => String(edge.target) === name);
    const outgoing = graph.edges.filter((edge) => String(edge.source) === name);
    const ends = element("div", { className: "ends" });
    ends.append(
      ...list(pgettext("word", "From"), incoming, "source"),
      ...list(pgettext("word", "To"), outgoing, "target"),
    );
    return [...parts, actions, output, ends];
  }

  // Return a list of the strongest edges, whose other ends can be followed.
  function list(heading, edges, end) {
    if (!edges.length) return [];
    const sorted = [...edges].sort((first, second) => Math.abs(second.share) - Math.abs(first.share)).slice(0, LISTED);
    const items = sorted.map((edge) => {
      const name = String(edge[end]);
      const button = element("button", { type: "button" });
      const effect = `${formatSigned(edge.effect)} (${Math.round(100 * edge.share)} %)`;
      button.append(
        element("span", { textContent: describeNode(graph, name) }),
        element("span", { textContent: effect }),
      );
      button.addEventListener("click", () => {
        choose(name);
        shapes.get(name).focus();
      });
      return element("li", {}, button);
    });
    return [element("section", {}, element("h3", { textContent: heading }), element("ul", {}, ...items))];
  }
}

function facts(node) {
  const values = [
    [gettext("direct effect on the logit"), formatSigned(node.effect)],
    [gettext("through all paths"), formatSigned(node.total)],
    [gettext("influence"), `${formatNumber(100 * node.influence, 1)} %`],
  ];
  if (node.activation !== undefined) values.unshift([gettext("value"), formatNumber(node.activation, 2)]);
  const entries = values.map(([term, value]) =>
    element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: value })),
  );
  return element("dl", { className: "facts" }, ...entries);
}

function describeNode(graph, name) {
  if (name === "logit")
    return graph.instead_of
      ? gettext("{word} instead of {other}", { word: graph.word, other: graph.instead_of })
      : graph.word;
  const node = graph.nodes[Number(name)];
  return gettext("{feature} at {token}", { feature: node.name, token: node.token.replaceAll("▁", "") });
}

// Scroll a picture that is wider than the page so that a node is in the middle.
function scrollTo(picture, shape) {
  const [outer, inner] = [picture.getBoundingClientRect(), shape.getBoundingClientRect()];
  picture.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
}

// Return the nodes row by row from top to bottom, each row from left to right.
function rowsOf(shapes) {
  const rows = new Map();
  for (const shape of shapes.values()) {
    const box = shape.querySelector(".box");
    const y = box.getAttribute("y");
    if (!rows.has(y)) rows.set(y, []);
    rows.get(y).push(shape);
  }
  const left = (shape) => Number(shape.querySelector(".box").getAttribute("x"));
  const sorted = [...rows].sort(([first], [second]) => Number(first) - Number(second));
  return sorted.map(([, row]) => row.sort((first, second) => left(first) - left(second)));
}

function title(text) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", "title");
  created.textContent = text;
  return created;
}
