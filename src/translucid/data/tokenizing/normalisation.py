"""Which characters normalisation changes, and rules that leave alone those that a text needs.

SentencePiece's `nmt_nfkc` writes `²` as `2`, `…` as three full stops, `º` as `o`, the full-width punctuation of Chinese
as that of English, and a space for the zero-width non-joiner, which Persian needs to spell half of its verbs. A model
that learns such text never writes these characters. So the default normalisation, `adaptive`, does what `nmt_nfkc` does
but for the characters that the text has often.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache

import sentencepiece

ADAPTIVE, BASE = "adaptive", "nmt_nfkc"
"""The default normalisation, and SentencePiece's one that it departs from."""
QUIET = 3
"""SentencePiece's level of messages that nobody needs."""
OFTEN = 10
"""How often a character must stand in a text to be left alone."""
SHOWN = 12
"""Characters that a message names, at most."""
_TIDIED = ("Zs", "Zl", "Zp", "Cc", "Cs", "Co", "Cn")
"""Categories of spaces, control characters and what is no character: never left alone."""
_SIGNS = "\u2581\ufeff\ufffd"
"""SentencePiece's own space, a byte order mark, and what stands for a byte that could not be read."""
_RIGHT_TO_LEFT = frozenset({"ARABIC", "HEBREW", "SYRIAC", "THAANA"})
_NEEDED = {
    "\u200b": frozenset({"KHMER", "THAI", "LAO", "MYANMAR", "TIBETAN"}),
    **dict.fromkeys("\u200e\u200f\u061c", _RIGHT_TO_LEFT),
}
"""Scripts that need characters that are not seen: a space without width between words, and marks of direction."""
_VARIANTS = (
    *((0xFB00, 0xFDFF), (0xFE30, 0xFE4F), (0xFE70, 0xFEFE), (0x1D400, 0x1D7FF)),
    *((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF61, 0xFFDC)),
)
"""Forms of letters and digits for old character sets and typesetting, such as ligatures, which are no spelling."""


@lru_cache(1 << 16)
def normalised(character: str, rule: str) -> str:
    """Return what a rule of SentencePiece makes of a character."""
    found: str = _normaliser(rule).normalize(character)
    return found


@lru_cache
def _normaliser(rule: str) -> sentencepiece.SentencePieceNormalizer:
    return sentencepiece.SentencePieceNormalizer(
        rule_name=rule, add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
    )


class Characters:
    """How often each character stands in a text, of those that are not ASCII."""

    def __init__(self) -> None:
        """Begin with none."""
        self.counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count those of a text."""
        if not text.isascii():
            # Half a surrogate pair, which JSON may hold, is no character that SentencePiece takes.
            self.counts.update(text.encode("utf-8", "ignore").decode("utf-8"))

    def changed(self, rule: str) -> dict[str, int]:
        """Return those that a normalisation changes, the most frequent first, with their counts."""
        kept = self.kept() if rule == ADAPTIVE else ()
        base = BASE if rule == ADAPTIVE else rule
        rows = self.counts.most_common()
        return {c: n for c, n in rows if not c.isascii() and c not in kept and normalised(c, base) != c}

    def kept(self) -> list[str]:
        """Return those that `adaptive` leaves alone although `nmt_nfkc` changes them, the most frequent first."""
        often = {c: n for c, n in self.counts.items() if n >= OFTEN}
        scripts = {unicodedata.name(c, "?").split()[0] for c in often if c.isalpha()}
        changed = self.changed(BASE)
        return [c for c in changed if c in often and _is_spelling(c) and _has_use(c, scripts)]


def _is_spelling(character: str) -> bool:
    """Whether a character is part of how texts are written, not one of two ways to say the same."""
    if character in _SIGNS or unicodedata.category(character) in _TIDIED:
        return False
    if any(first <= ord(character) <= last for first, last in _VARIANTS):
        return False
    return unicodedata.normalize("NFC", character) == character


def _has_use(character: str, scripts: Collection[str]) -> bool:
    """Whether a character that is not seen has a use in scripts; elsewhere it is a left-over of some program."""
    needed = _NEEDED.get(character)
    return needed is None or not needed.isdisjoint(scripts)


def described(counts: Mapping[str, int]) -> str:
    """Return characters with their counts, as `U+200C (zero width non-joiner) 1,200 times`."""
    rows = [f"{_name(c)} {n:,} times" for c, n in counts.items()]
    more = [f"{len(rows) - SHOWN:,} others"] * (len(rows) > SHOWN)
    return ", ".join([*rows[:SHOWN], *more])


def _name(character: str) -> str:
    seen = unicodedata.category(character)[0] in "LNPS"
    return character if seen else f"U+{ord(character):04X} ({unicodedata.name(character, 'unnamed').lower()})"


def normaliser_without(kept: Collection[str]) -> sentencepiece.SentencePieceNormalizer:
    """Return what `nmt_nfkc` is but for the rules for some characters."""
    rules = [(source, target) for source, target in _normaliser(BASE).Decompile() if source not in kept]
    sentencepiece.set_min_log_level(QUIET)
    return sentencepiece.SentencePieceNormalizer(norm_map=rules)
