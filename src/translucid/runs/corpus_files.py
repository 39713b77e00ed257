"""The corpora of a run: files that are read again whenever they are needed, or lists."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from bitext.languages import Languages
from bitext.pair import Pair
from bitext.readers.lines import OnBad
from bitext.reading import digest
from bitext.words import normalized_text
from translucid.data.filtering import Filter, Skipped, keep, reservoir_sample
from translucid.data.readers.corpus import BadLines, SyntheticPair, TargetText, sides
from translucid.data.readers.test_sets import is_test_set
from translucid.data.readers.texts import keep_texts, read_texts
from translucid.ground.errors import UserError
from translucid.runs.data_options import DataOptions
from translucid.runs.directions import DirectedCorpus
from translucid.runs.guided_alignment import LinkFile, link_files

Reader: TypeAlias = Callable[..., Iterator[Pair]]
"""A function that reads the pairs of a corpus, or the pairs of a text and its label; it has the argument `on_bad`."""

HELD_OUT = 1000
"""Training pairs that are held out if there is no validation file, but at most 2 % of them."""


@dataclass(frozen=True)
class Corpora:
    """The pairs of a run; only those for validation are in memory."""

    train: Sequence[Iterable[Pair]]
    """The training corpora, unfiltered; each is read from its beginning several times."""
    valid: Sequence[Pair]
    """The validation pairs."""
    digest: str
    """A digest that differs for other training text."""
    held_out: bool = False
    """Whether `valid` was taken from the training corpora."""
    bad: BadLines | None = None
    """Counts and writes lines that are not pairs, if they are skipped."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file, training files first."""
    general: Mapping[Languages, Sequence[Pair]] = field(default_factory=dict)
    """Validation pairs for what the model could do before it was fine-tuned, by direction."""
    directions: Sequence[Languages] = ()
    """The languages of each of `train`, if files were read."""
    names: Sequence[str] = ()
    """The file of each of `train`, if files were read; one that is read in both directions is there twice."""
    valid_by_direction: Mapping[Languages, Sequence[Pair]] = field(default_factory=dict)
    """The validation pairs of each direction of a multilingual run."""

    @classmethod
    def of(cls, train: Sequence[Pair], valid: Sequence[Pair]) -> Corpora:
        """Return corpora of pairs in memory."""
        digest = hashlib.sha256()
        for pair in train:
            digest.update(json.dumps(pair).encode())
            if pair.document is not None:
                digest.update(str(pair.document).encode())
        return cls([train], valid, digest.hexdigest())

    def writing_bad_lines(self, file: Path) -> AbstractContextManager[None]:
        """Write the bad lines of the training corpora to a file, if they are skipped."""
        if self.bad is None:
            return nullcontext()
        return self.bad.written_to(file)

    @property
    def texts(self) -> dict[frozenset[str | None], list[int]]:
        """The indices of the training corpora of each language pair; a file that is read in both directions once.

        If it can be, a file is read in the direction of the first corpus of its pair.
        """
        names: Sequence[object] = self.names or range(len(self.directions))
        readings = set(zip(names, self.directions, strict=True))
        first: dict[frozenset[str | None], Languages] = {}
        texts: dict[frozenset[str | None], list[int]] = {}
        for index, (name, direction) in enumerate(zip(names, self.directions, strict=True)):
            pair = frozenset(direction)
            preferred = first.setdefault(pair, direction)
            if direction == preferred or (name, preferred) not in readings:
                texts.setdefault(pair, []).append(index)
        return texts

    def filtered(self, pair_filter: Filter, skipped: Skipped | None = None) -> Iterator[Pair]:
        """Yield the training pairs that pass the filter, corpus after corpus."""
        return keep(chain.from_iterable(self.train), pair_filter, skipped or Skipped())


class _Files:
    """The pairs of one corpus, without those whose normalized source, or target if `side` is 1, is in `held_out`."""

    def __init__(
        self,
        read: Reader,
        held_out: Collection[str],
        bad_lines: BadLines | None,
        side: int = 0,
        links: LinkFile | None = None,
    ) -> None:
        self.read, self.held_out, self.bad_lines, self.side, self.links = read, held_out, bad_lines, side, links

    def __iter__(self) -> Iterator[Pair]:
        pairs = self.read(on_bad=self.bad_lines)
        if self.links:
            pairs = self.links.of(pairs)
        for pair in pairs:
            if not self.held_out or normalized_text(pair[self.side]) not in self.held_out:
                yield pair


def count_pairs(options: DataOptions, most: int) -> int:
    """Return the number of training and synthetic pairs that pass the filter; counting stops at `most`.

    Raises:
        UserError: a file can't be read, as for `read_pairs`.
    """
    bad = BadLines() if options.skip_bad else None
    pairs = chain.from_iterable(corpus.pairs(bad) for corpus in options.corpora([*options.train, *options.synthetic]))
    return sum(1 for _ in islice(keep(pairs, options.filter, Skipped()), most))


def pairs_of(options: DataOptions, *files: str, on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the pairs of files in the direction in which a run's model translates.

    Raises:
        UserError: no file has the languages of the model, or a file or a line can't be read, as for `read_pairs`.
    """
    for corpus in corpora_of(options, files):
        yield from corpus.pairs(on_bad)


def corpora_of(options: DataOptions, files: Sequence[str]) -> list[DirectedCorpus]:
    """Return files as corpora in the directions in which a run's model translates.

    A test set of sacreBLEU is read in its own direction only: the one of the other direction may have other texts. If
    one of the languages of a multilingual model is chosen, only directions from or to this language count.

    Raises:
        UserError: there are files, but none in such a direction.
    """
    corpora = [corpus for corpus in options.corpora(files) if not (corpus.swapped and is_test_set(corpus.name))]
    if files and not corpora:
        source, target = options.languages
        what = f"has no pairs from {source or 'any language'} to {target or 'any language'}"
        fix = "Choose other languages, or correct those after the names of files."
        if is_test_set(files[0]) and source and target:
            fix = f"Give a test set of this direction, with {source}-{target} in its name."
        raise UserError(what, file=files[0], fix=fix)
    return corpora


def _synthetic(corpus: DirectedCorpus, on_bad: OnBad = None) -> Iterator[Pair]:
    return map(SyntheticPair.of, corpus.pairs(on_bad))


def _target_texts(file: str, on_bad: OnBad = None) -> Iterator[Pair]:
    return (TargetText.of(text.source) for text in read_texts(file, on_bad=on_bad))


def read_corpora(
    options: DataOptions,
    seed: int,
    held_out: Sequence[Pair] | None = None,
    *,
    texts: bool = False,
    needs_training_text: bool = True,
    with_links: bool = False,
) -> Corpora:
    """Return a run's corpora. The validation pairs are read; if they must be held out, so is all training text.

    Args:
        options: the files, and the filter for their pairs.
        seed: determines which pairs are held out.
        held_out: the pairs that were held out before.
        texts: whether the files contain texts, with labels or without, instead of sentence pairs.
        needs_training_text: whether validation pairs alone are not enough.
        with_links: whether a pair whose file has word links is a `LinkedPair`.

    Raises:
        UserError: a file is unreadable, or no pairs of it are left.
    """
    _refuse_missing(options, needs_training_text)
    bad = BadLines() if options.skip_bad else None
    reading = _Reading(options, texts, bad)
    general = reading.validation(options.valid_general, options.general_corpora)
    by_direction = reading.validation(options.valid, options.corpora(options.valid))
    valid: Sequence[Pair] = list(chain.from_iterable(by_direction.values()))
    sources, targets = set[str](), set[str]()  # of the pairs that are held out
    if not options.valid:
        valid = held_out or []
        if held_out is None:
            valid = _hold_out(reading.training, seed, labels=texts)
        for pair in valid:
            sources.add(pair.source)
            targets.add(pair.target)
    excluded = set(map(normalized_text, sources)), set(map(normalized_text, targets))
    train, names, directions = _training_corpora(reading, *excluded, link_files(options) if with_links else {})
    hashes = _hashes([*options.train, *options.synthetic, *options.target_text, *options.mix])
    text = _digest_of_training_text(options, sources, hashes)
    if options.train_alignments:
        hashes |= _hashes(options.train_alignments)
        text = _joined_digest(text, hashes, options.train_alignments)
    hashes |= _hashes([*options.valid, *options.valid_general])
    return Corpora(train, valid, text, not options.valid, bad, hashes, general, directions, names, by_direction)


class _Reading(NamedTuple):
    """How the files of a run are read."""

    options: DataOptions
    texts: bool
    """Whether they contain texts instead of sentence pairs."""
    bad: BadLines | None

    def reader(self, corpus: DirectedCorpus) -> Reader:
        """Return a function that reads a corpus."""
        return partial(read_texts, corpus.name) if self.texts else corpus.pairs

    def filtered(self, pairs: Iterable[Pair], skipped: Skipped) -> Iterator[Pair]:
        """Yield the pairs that pass the filter."""
        return keep_texts(pairs, skipped) if self.texts else keep(pairs, self.options.filter, skipped)

    def training(self, skipped: Skipped) -> Iterator[Pair]:
        """Yield the pairs of `data.train` that pass the filter."""
        for corpus in self.options.corpora(self.options.train):
            yield from self.filtered(self.reader(corpus)(on_bad=self.bad), skipped)

    def validation(self, files: Sequence[str], corpora: Iterable[DirectedCorpus]) -> dict[Languages, list[Pair]]:
        """Return the pairs of validation files that pass the filter, by direction; `corpora` is how they are read.

        Raises:
            UserError: none are left.
        """
        on_bad = self.bad.validation_lines.append if self.bad else None
        pairs: dict[Languages, list[Pair]] = {}
        for corpus in corpora:
            pairs.setdefault(corpus.direction, []).extend(self.filtered(self.reader(corpus)(on_bad=on_bad), Skipped()))
        if files and not (pairs and all(pairs.values())):
            what, fix = "sentence pairs", "See `translucid data stats`."
            if self.texts:
                what, fix = "texts", "Check the file."
            raise UserError(f"no {what} are left", file=files[0], fix=fix)
        return pairs


def _training_corpora(
    reading: _Reading, sources: Collection[str], targets: Collection[str], link_paths: Mapping[str, str]
) -> tuple[list[_Files], list[str], list[Languages]]:
    """Return the training corpora with their names and directions.

    Args:
        reading: how they are read.
        sources: the normalized sources of the pairs that are held out.
        targets: the normalized targets of these pairs.
        link_paths: the file with the word links of each corpus that has one, by name.
    """
    options, bad = reading.options, reading.bad

    def links_of(corpus: DirectedCorpus) -> LinkFile | None:
        path = link_paths.get(corpus.name)
        return LinkFile(path, corpus.swapped) if path else None

    corpora, mixed = options.corpora(options.train), options.corpora(options.mix)
    synthetic = options.corpora(options.synthetic, as_written=True)
    train = [_Files(reading.reader(corpus), sources, bad, links=links_of(corpus)) for corpus in corpora]
    # The source of synthetic pairs was written by a model, so only their targets can be compared.
    for corpus in synthetic:
        train.append(_Files(partial(_synthetic, corpus), targets, bad, side=1, links=links_of(corpus)))
    train += [_Files(partial(_target_texts, name), targets, bad, side=1) for name in options.target_text]
    train += [_Files(reading.reader(corpus), sources, bad, links=links_of(corpus)) for corpus in mixed]
    texts = [DirectedCorpus(name, options.languages, swapped=False) for name in options.target_text]
    used = [*corpora, *synthetic, *texts, *mixed]
    return train, [corpus.name for corpus in used], [corpus.direction for corpus in used]


def _refuse_missing(options: DataOptions, needs_training_text: bool) -> None:
    """Check that there are files, and as many weights as corpora."""
    if not options.train and needs_training_text:
        raise UserError("there is nothing to train on", fix="Give `train=FILES`, or data.train in the configuration.")
    if options.context and not options.valid:
        what = "data.context needs validation files: pairs that are held out would be missing in the documents"
        raise UserError(what, fix="Give whole documents with `valid`.")
    if not options.train and not options.valid:
        what = "the run does not say which files it was trained on"
        raise UserError(what, fix="Give `valid=FILES`, and `train=FILES` if you have them.")
    corpora = len(options.train) + len(options.synthetic) + len(options.target_text)
    if options.weights and len(options.weights) != corpora:
        weights = len(options.weights)
        raise UserError(f"data.weights has {weights} numbers for {corpora} corpora", fix="Give one for each.")


def _hashes(names: Iterable[str]) -> dict[str, str]:
    return {str(file): digest(file) for file in chain.from_iterable(map(sides, names))}


def _digest_of_training_text(options: DataOptions, held_out: Collection[str], hashes: Mapping[str, str]) -> str:
    """Return a digest of all training files, of how each is used, and of the sources that are held out."""
    text = hashlib.sha256("".join(sorted(held_out)).encode("utf-8", "surrogatepass"))
    # Checkpoints contain the digest, so the marks and their order must stay.
    uses = [
        (b"reversed" if options.reverse else b"", options.train),
        (b"synthetic", options.synthetic),
        (b"target text", options.target_text),
        (b"mixed in, reversed" if options.reverse else b"mixed in", options.mix),
    ]
    for mark, names in uses:
        for name in names:
            text.update(mark)
            if options.is_multilingual:
                for corpus in options.corpora([name]):
                    text.update(repr(corpus.direction).encode())
            for file in sides(name):
                text.update(bytes.fromhex(hashes[str(file)]))
    return text.hexdigest()


def _joined_digest(text: str, hashes: Mapping[str, str], links: Sequence[str]) -> str:
    """Return a digest of training text, given its digest, and of files with word links."""
    return hashlib.sha256("".join([text, *(hashes[file] for file in links)]).encode()).hexdigest()


def _hold_out(read: Callable[[Skipped], Iterator[Pair]], seed: int, *, labels: bool) -> list[Pair]:
    """Draw validation pairs, with all other pairs of the same sources, so that none of their sources is trained on.

    Args:
        read: a function that reads and counts all pairs.
        seed: determines which pairs are drawn.
        labels: whether the targets are labels; some texts of each label are then left for training.

    Raises:
        UserError: there are too few pairs, or too many of them have the same source.
    """

    def label_of(pair: Pair) -> str:
        return pair.target if labels else ""

    skipped = Skipped()
    sample = reservoir_sample(read(skipped), HELD_OUT, seed)
    total, count = skipped.kept, min(HELD_OUT, skipped.kept // 50)
    Random(seed).shuffle(sample)
    groups: dict[str, list[Pair]] = {normalized_text(pair.source): [] for pair in sample}
    remaining: Counter[str] = Counter()
    for pair in read(Skipped()):
        remaining[label_of(pair)] += 1
        if (key := normalized_text(pair.source)) in groups:
            groups[key].append(pair)
    held_out: list[Pair] = []
    # Groups that are too large, such as a line that is in every file, stay in the training text; if there are no
    # others, up to half of all pairs may be held out.
    for max_size in (count, total // 2 if count else 0):
        for group in groups.values():
            if (held_out and len(held_out) + len(group) > count) or len(group) > max_size:
                continue
            group_counts = Counter(map(label_of, group))
            if all(remaining[label] > number for label, number in group_counts.items()):
                remaining -= group_counts
                held_out += group
        if held_out:
            return held_out
    reason = "too much alike" if count else "too few"
    raise UserError(f"{total} lines are {reason} to hold some out", fix="Give validation files with `valid`.")
