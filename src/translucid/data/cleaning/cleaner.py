"""Cleaning of a corpus: each pair is kept, or rejected by a rule that states its reason, and a report counts both.

The corpus is read twice: first for its profile, then to judge each pair. Duplicates are found in a set of digests.

Models of both directions can judge whether the sides of a pair translate each other. Cross-entropy in both directions
separates good pairs from bad ones (Junczys-Dowmunt 2018, arXiv 1809.00197, equation 1), but it is high for short and
rare sentences even if they are right. So it is compared with the cross-entropy of the same sentence given the source of
another pair. With the models f and b, and the sides x' and y' of another pair,

    gain(x, y) = 1 - (H_f(y|x) + H_b(x|y)) / (H_f(y|x') + H_b(x|y'))

is the share of the cross-entropy that the right other side removes: about 0 if the sides are unrelated.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from bitext.languages import Languages
from bitext.pair import Pair
from bitext.readers.lines import BadLine
from bitext.words import normalized_text
from translucid.data.cleaning.rules import SAMPLE, Profile, Rule, rules
from translucid.data.filtering import Filter, reservoir_sample
from translucid.data.readers.corpus import PlacedPair, placed_pairs
from translucid.data.statistics import digest, digest_pair
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched

UNREADABLE, MODEL = "unreadable", "model"
"""The rules for lines that are not pairs, and for pairs that the models reject."""
RULES = (
    *(
        "excluded",
        "empty",
        "too-long",
        "encoding",
        "script",
        "untranslated",
        "language",
        "length",
        "placeholders",
        "numbers",
    ),
    *("duplicate", "near-duplicate", MODEL),
)
"""The names of all rules, in the order in which they are applied; the first rule that objects decides."""
EXAMPLES = 3
"""The number of examples for each rule."""
_NO_WORD = re.compile(r"[^\w%{}<>$]+")
MAX_LOAD = 0.75
"""The load factor above which the table is enlarged."""
PROGRESS_STEP = 1000
"""The number of pairs between two reports of progress."""


class JudgedPair(NamedTuple):
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

    def __init__(
        self,
        profile: Profile,
        without: Collection[str] = (),
        limits: Filter | None = None,
        excluded: Iterable[Pair] = (),
    ) -> None:
        """Prepare the rules.

        Args:
            profile: what is usual in the corpus.
            without: names of `RULES` that are not applied.
            limits: limits for the lengths.
            excluded: pairs, such as test data, whose sentences are all rejected.
        """
        self.rules: dict[str, Rule] = {"excluded": _exclusion_rule(excluded), **rules(profile, limits or Filter())}
        # Last, because they remember each pair that they are asked about.
        self.rules["duplicate"] = _duplicate_rule(digest_pair, "the same pair occurs earlier")
        self.rules["near-duplicate"] = _duplicate_rule(
            lambda pair: digest(alike_text(pair)), "an earlier pair has the same words on both sides"
        )
        for name in without:
            self.rules.pop(name, None)

    def judge(self, pairs: Iterable[PlacedPair]) -> Iterator[JudgedPair]:
        """Yield each pair with the first rule that rejects it."""
        for file, line, pair in pairs:
            for name, rule in self.rules.items():
                if what := rule(pair):
                    yield JudgedPair(file, line, pair, name, what)
                    break
            else:
                yield JudgedPair(file, line, pair)


def _exclusion_rule(pairs: Iterable[Pair]) -> Rule:
    """Return a rule that objects to pairs with a sentence that is on either side of other pairs, but for case."""
    digests = {digest(normalized_text(text).casefold()) for text in chain.from_iterable(pairs)}

    def rule(pair: Pair) -> str:
        for side, text in zip(pair._fields, pair, strict=True):
            if digest(normalized_text(text).casefold()) in digests:
                return f"the {side} is in an excluded file"
        return ""

    return rule


def _duplicate_rule(digest_of: Callable[[Pair], int], what: str) -> Rule:
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
        self.pairs = self.kept = 0
        self.rejected: Counter[str] = Counter()
        self.examples: dict[str, list[JudgedPair]] = {}

    def add(self, judged: JudgedPair) -> None:
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


def _example(judged: JudgedPair) -> dict[str, Any]:
    location = {"file": _writable(judged.file), "line": judged.line}
    return {**judged.pair._asdict(), "what": judged.what, **location}


def _writable(name: str) -> str:
    """Return the name of a file as valid UTF-8; on Linux, a name may be any bytes."""
    return name.encode("utf-8", "replace").decode("utf-8")


def row(judged: JudgedPair) -> str:
    """Return a line of the file of rejected pairs: source, target, rule, reason, location."""
    location = f"{_writable(judged.file)}:{judged.line}"
    return "\t".join(map(column, (*judged.pair, judged.rule, judged.what, location))) + "\n"


def column(text: str) -> str:
    """Return a text as a column of a .tsv file, without tabs and line ends."""
    return re.sub(r"[\t\r\n]", " ", text)


class DigestSet:
    """A hash table with open addressing and linear probing; a digest is its own hash."""

    def __init__(self) -> None:
        # The size is a power of two, so that a mask finds the slot; 0 is an empty slot.
        self._slots = array("Q", [0]) * 1024
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, digest: int) -> bool:
        """Add a digest; return whether it is new. The digest 0 is treated as 1, because 0 is an empty slot."""
        digest = digest or 1
        slot = self._slot(digest)
        if self._slots[slot]:
            return False
        self._slots[slot] = digest
        self._count += 1
        if self._count > MAX_LOAD * len(self._slots):
            self._grow()
        return True

    def _slot(self, digest: int) -> int:
        slots, mask = self._slots, len(self._slots) - 1
        slot = digest & mask
        while slots[slot] and slots[slot] != digest:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        old_slots = self._slots
        self._slots = array("Q", [0]) * (2 * len(old_slots))
        for stored_digest in filter(None, old_slots):
            self._slots[self._slot(stored_digest)] = stored_digest


class CorpusReader:
    """Reads the files of a corpus twice: for its profile, and to judge its pairs."""

    def __init__(self, files: Sequence[str], languages: Languages) -> None:
        """Store the arguments and read nothing yet; `languages` is passed to `placed_pairs`."""
        self.files, self.languages = files, languages
        self.count = 0
        """The number of pairs that `profile` has read."""

    def profile(self, advance: Callable[[int], None]) -> Profile:
        """Read all pairs and return the profile of a sample of them.

        Args:
            advance: called with the number of pairs read since the last call.

        Raises:
            UserError: a file is unreadable, or there are no pairs.
        """

        def counted_pairs() -> Iterator[Pair]:
            for placed_pair in self._pairs(_ignore):
                self.count += 1
                if self.count % PROGRESS_STEP == 0:
                    advance(PROGRESS_STEP)
                yield placed_pair.pair

        sample = reservoir_sample(counted_pairs(), SAMPLE, seed=1)
        if not sample:
            raise UserError("holds no sentence pairs", file=self.files[0], fix="Is this the right file?")
        return Profile.of(sample, self.languages)

    def judged(self, cleaner: Cleaner) -> Iterator[JudgedPair]:
        """Yield all pairs and, where they occur, the lines that are not pairs."""
        bad_lines: list[BadLine] = []
        for judged in cleaner.judge(self._pairs(bad_lines.append)):
            yield from _unreadable(bad_lines)
            yield judged
        yield from _unreadable(bad_lines)

    def _pairs(self, on_bad: Callable[[BadLine], None]) -> Iterator[PlacedPair]:
        return placed_pairs(*self.files, languages=self.languages, on_bad=on_bad)


def _ignore(bad: BadLine) -> None:
    """Ignore a bad line at the first reading; `judged` reports it."""


def _unreadable(bad_lines: list[BadLine]) -> Iterator[JudgedPair]:
    """Yield the bad lines since the last pair, and forget them."""
    for file, line, what, text in bad_lines:
        yield JudgedPair(file, line, Pair(text, ""), UNREADABLE, what)
    bad_lines.clear()


WINDOW = 2048
"""The number of pairs that are scored at a time; a pair is compared with the pair half a window away."""
MIN_GAIN = 0.22
"""The smallest gain of a pair that is kept; docs/cleaning.md explains the choice."""

CrossEntropy: TypeAlias = Callable[[Sequence[Pair]], Sequence[float | None]]
"""A function that returns -log p(target | source) of each pair in nats, None if the pair is too long for the model."""


def gains(pairs: Sequence[Pair], forward: CrossEntropy, backward: CrossEntropy) -> list[float | None]:
    """Return the gain of each pair, None if a pair is too long for a model.

    Args:
        pairs: at least two, because each is compared with another one.
        forward: the cross-entropy of a model from source to target.
        backward: the cross-entropy of a model from target to source; its pairs begin with the target.
    """
    half = len(pairs) // 2
    other_pairs = [*pairs[half:], *pairs[:half]]
    unrelated, unrelated_back = [], []
    for pair, other_pair in zip(pairs, other_pairs, strict=True):
        unrelated.append(Pair(other_pair.source, pair.target))
        unrelated_back.append(Pair(other_pair.target, pair.source))
    right = zip(forward(pairs), backward([pair.swapped for pair in pairs]), strict=True)
    wrong = zip(forward(unrelated), backward(unrelated_back), strict=True)
    return list(map(_gain, right, wrong))


def _gain(right: tuple[float | None, float | None], wrong: tuple[float | None, float | None]) -> float | None:
    """Return the gain of a pair from its cross-entropies (forward, backward) with the right and a wrong other side."""
    forward, backward = right
    wrong_forward, wrong_backward = wrong
    if forward is None or backward is None or wrong_forward is None or wrong_backward is None:
        return None
    return 1 - (forward + backward) / max(wrong_forward + wrong_backward, 1e-9)


def judge_by_gain(
    judged: Iterable[JudgedPair], forward: CrossEntropy, backward: CrossEntropy, min_gain: float = MIN_GAIN
) -> Iterator[JudgedPair]:
    """Yield all pairs; reject those that passed the rules but have too small a gain, as `gains` returns it."""
    for window in batched(judged, WINDOW):
        accepted = [index for index, judgement in enumerate(window) if not judgement.rule]
        if len(accepted) > 1:  # a single pair can't be compared with another one
            scores = gains([window[index].pair for index in accepted], forward, backward)
            for index, gain in zip(accepted, scores, strict=True):
                if gain is not None and gain < min_gain:
                    what = f"the sides explain {100 * max(gain, 0):.0f} % of each other"
                    window[index] = window[index]._replace(rule=MODEL, what=what)
        yield from window
