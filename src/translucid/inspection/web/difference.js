// The words in which two texts differ: all that are not in a longest common subsequence.

export function difference(first, second) {
  const common = Array.from({ length: first.length + 1 }, () => Array(second.length + 1).fill(0));
  for (let i = first.length - 1; i >= 0; i -= 1) {
    for (let j = second.length - 1; j >= 0; j -= 1) {
      common[i][j] = first[i] === second[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [new Set(first.keys()), new Set(second.keys())];
  for (let i = 0, j = 0; i < first.length && j < second.length;) {
    if (first[i] === second[j]) { found[0].delete(i++); found[1].delete(j++); }
    else if (common[i + 1][j] >= common[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}
