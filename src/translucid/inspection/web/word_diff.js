// The differences between the words of two texts.

import { element } from "./elements.js";

// Return the indices of the words that are not in a longest common subsequence of two texts, as one Set for each text.
export function diffWords(first, second) {
  const lengths = commonSubsequenceLengths(first, second);
  const differing = [new Set(first.keys()), new Set(second.keys())];
  let [i, j] = [0, 0];
  while (i < first.length && j < second.length) {
    if (first[i] === second[j]) {
      differing[0].delete(i);
      differing[1].delete(j);
      i += 1;
      j += 1;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) {
      i += 1;
    } else {
      j += 1;
    }
  }
  return differing;
}

// Return a table whose entry [i][j] is the length of the longest common subsequence of first[i:] and second[j:].
function commonSubsequenceLengths(first, second) {
  const lengths = Array.from({ length: first.length + 1 }, () => Array(second.length + 1).fill(0));
  for (let i = first.length - 1; i >= 0; i -= 1) {
    for (let j = second.length - 1; j >= 0; j -= 1) {
      const skipOne = Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      lengths[i][j] = first[i] === second[j] ? lengths[i + 1][j + 1] + 1 : skipOne;
    }
  }
  return lengths;
}

// Return the words as nodes with spaces between them; those at `indices` are marked.
export function markWords(words, indices) {
  const nodes = words.map((word, i) => (indices.has(i) ? element("mark", { textContent: word }) : word));
  return nodes.flatMap((node, i) => (i === 0 ? [node] : [" ", node]));
}
