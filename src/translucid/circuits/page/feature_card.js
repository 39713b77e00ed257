// The card of a feature.

import { element } from "./elements.js";

// Show the card of a feature in `root`.
export async function showCard(inspector, root, feature) {
  root.replaceChildren(element("p", { textContent: feature }));
}
