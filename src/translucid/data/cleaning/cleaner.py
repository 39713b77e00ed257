"""The judgement of each pair of a corpus: kept, or rejected by a rule that states its reason."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from translucid.data.cleaning.digest_set import DigestSet
from translucid.data.cleaning.profile import Profile
from translucid.data.cleaning.rules import Rule, rules
from translucid.data.filtering import Filter
from translucid.data.readers.corpus import Pair, PlacedPair
from translucid.data.statistics import digest, digest_pair

UNREADABLE, MODEL = "unreadable", "model"
"""The reasons for lines that are not pairs, and for pairs that the models reject."""
RULES = (
    *("empty", "too-long", "encoding", "script", "untranslated", "language", "length", "placeholders", "numbers"),
    *("duplicate", "near-duplicate", MODEL),
)
"""The names of all rules, in the order in which they are applied; the first rule that objects decides."""
EXAMPLES = 3
"""The number of examples for each rule."""
_NO_WORD = re.compile(r"[^\w%{}<>$]+")


class Judged(NamedTuple):
    """A pair, and the reason if it is rejected."""

    file: str
    line: int
    pair: Pair
    rule: str = ""
    """The name of the rule that rejects the pair; empty if it is kept."""
    what: str = ""
    """What is wrong with the pair, in words."""


class Cleaner:
    """Applies the rules to pairs."""

    def __init__(self, profile: Profile, without: Collection[str] = (), limits: Filter | None = None) -> None:
        """Prepare the rules.

        Args:
            profile: what is usual in the corpus.
            without: names of `RULES` that are not applied.
            limits: limits for the lengths.
        """
        self.rules: dict[str, Rule] = rules(profile, limits or Filter())
        # Last, because they remember each pair that they are asked about.
        self.rules["duplicate"] = _repeats(digest_pair, "the same pair stands before it")
        self.rules["near-duplicate"] = _repeats(
            lambda pair: digest(alike_text(pair)), "a pair before it has the same words on both sides"
        )
        for name in without:
            self.rules.pop(name, None)

    def judge(self, pairs: Iterable[PlacedPair]) -> Iterator[Judged]:
        """Yield each pair with the first rule that rejects it."""
        for file, line, pair in pairs:
            for name, rule in self.rules.items():
                if what := rule(pair):
                    yield Judged(file, line, pair, name, what)
                    break
            else:
                yield Judged(file, line, pair)


def _repeats(digest_of: Callable[[Pair], int], what: str) -> Rule:
    """Return a rule that objects to pairs whose digest has occurred before."""
    digests = DigestSet()

    def rule(pair: Pair) -> str:
        return "" if digests.add(digest_of(pair)) else what

    return rule


def alike_text(pair: Pair) -> str:
    """Return what near duplicates share: words and numbers in order, without case and punctuation."""
    sides = []
    for text in pair:
        folded = unicodedata.normalize("NFKC", text).casefold()
        sides.append(_NO_WORD.sub(" ", folded).strip())
    return "\t".join(sides)


class Report:
    """The number of pairs that each rule has rejected, with examples."""

    def __init__(self) -> None:
        """Start at 0."""
        self.pairs = self.kept = 0
        self.rejected: Counter[str] = Counter()
        self.examples: dict[str, list[Judged]] = {}

    def add(self, judged: Judged) -> None:
        """Count a pair."""
        self.pairs += 1
        if not judged.rule:
            self.kept += 1
            return
        self.rejected[judged.rule] += 1
        examples = self.examples.setdefault(judged.rule, [])
        if len(examples) < EXAMPLES:
            examples.append(judged)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        by_rule = {}
        for name in sorted(self.rejected, key=(UNREADABLE, *RULES).index):
            examples = list(map(_example, self.examples[name]))
            by_rule[name] = {"rejected": self.rejected[name], "examples": examples}
        return {"pairs": self.pairs, "kept": self.kept, "rejected": self.rejected.total(), "rules": by_rule}


def _example(judged: Judged) -> dict[str, Any]:
    place = {"file": _writable(judged.file), "line": judged.line}
    return {**judged.pair._asdict(), "what": judged.what, **place}


def _writable(name: str) -> str:
    """Return the name of a file as valid UTF-8; on Linux, a name may be any bytes."""
    return name.encode("utf-8", "replace").decode("utf-8")


def row(judged: Judged) -> str:
    """Return a line of the file of rejected pairs: source, target, rule, reason, place."""
    place = f"{_writable(judged.file)}:{judged.line}"
    return "\t".join(map(column, (*judged.pair, judged.rule, judged.what, place))) + "\n"


def column(text: str) -> str:
    """Return a text as a column of a .tsv file, without tabs and line ends."""
    return re.sub(r"[\t\r\n]", " ", text)
