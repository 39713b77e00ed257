// SentencePiece (Kudo and Richardson 2018, arXiv 1808.06226): text to the ids of pieces, and back.

const SPACE = "▁"; // begins each word in the pieces
const UNKNOWN = 1;

class Tokenizer {
  // pieces by id, their scores, ids of `control` pieces, which no text has, and `rules` of normalisation in base64.
  constructor({ pieces, scores, control, rules }) {
    this.hidden = new Set([...control, UNKNOWN]);
    this.ids = new Map(pieces.map((piece, id) => [piece, id]).filter(([, id]) => !this.hidden.has(id)));
    this.normaliser = new Normaliser(rules);
    Object.assign(this, { pieces, scores });
  }

  // The ids of a text. Unknown characters in a row are one unknown piece.
  encode(text) {
    const words = this.normalise(text).match(/▁[^▁]*/gu) ?? [];
    const ids = words.flatMap((word) => this.merge([...word]).map((piece) => this.ids.get(piece) ?? UNKNOWN));
    return ids.filter((id, i) => id !== UNKNOWN || ids[i - 1] !== UNKNOWN);
  }

  // Characters normalised, spaces at the ends removed, others joined, and the sign for a space before each word.
  normalise(text) {
    const readable = text.replace(/\p{Cs}/gu, "?").replaceAll(SPACE, "_"); // half of a surrogate pair is no character
    const words = this.normaliser.apply(readable).split(" ").filter(Boolean);
    return words.map((word) => SPACE + word).join("");
  }

  // Byte-pair encoding (Sennrich et al. 2016): merge the pair of neighbours that was learned first, until none is left.
  merge(symbols) {
    for (;;) {
      let [best, at] = [-Infinity, -1];
      for (let i = 0; i + 1 < symbols.length; i += 1) {
        const id = this.ids.get(symbols[i] + symbols[i + 1]);
        if (id !== undefined && this.scores[id] > best) [best, at] = [this.scores[id], i];
      }
      if (at < 0) return symbols;
      symbols.splice(at, 2, symbols[at] + symbols[at + 1]);
    }
  }

  // The text of ids.
  decode(ids) {
    return ids.filter((id) => !this.hidden.has(id)).map((id) => this.pieces[id]).join("").replaceAll(SPACE, " ").trim();
  }
}

// Rules that replace the longest sequence of bytes that has a rule, as SentencePiece stores them: the number of bytes of
// a double-array trie (Aoe 1989; one 32-bit unit for each node), the trie, and the replacements, which end with 0.
class Normaliser {
  constructor(rules) {
    const bytes = Uint8Array.from(atob(rules), (character) => character.charCodeAt(0));
    if (!bytes.length) return;
    const size = new DataView(bytes.buffer).getUint32(0, true);
    this.trie = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.replacements = bytes.subarray(4 + size);
  }

  apply(text) {
    if (!this.trie) return text;
    const bytes = new TextEncoder().encode(text);
    const written = [];
    for (let at = 0; at < bytes.length;) {
      const { length, place } = this.longest(bytes, at);
      if (length) {
        for (let i = place; this.replacements[i]; i += 1) written.push(this.replacements[i]);
        at += length;
        continue;
      }
      do written.push(bytes[at++]); while ((bytes[at] & 0xc0) === 0x80); // one character
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(written));
  }

  // The longest rule that applies at a byte: its length, 0 without one, and the place of its replacement.
  longest(bytes, first) {
    const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let [node, match] = [offset(this.trie[0]), { length: 0 }];
    for (let at = first; at < bytes.length; at += 1) {
      node ^= bytes[at];
      const unit = this.trie[node];
      if ((unit & 0x800000ff) !== bytes[at]) break; // the label of the node is another byte
      node ^= offset(unit);
      if (unit & 0x100) match = { length: at + 1 - first, place: this.trie[node] & 0x7fffffff };
    }
    return match;
  }
}
