"""Cleaning of a corpus: each pair is kept, or rejected by a rule that states its reason, and a report counts both.

The corpus is read twice: first for its profile of what is usual, such as its languages, its scripts, and the lengths of
its translations; then to judge each pair. A rule is a function that returns what is wrong with a pair, or "" if nothing
is wrong. Duplicates are found in a set of digests.

Models of both directions can judge whether the sides of a pair translate each other. Cross-entropy in both directions
separates good pairs from bad ones (Junczys-Dowmunt 2018, arXiv 1809.00197, equation 1), but it is high for short and
rare sentences even if they are right. So it is compared with the cross-entropy of the same sentence given the source of
another pair. With the models f and b, and the sides x' and y' of another pair,

    gain(x, y) = 1 - (H_f(y|x) + H_b(x|y)) / (H_f(y|x') + H_b(x|y'))

is the share of the cross-entropy that the right other side removes: about 0 if the sides are unrelated.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from ftfy import fix_encoding
from ftfy.badness import is_bad

from bitext.languages import Languages, short_code
from bitext.pair import Pair
from bitext.protected_spans import fixed_parts, is_non_translatable, lost_numbers, without_fixed
from bitext.readers.lines import BadLine
from bitext.words import normalized_text
from translucid.data.filtering import Filter, fault, reservoir_sample
from translucid.data.readers.corpus import PlacedPair, placed_pairs
from translucid.data.sentences import language_probabilities
from translucid.data.statistics import digest, digest_pair, script
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched

SAMPLE = 10_000
"""The number of pairs in the sample."""
GROUP_SIZE, MAX_GROUPS = 20, 100
"""The number of texts whose language is identified together, and the most such groups."""
MIN_SHARE = 0.05
"""The least share of the letters of a side that makes a script usual there."""
SLACK = 5
"""Characters that are added to both lengths, because the ratios of short texts vary more."""
MIN_PAIRS = 100
"""The fewest pairs from which the distribution of the ratio of lengths is estimated."""


@dataclass(frozen=True)
class Profile:
    """What is usual in a corpus."""

    languages: Languages
    scripts: tuple[frozenset[str], frozenset[str]]
    """The usual scripts of the source and of the target."""
    ratio: float = 0.0
    """The median of log(target / source characters)."""
    spread: float = math.inf
    """The standard deviation of that logarithm, from its quartiles, because bad pairs hardly change them."""

    @classmethod
    def of(cls, sample: Sequence[Pair], languages: Languages) -> Profile:
        """Return the profile of a sample; languages that are not given are identified."""
        sources = [pair.source for pair in sample if pair.source.strip()]
        targets = [pair.target for pair in sample if pair.target.strip()]
        source, target = languages
        profile = cls(
            (source or guess_language(sources), target or guess_language(targets)),
            (frozenset(_scripts(sources)), frozenset(_scripts(targets))),
        )
        ratios = [log_ratio(pair) for pair in sample if pair.source.strip() and pair.target.strip()]
        if len(ratios) < MIN_PAIRS:
            return profile
        low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        # The quartiles of a normal distribution are 1.349 standard deviations apart.
        return replace(profile, ratio=float(ratio), spread=float(high - low) / 1.349)


def log_ratio(pair: Pair) -> float:
    """Return log(target / source) of the lengths in characters, each with `SLACK`."""
    return math.log((len(pair.target.strip()) + SLACK) / (len(pair.source.strip()) + SLACK))


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the language of most texts, None if they have no letters.

    Groups of texts are identified together, because the language of a short text is uncertain.
    """
    votes: Counter[str] = Counter()
    for start in range(0, min(len(texts), GROUP_SIZE * MAX_GROUPS), GROUP_SIZE):
        group = " ".join(texts[start : start + GROUP_SIZE])
        if any(map(str.isalpha, group)):
            probabilities = language_probabilities(group)
            votes[max(probabilities, key=probabilities.__getitem__)] += 1
    return votes.most_common(1)[0][0] if votes else None


def known_language(code: str | None) -> str | None:
    """Return the ISO 639 code of a language, None if `language_probabilities` does not know it."""
    language = short_code(code) if code else ""
    return language if language and language in language_probabilities("a") else None


def _scripts(texts: Sequence[str]) -> list[str]:
    letters = Counter(filter(None, map(script, "".join(texts))))
    return [kind for kind, count in letters.items() if count >= MIN_SHARE * letters.total()]


Rule = Callable[[Pair], str]

_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff]")
"""The replacement character, control characters, and characters for private use, which each font draws differently."""
_QUESTION = re.compile(r"(?<!\?)\?++(?:\s*([^\W\d_])|[.,;:])")
"""A question mark with the letter or the punctuation after it."""
MAX_SHOWN = 200
"""The most characters of a text in a reason."""
_WORD = re.compile(r"[^\W\d_]+")
_ALIKE_SCRIPTS = {"LATIN", "CYRILLIC", "GREEK"}
"""Scripts with letters that look alike."""
_NO_SCRIPT = (None, "control", "private", "MODIFIER", "FEMININE", "MASCULINE")
"""Results of `script` that are not scripts of letters."""
ODD_LETTERS = 0.2
"""The largest share of a side's letters in scripts that are unusual there."""
COPIED, COPIED_WORDS = 0.8, 4
"""A target is a copy if it has at least this many distinct words, and this share of them is in the source."""
DEVIATIONS = 4.5
"""The most standard deviations between the log ratio of a pair's lengths and the median."""
LETTERS, LETTERS_OTHER = 15, 6
"""The fewest letters for which any language can be recognized, and for which that of the other side can."""
TIMES, TIMES_OTHER = 6.0, 3.0
"""How many times as probable as the right language another one must be, and the language of the other side."""
SHORT, SHORT_OTHER = 30, 15
"""The numbers of letters below which it must be even more probable: a button such as `Enlace roto` says little."""
TIMES_SHORT, TIMES_SHORT_OTHER = 30.0, 10.0
"""The factors for such short texts: of 13,895 right messages of programs, in 18 languages, they reject 3, not 21."""


def empty(pair: Pair) -> str:
    """Reject pairs with an empty side."""
    missing = [name for name, text in zip(pair._fields, pair, strict=True) if not text.strip()]
    return f"no {' and no '.join(missing)}" if missing else ""


def encoding(pair: Pair) -> str:
    """Reject characters that were read in the wrong encoding or lost."""
    for name, text, other_side in zip(pair._fields, pair, pair[::-1], strict=True):
        if broken := _BROKEN.search(text):
            return f"{name} has U+{ord(broken[0]):04X}"
        if not text.isascii() and is_bad(text):
            repaired = fix_encoding(text)
            suggestion = f": {repaired[:MAX_SHOWN]}" if repaired != text else ""
            return f"{name} was read in a wrong encoding{suggestion}"
        if excerpt := _letter_lost(without_fixed(text), other_side):
            return f"{name} has a question mark for a letter: {excerpt}"
    return ""


def _letter_lost(text: str, other_side: str) -> str:
    """Return the text around a question mark that replaces a letter, as in `espa?ol` and `est? bien`.

    The other side has fewer question marks, and no sentence ends there.
    """
    if text.count("?") <= other_side.count("?"):
        return ""
    for match in _QUESTION.finditer(text):
        letter = match[1]
        if letter is None or letter.islower() or match[0].endswith(f"?{letter}"):
            return text[max(0, match.start() - 10) : match.end() + 10]
    return ""


def untranslated(pair: Pair) -> str:
    """Reject targets that copy the source; single words, such as names, and fixed parts may be copied."""
    source = _WORD.findall(without_fixed(pair.source).casefold())
    target = _WORD.findall(without_fixed(pair.target).casefold())
    if len(target) < 2 or is_non_translatable(pair.source):
        return ""
    if source == target:
        return "the target is the source"
    distinct = set(target)
    if len(distinct) >= COPIED_WORDS and len(distinct & set(source)) >= COPIED * len(distinct):
        return "most words of the target are those of the source"
    return ""


def placeholders(pair: Pair) -> str:
    """Reject pairs with different placeholders, tags or addresses on both sides."""
    source, target = _checked_parts(pair.source), _checked_parts(pair.target)
    reasons = []
    if lost := source - target:
        reasons.append(f"lost {' '.join(lost)}")
    if invented := target - source:
        reasons.append(f"invented {' '.join(invented)}")
    return "; ".join(reasons)


def _checked_parts(text: str) -> Counter[str]:
    # Without character references, because `&amp;` may be translated to `&`.
    return Counter(part for part in fixed_parts(text) if not part.startswith("&"))


def numbers(pair: Pair) -> str:
    """Reject numbers that replace others. A missing number alone is accepted, because 2 may become `two`."""
    lost = lost_numbers(pair.source, pair.target, shortest=1, whole=False)
    invented = lost_numbers(pair.target, pair.source, shortest=1, whole=False)
    return f"{' '.join(lost)} became {' '.join(invented)}" if lost and invented else ""


def rules(profile: Profile, limits: Filter) -> dict[str, Rule]:
    """Return all rules by name, in the order in which they are applied."""

    def too_long(pair: Pair) -> str:
        """Reject sides that are too long for any model."""
        longest = max(map(len, pair))
        return f"{longest:,} characters" if longest > limits.max_characters else ""

    def length(pair: Pair) -> str:
        """Reject pairs whose ratio of lengths is unusual in the corpus."""
        if fault(pair, limits) == "unequal":
            return f"{len(pair.source)} and {len(pair.target)} characters"
        deviations = (log_ratio(pair) - profile.ratio) / max(profile.spread, 0.05)
        return f"{deviations:+.1f} deviations from the usual ratio of lengths" if abs(deviations) > DEVIATIONS else ""

    return {
        "empty": empty,
        "too-long": too_long,
        "encoding": encoding,
        "script": partial(_unusual_script, profile),
        "untranslated": untranslated,
        "language": partial(_wrong_language, tuple(map(known_language, profile.languages))),
        "length": length,
        "placeholders": placeholders,
        "numbers": numbers,
    }


def _unusual_script(profile: Profile, pair: Pair) -> str:
    """Reject letters of scripts that are unusual on a side, unless the other side has them too."""
    for name, text, other_side, usual in zip(pair._fields, pair, pair[::-1], profile.scripts, strict=True):
        if text.isascii() and "LATIN" in usual:
            continue
        letters = [letter for letter in text if script(letter) not in _NO_SCRIPT]
        unusual = [letter for letter in letters if script(letter) not in usual and letter not in other_side]
        if not unusual:
            continue
        if len(unusual) > ODD_LETTERS * len(letters):
            return f"{name} has letters of {script(unusual[0])}: {''.join(unusual)[:20]}"
        for word in _WORD.findall(text):
            if len(_ALIKE_SCRIPTS & set(map(script, word))) > 1 and len(word) > 2:
                return f"{name} has letters of two scripts in one word: {word}"
    return ""


def _wrong_language(codes: Sequence[str | None], pair: Pair) -> str:
    """Reject sides in another language than those with these codes."""
    for name, text, code, other_code in zip(pair._fields, pair, codes, codes[::-1], strict=True):
        words = _unshared_words(text, pair)
        letters = sum(map(str.isalpha, words))
        if code is None or code == other_code or letters < LETTERS_OTHER:
            continue
        probabilities = language_probabilities(words[:2000])
        candidates = []
        if letters >= LETTERS:
            likeliest = max(probabilities, key=probabilities.__getitem__)
            candidates.append((likeliest, TIMES if letters >= SHORT else TIMES_SHORT))
        if other_code:
            candidates.append((other_code, TIMES_OTHER if letters >= SHORT_OTHER else TIMES_SHORT_OTHER))
        for candidate, factor in candidates:
            if probabilities[candidate] > factor * probabilities[code]:
                return f"{name} looks like {candidate}, not like {code}"
    return ""


def _unshared_words(text: str, pair: Pair) -> str:
    """Return a side without its fixed parts, and without words that are on both sides, such as names."""
    common = set(_WORD.findall(pair.source.casefold())) & set(_WORD.findall(pair.target.casefold()))
    return _WORD.sub(lambda word: "" if word[0].casefold() in common else word[0], without_fixed(text))


UNREADABLE, MODEL = "unreadable", "model"
"""The rules for lines that are not pairs, and for pairs that the models reject."""
RULES = (
    *("excluded", "empty", "too-long", "encoding", "script", "untranslated", "language", "length", "placeholders"),
    *("numbers", "duplicate", "near-duplicate", MODEL),
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
