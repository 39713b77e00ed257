// Finds texts, apart from the page: a regular expression may take for ever, and the page can end a worker.
//
// It receives { segments: [{ number, source, target }, …], source, target, replacement }: the patterns, { pattern, flags } or null,
// and the text that replaces matches in the target, null for none. In it, $1, $<name> and $& stand for parts of a match, if
// `expands`. It answers with { hits: [{ number, parts }, …] }; `parts` are [start, end, inserted text] in the target.

addEventListener("message", ({ data }) => {
  postMessage({ hits: hitsIn(data) });
});
postMessage({}); // it begins: the page counts the time from now

function hitsIn({ segments, source, target, replacement, expands }) {
  const sourcePattern = source && new RegExp(source.pattern, source.flags);
  const targetPattern = target && new RegExp(target.pattern, `${target.flags}g`);
  /** @type {{ number: number, parts: any[][] }[]} */
  const hits = [];
  for (const segment of segments) {
    if (sourcePattern && !sourcePattern.test(segment.source)) continue;
    const matches = targetPattern ? [...segment.target.matchAll(targetPattern)].filter(([text]) => text) : [];
    if (targetPattern && !matches.length) continue;
    const parts = matches.map((match) => {
      const inserted = expands && replacement ? expanded(replacement, match) : replacement;
      return [match.index, match.index + match[0].length, inserted];
    });
    hits.push({ number: segment.number, parts });
  }
  return hits;
}

// Return a replacement with the parts of a match in it.
function expanded(replacement, match) {
  return replacement.replace(/\$(?:\$|&|(\d{1,2})|<(\w+)>)/g, (reference, number, name) => {
    if (reference === "$$") return "$";
    if (reference === "$&") return match[0];
    return (number ? match[Number(number)] : match.groups?.[name]) ?? "";
  });
}
