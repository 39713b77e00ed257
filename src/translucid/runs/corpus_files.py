"""Where a run's sentence pairs come from: files, read again whenever they are needed, or lists."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from random import Random
from typing import TypeAlias

from translucid.data.filtering import Filter, Skipped, keep, reservoir_sample
from translucid.data.readers.bad_lines import BadLines, OnBad
from translucid.data.readers.corpus import Pair, SyntheticPair, TargetText, read_pairs, sides
from translucid.data.readers.texts import keep_texts, read_texts
from translucid.ground.errors import UserError
from translucid.ground.reading import digest
from translucid.runs.data_options import DataOptions

Reader: TypeAlias = Callable[..., Iterator[Pair]]
"""`read_pairs`, or `read_texts`, whose pairs are of a text and its label."""

HELD_OUT = 1000
"""Training pairs kept for validation when no validation file is given, but never more than 2 % of them."""


@dataclass(frozen=True)
class Corpora:
    """The pairs of a run. None of them need fit into the memory but those for validation."""

    train: Sequence[Iterable[Pair]]
    """The training corpora, unfiltered; each is read from its beginning several times."""
    valid: Sequence[Pair]
    """What the training is validated with."""
    digest: str
    """Another training text gives another one."""
    held_out: bool = False
    """Whether `valid` was taken from the training corpora."""
    bad: BadLines | None = None
    """Told of lines that are no pairs, if those are to be skipped."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file, those to train on first."""
    general: Sequence[Pair] = ()
    """Pairs of what the model could do before it was fine-tuned, to validate with as well."""

    @classmethod
    def of(cls, train: Sequence[Pair], valid: Sequence[Pair]) -> Corpora:
        """Return corpora that are in memory."""
        digest = hashlib.sha256()
        for pair in train:
            digest.update(json.dumps(pair).encode())
        return cls([train], valid, digest.hexdigest())

    def kept(self, wanted: Filter, skipped: Skipped | None = None) -> Iterator[Pair]:
        """Yield the training pairs that are fit for use, corpus after corpus."""
        return keep(chain.from_iterable(self.train), wanted, skipped or Skipped())


class _Files:
    """The pairs of one corpus, without those one side of which is held out."""

    def __init__(self, name: str, held: Collection[str], bad: BadLines | None, read: Reader, side: int = 0) -> None:
        self.name, self.held, self.bad, self.read, self.side = name, held, bad, read, side

    def __iter__(self) -> Iterator[Pair]:
        pairs = self.read(self.name, on_bad=self.bad)
        return (pair for pair in pairs if pair[self.side] not in self.held) if self.held else pairs


def pairs_of(options: DataOptions, *files: str, on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the pairs of files as a run reads them: the source is what its model is to translate.

    Raises:
        UserError: see `read_pairs`.
    """
    pairs = read_pairs(*files, languages=(options.source_language, options.target_language), on_bad=on_bad)
    return (pair.swapped for pair in pairs) if options.reverse else pairs


def _synthetic(file: str, on_bad: OnBad = None) -> Iterator[Pair]:
    return (SyntheticPair(*pair) for pair in read_pairs(file, on_bad=on_bad))


def _target_texts(file: str, on_bad: OnBad = None) -> Iterator[Pair]:
    return (TargetText.of(text.source) for text in read_texts(file, on_bad=on_bad))


def read_corpora(
    options: DataOptions,
    seed: int,
    held_out: Sequence[Pair] | None = None,
    *,
    texts: bool = False,
    needs_training_text: bool = True,
) -> Corpora:
    """Find a run's corpora; what is validated with is read, and so is all if some of it has to be held out for that.

    Args:
        options: the files, and which pairs are kept.
        seed: decides which pairs are held out.
        held_out: those that were held out before.
        texts: whether the files hold texts, with labels or without, and no sentence pairs.
        needs_training_text: whether pairs to validate with alone are not enough.

    Raises:
        UserError: a file is unreadable, or nothing is left of one.
    """
    if not options.train and needs_training_text:
        raise UserError("there is nothing to train on", fix="Give --train FILES, or data.train in the configuration.")
    if not options.train and not options.valid:
        what = "the run does not say which files it was trained on"
        raise UserError(what, fix="Give --valid FILES, and --train FILES if you have them.")
    every = [*options.train, *options.synthetic, *options.target_text]
    corpora = len(every)
    every += options.mix
    if options.weights and len(options.weights) != corpora:
        weights = len(options.weights)
        raise UserError(f"data.weights has {weights} numbers for {corpora} corpora", fix="Give one for each.")
    bad = BadLines() if options.skip_bad else None
    read: Reader = read_texts if texts else partial(pairs_of, options)

    def fit(pairs: Iterable[Pair], skipped: Skipped) -> Iterator[Pair]:
        return keep_texts(pairs, skipped) if texts else keep(pairs, options.filter, skipped)

    def validating(files: Sequence[str]) -> list[Pair]:
        first = bad.first.append if bad else None
        pairs = list(fit(read(*files, on_bad=first), Skipped()))
        if files and not pairs:
            what, fix = ("texts", "Check the file.") if texts else ("sentence pairs", "See `translucid data stats`.")
            raise UserError(f"no {what} are left", file=files[0], fix=fix)
        return pairs

    general = validating(options.valid_general)
    if options.valid:
        valid: Sequence[Pair] = validating(options.valid)
    elif held_out is None:
        valid = _hold_out(lambda skipped: fit(read(*options.train, on_bad=bad), skipped), seed, labels=texts)
    else:
        valid = held_out
    held = set() if options.valid else {pair.source for pair in valid}
    train = [_Files(name, held, bad, read) for name in options.train]
    held_targets = set() if options.valid else {pair.target for pair in valid}
    train += [_Files(name, held_targets, bad, _synthetic, side=1) for name in options.synthetic]
    train += [_Files(name, held_targets, bad, _target_texts, side=1) for name in options.target_text]
    train += [_Files(name, held, bad, read) for name in options.mix]
    text = hashlib.sha256("".join(sorted(held)).encode("utf-8", "surrogatepass"))
    hashes = {str(file): digest(file) for name in every for file in sides(name)}
    marks = [b"reversed" if options.reverse else b""] * len(options.train)
    marks += [b"synthetic"] * len(options.synthetic) + [b"target text"] * len(options.target_text)
    marks += [b"mixed in" + (b", reversed" if options.reverse else b"")] * len(options.mix)
    for mark, name in zip(marks, every, strict=True):
        text.update(mark)
        for file in sides(name):
            text.update(bytes.fromhex(hashes[str(file)]))
    hashes |= {str(file): digest(file) for name in (*options.valid, *options.valid_general) for file in sides(name)}
    return Corpora(train, valid, text.hexdigest(), not options.valid, bad, hashes, general)


def _hold_out(read: Callable[[Skipped], Iterator[Pair]], seed: int, *, labels: bool) -> list[Pair]:
    """Draw some pairs to validate with, and take all pairs that share their sources: none of them is trained on.

    Args:
        read: reads all pairs, and counts them.
        seed: decides which are drawn.
        labels: whether the targets are labels, of each of which something has to be left to learn from.

    Raises:
        UserError: there are too few, or all are alike.
    """
    skipped = Skipped()
    drawn = reservoir_sample(read(skipped), HELD_OUT, seed)
    total, count = skipped.kept, min(HELD_OUT, skipped.kept // 50)
    Random(seed).shuffle(drawn)
    groups: dict[str, list[Pair]] = {pair.source: [] for pair in drawn}
    left: Counter[str] = Counter()
    for pair in read(Skipped()):
        left[pair.target if labels else ""] += 1
        if pair.source in groups:
            groups[pair.source].append(pair)
    held: list[Pair] = []
    # A group that is too large, such as a line that stands in every file, is left to be learned from.
    for largest in (count, total // 2 if count else 0):
        for group in groups.values():
            if (held and len(held) + len(group) > count) or len(group) > largest:
                continue
            taken = Counter(pair.target if labels else "" for pair in group)
            if all(left[label] > number for label, number in taken.items()):
                left -= taken
                held += group
        if held:
            return held
    why = "too much alike" if count else "too few"
    raise UserError(f"{total} lines are {why} to hold some out", fix="Give validation files with --valid.")
