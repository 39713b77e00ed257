// SentencePiece (Kudo and Richardson 2018, arXiv 1808.06226): text to the ids of pieces, and back.

const SPACE = "▁"; // the piece or the beginning of a piece that starts a word
const UNKNOWN = 1;

class Tokenizer {
  // pieces and scores: by id; control: the ids of pieces that no text contains; rules: of normalization, in base64.
  constructor({ pieces, scores, control, rules }) {
    this.hidden = new Set([...control, UNKNOWN]);
    this.ids = new Map(pieces.map((piece, id) => [piece, id]).filter(([, id]) => !this.hidden.has(id)));
    this.normalizer = new Normalizer(rules);
    this.pieces = pieces;
    this.scores = scores;
  }

  // The ids of a text. Consecutive unknown characters are one unknown piece.
  encode(text) {
    const words = this.normalize(text).match(/▁[^▁]*/gu) ?? [];
    const ids = words.flatMap((word) => this.merge([...word]).map((piece) => this.ids.get(piece) ?? UNKNOWN));
    return ids.filter((id, i) => id !== UNKNOWN || ids[i - 1] !== UNKNOWN);
  }

  // Normalize the characters, and write each word with the mark of a space before it, without other spaces.
  normalize(text) {
    const characters = text.replace(/\p{Cs}/gu, "?").replaceAll(SPACE, "_"); // half of a surrogate pair is not a character
    const words = this.normalizer.apply(characters).split(" ").filter(Boolean);
    return words.map((word) => SPACE + word).join("");
  }

  // Byte-pair encoding (Sennrich et al. 2016): merge the pair of symbols that was learned first, until no pair is left.
  merge(symbols) {
    for (;;) {
      let [bestScore, bestIndex] = [-Infinity, -1];
      for (let i = 0; i + 1 < symbols.length; i += 1) {
        const id = this.ids.get(symbols[i] + symbols[i + 1]);
        if (id !== undefined && this.scores[id] > bestScore) [bestScore, bestIndex] = [this.scores[id], i];
      }
      if (bestIndex < 0) return symbols;
      symbols.splice(bestIndex, 2, symbols[bestIndex] + symbols[bestIndex + 1]);
    }
  }

  // The text of ids.
  decode(ids) {
    return ids
      .filter((id) => !this.hidden.has(id))
      .map((id) => this.pieces[id])
      .join("")
      .replaceAll(SPACE, " ")
      .trim();
  }
}

// Replaces bytes by rules, of which the longest match applies. SentencePiece stores them as the size in bytes of a
// double-array trie (Aoe 1989; one 32-bit unit for each node), the trie, and the replacements, which end with 0.
class Normalizer {
  constructor(rules) {
    const bytes = fromBase64(rules);
    const size = bytes.length ? new DataView(bytes.buffer).getUint32(0, true) : 0;
    this.trie = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.replacements = bytes.subarray(4 + size);
  }

  apply(text) {
    if (!this.trie.length) return text;
    const bytes = new TextEncoder().encode(text);
    const output = [];
    for (let i = 0; i < bytes.length; ) {
      const { length, replacement } = this.longestMatch(bytes, i);
      if (length) {
        for (let j = replacement; this.replacements[j]; j += 1) output.push(this.replacements[j]);
        i += length;
        continue;
      }
      do output.push(bytes[i++]);
      while ((bytes[i] & 0xc0) === 0x80); // copies one character
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(output));
  }

  // The longest match at a byte: its length, 0 if there is none, and the offset of its replacement.
  longestMatch(bytes, first) {
    const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let [node, match] = [offset(this.trie[0]), { length: 0, replacement: 0 }];
    for (let i = first; i < bytes.length; i += 1) {
      node ^= bytes[i];
      const unit = this.trie[node];
      if ((unit & 0x800000ff) !== bytes[i]) break; // the label of the node is another byte
      node ^= offset(unit);
      if (unit & 0x100) match = { length: i + 1 - first, replacement: this.trie[node] & 0x7fffffff };
    }
    return match;
  }
}

function fromBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = characters.charCodeAt(i); // five times as fast as Uint8Array.from
  return bytes;
}
