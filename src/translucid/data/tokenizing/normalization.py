"""Character normalization, with exceptions for characters that are part of a text's spelling.

SentencePiece's `nmt_nfkc` replaces `²` by `2`, `…` by three full stops, `º` by `o`, full-width Chinese punctuation by
that of English, and the zero-width non-joiner, which half of the Persian verbs need, by a space. A model trained on
such text never writes these characters. So the default normalization, `adaptive`, is `nmt_nfkc` without the rules for
characters that are frequent in the text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import sentencepiece

ADAPTIVE, BASE = "adaptive", "nmt_nfkc"
"""The default normalization, and the one of SentencePiece that it modifies."""
QUIET = 3
"""The level at which SentencePiece logs only fatal errors."""
MIN_COUNT = 10
"""The fewest occurrences of a character that is left alone."""
MAX_LISTED = 12
"""The most characters that a message lists."""
_ALWAYS_NORMALIZED = ("Zs", "Zl", "Zp", "Cc", "Cs", "Co", "Cn")
"""Categories of spaces, of control characters, and of code points without a meaning; they are always normalized."""
_SIGNS = "\u2581\ufeff\ufffd"
"""SentencePiece's sign for a space, the byte order mark, and the replacement character."""
_RIGHT_TO_LEFT = frozenset({"ARABIC", "HEBREW", "SYRIAC", "THAANA"})
_SCRIPTS_THAT_NEED = {
    "\u200b": frozenset({"KHMER", "THAI", "LAO", "MYANMAR", "TIBETAN"}),
    **dict.fromkeys("\u200e\u200f\u061c", _RIGHT_TO_LEFT),
}
"""The scripts that need invisible characters: the zero-width space between words, and marks of direction."""
_VARIANTS = (
    *((0xFB00, 0xFDFF), (0xFE30, 0xFE4F), (0xFE70, 0xFEFE), (0x1D400, 0x1D7FF)),
    *((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF61, 0xFFDC)),
)
"""Presentation forms such as ligatures, for old character sets and typesetting; they are not part of spelling."""


@lru_cache
def _normalizer(rule: str) -> sentencepiece.SentencePieceNormalizer:
    return sentencepiece.SentencePieceNormalizer(
        rule_name=rule, add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
    )


class Characters:
    """The counts of the non-ASCII characters of a text."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the characters of a text."""
        if not text.isascii():
            # Without lone surrogates, which JSON may contain and SentencePiece refuses.
            self.counts.update(text.encode("utf-8", "ignore").decode("utf-8"))

    def changed(self, rule: str) -> dict[str, int]:
        """Return the characters that a normalization changes, with their counts, the most frequent first."""
        if rule != ADAPTIVE:
            return self.changed_by(_normalizer(rule))
        changed = self.changed(BASE)
        for character in self.preserved(changed):
            del changed[character]
        return changed

    def changed_by(self, normalizer: sentencepiece.SentencePieceNormalizer) -> dict[str, int]:
        """Return the characters beyond ASCII that a normalization changes, with counts, the most frequent first."""
        changed = {}
        for character, count in self.counts.most_common():
            if not character.isascii() and normalizer.normalize(character) != character:
                changed[character] = count
        return changed

    @property
    def frequent(self) -> set[str]:
        """The characters that are frequent enough to be left alone."""
        return {character for character, count in self.counts.items() if count >= MIN_COUNT}

    def preserved(self, changed: Iterable[str] | None = None) -> list[str]:
        """Return the characters that `adaptive` leaves alone although a rule changes them, the most frequent first.

        `changed`: the characters that the rule changes; by default, those that `nmt_nfkc` changes.
        """
        frequent = self.frequent
        scripts = {unicodedata.name(character, "?").split()[0] for character in filter(str.isalpha, frequent)}
        preserved = []
        for character in self.changed(BASE) if changed is None else changed:
            if character in frequent and _is_spelling(character) and _is_needed(character, scripts):
                preserved.append(character)
        return preserved


def _is_spelling(character: str) -> bool:
    """Whether a character is part of the spelling of texts, and not another form of the same character."""
    if character in _SIGNS or unicodedata.category(character) in _ALWAYS_NORMALIZED:
        return False
    if any(start <= ord(character) <= end for start, end in _VARIANTS):
        return False
    return unicodedata.normalize("NFC", character) == character


def _is_needed(character: str, scripts: Collection[str]) -> bool:
    """Whether one of the scripts needs a character, if it is invisible; other scripts have it by accident."""
    needing_scripts = _SCRIPTS_THAT_NEED.get(character)
    return needing_scripts is None or not needing_scripts.isdisjoint(scripts)


def described(counts: Mapping[str, int]) -> str:
    """Return characters with their counts, as `U+200C (zero width non-joiner) 1,200 times`."""
    rows = [f"{_name(character)} {count:,} times" for character, count in counts.items()]
    if len(rows) > MAX_LISTED:
        rows[MAX_LISTED:] = [f"{len(rows) - MAX_LISTED:,} others"]
    return ", ".join(rows)


def _name(character: str) -> str:
    is_visible = unicodedata.category(character)[0] in "LNPS"
    return character if is_visible else f"U+{ord(character):04X} ({unicodedata.name(character, 'unnamed').lower()})"


def normalizer_without(
    characters: Collection[str], original: sentencepiece.SentencePieceNormalizer | None = None
) -> sentencepiece.SentencePieceNormalizer:
    """Return a normalization, by default `nmt_nfkc`, without the rules for some characters."""
    original = original or _normalizer(BASE)
    rules = [(source, target) for source, target in original.Decompile() if source not in characters]
    sentencepiece.set_min_log_level(QUIET)
    return sentencepiece.SentencePieceNormalizer(norm_map=rules)


def normalizer_of(model: bytes) -> sentencepiece.SentencePieceNormalizer:
    """Return the normalization of a SentencePiece model."""
    return sentencepiece.SentencePieceNormalizer(
        model_proto=model, add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
    )
