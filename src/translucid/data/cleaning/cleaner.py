"""A corpus parted into what is kept and what is rejected, each rejected pair with the rule and what it has seen."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from translucid.data.cleaning.digest_set import DigestSet
from translucid.data.cleaning.profile import Profile
from translucid.data.cleaning.rules import Rule, rules
from translucid.data.filtering import Filter
from translucid.data.readers.corpus import Pair, PlacedPair
from translucid.data.statistics import digest, digest_pair

UNREADABLE, MODEL = "unreadable", "model"
"""What is no pair at all, and what a model does not believe."""
RULES = (
    *("empty", "too-long", "encoding", "script", "untranslated", "language", "length", "placeholders", "numbers"),
    *("duplicate", "near-duplicate", MODEL),
)
"""Names of all rules, in the order in which they are asked; the first one that finds something decides."""
EXAMPLES = 3
"""Examples kept of each rule."""
_NO_WORD = re.compile(r"[^\w%{}<>$]+")


class Judged(NamedTuple):
    """A pair, and why it is rejected."""

    file: str
    line: int
    pair: Pair
    rule: str = ""
    """Which rule rejects it, none if it is kept."""
    what: str = ""
    """What the rule has seen."""


class Cleaner:
    """Judges pairs one after the other."""

    def __init__(self, profile: Profile, without: Collection[str] = (), limits: Filter | None = None) -> None:
        """Prepare the rules.

        Args:
            profile: of the corpus.
            without: names of `RULES` that are not asked.
            limits: of lengths.
        """
        found = rules(profile, limits or Filter())
        seen, alike = DigestSet(), DigestSet()
        found["duplicate"] = lambda pair: "" if seen.add(digest_pair(pair)) else "the same pair stands before it"
        found["near-duplicate"] = lambda pair: "" if alike.add(digest(alike_text(pair))) else _NEAR
        self.rules: dict[str, Rule] = {name: rule for name, rule in found.items() if name not in without}

    def judge(self, pairs: Iterable[PlacedPair]) -> Iterator[Judged]:
        """Yield each pair with the first rule that rejects it."""
        for file, line, pair in pairs:
            for name, rule in self.rules.items():
                if what := rule(pair):
                    yield Judged(file, line, pair, name, what)
                    break
            else:
                yield Judged(file, line, pair)


_NEAR = "a pair before it has the same words on both sides"


def alike_text(pair: Pair) -> str:
    """Return what near duplicates have in common: words and numbers in their order, without case and punctuation."""
    both = (_NO_WORD.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip() for text in pair)
    return "\t".join(both)


class Report:
    """How many pairs each rule has rejected, with examples."""

    def __init__(self) -> None:
        """Count from 0."""
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
        if len(examples := self.examples.setdefault(judged.rule, [])) < EXAMPLES:
            examples.append(judged)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        names = sorted(self.rejected, key=(UNREADABLE, *RULES).index)
        found = {
            name: {
                "rejected": self.rejected[name],
                "examples": [{**one.pair._asdict(), **_place(one)} for one in self.examples[name]],
            }
            for name in names
        }
        return {"pairs": self.pairs, "kept": self.kept, "rejected": self.rejected.total(), "rules": found}


def _place(one: Judged) -> dict[str, Any]:
    return {"what": one.what, "file": _writable(one.file), "line": one.line}


def _writable(name: str) -> str:
    """Return the name of a file as it can be written: it may have bytes that are no UTF-8."""
    return name.encode("utf-8", "replace").decode("utf-8")


def row(judged: Judged) -> str:
    """Return a line of the file of rejected pairs: source, target, rule, what it has seen, place."""
    place = f"{_writable(judged.file)}:{judged.line}"
    return "\t".join(map(column, (*judged.pair, judged.rule, judged.what, place))) + "\n"


def column(text: str) -> str:
    """Return a text as a column of a .tsv, which tabs and line ends would break."""
    return re.sub(r"[\t\r\n]", " ", text)
