"""How a run aligns words: the best reading of its attention, and an alignment layer trained on word links.

Without gold links, both use statistical links: readings are compared by their agreement with them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from bitext.languages import Languages
from bitext.pair import Pair
from bitext.words import linked_words
from translucid.api.evaluation.scoring import save_alignment_options
from translucid.api.translator import Translator
from translucid.data.filtering import Skipped, keep, reservoir_sample
from translucid.data.readers.corpus import BadLines, sides
from translucid.data.text_pipeline import EncodedPair
from translucid.engines.run_files import save_alignment_layer
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, read_gold
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.alignment import (
    AlignmentExample,
    candidates,
    choose,
    learn_alignment,
    link_pieces,
    updates_for,
)
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.statistical_alignment import statistical_links
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import pairs_of, read_corpora
from translucid.runs.data_options import DataOptions
from translucid.runs.guided_alignment import guided_readings
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""The least number of pairs to choose by."""
FEWEST_LINKED = 1000
"""The least number of pairs from which statistical links are learned."""
CORPUS, READ = 20_000, 1_000_000
"""The number of training pairs from which statistical links are learned, sampled from this number of first pairs."""
COMPARED = 200
"""The number of validation pairs on which alignments are compared, and of longer texts that consist of such pairs."""
LONG = 40
"""The largest number of source words of these longer texts, unless a single pair has more."""
SEED = 1


class TooFewPairsError(UserError):
    """There are too few pairs to learn links from."""


class LinkedPairs(NamedTuple):
    """Sentence pairs and the links between their words."""

    pairs: list[Pair]
    links: list[Gold]

    def __add__(self, others: LinkedPairs) -> LinkedPairs:  # type: ignore[override]
        """Concatenate both."""
        return LinkedPairs(self.pairs + others.pairs, self.links + others.links)

    def first(self, count: int) -> LinkedPairs:
        """Return the first pairs."""
        return LinkedPairs(self.pairs[:count], self.links[:count])

    def joined(self, count: int, seed: int) -> LinkedPairs:
        """Return longer texts, each of which consists of pairs drawn at random, up to a random length.

        Models align long sentences worse than short ones, and statistical links don't. Where long sentences are rare,
        only joined pairs show how a model aligns them.
        """
        generator = random.Random(seed)
        long = LinkedPairs([], [])
        for _ in range(count):
            max_words = generator.randint(1, LONG)
            pair, links = Pair("", ""), Gold(frozenset(), frozenset())
            while True:
                index = generator.randrange(len(self.pairs))
                words = len(linked_words(self.pairs[index].source))
                if pair.source and len(linked_words(pair.source)) + words > max_words:
                    break
                links = _joined_links(links, self.links[index], pair)
                pair = Pair(*(" ".join(texts) for texts in zip(pair, self.pairs[index], strict=True)))
            long.pairs.append(pair)
            long.links.append(links)
        return long


def _joined_links(links: Gold, next_links: Gold, preceding: Pair) -> Gold:
    """Return links with those of a pair that follows the pair `preceding`."""
    source, target = len(linked_words(preceding.source)), len(linked_words(preceding.target))
    sure = {(s + source, t + target) for s, t in next_links.sure}
    possible = {(s + source, t + target) for s, t in next_links.possible}
    return Gold(links.sure | sure, links.possible | possible)


def corpus_of(t: Translator, train: Sequence[str] = (), valid: Sequence[str] = ()) -> tuple[list[Pair], list[Pair]]:
    """Return a random sample of a run's training pairs, and validation pairs.

    Args:
        t: the run's translator.
        train: files of training pairs; the run's own by default.
        valid: files of validation pairs; the run's own by default.

    Raises:
        UserError: there are no such files, or they can't be read.
    """
    data = t.configuration.data
    files = {"train": [*train] or data.train, "valid": [*valid] or data.validation_files, "weights": None}
    options, held_out = data.model_copy(update=files), RunFolder(Path(t.run)).held_out()
    corpora = read_corpora(options, t.configuration.training.seed, held_out, needs_training_text=False)
    sample = _sampled(corpora.filtered(data.filter))
    return sample, [pair for pair in corpora.valid if pair.source.strip() and pair.target.strip()]


def training_sample(options: DataOptions) -> list[Pair]:
    """Return a random sample of the training pairs that are there; of a run that was moved, all files may be missing.

    Args:
        options: the data of the run.
    """
    names = [name for name in options.train if all(map(Path.is_file, sides(name)))]
    bad = BadLines() if options.skip_bad else None
    pairs = chain.from_iterable(corpus.pairs(bad) for corpus in options.corpora(names))
    return _sampled(keep(pairs, options.filter, Skipped()))


def _sampled(pairs: Iterable[Pair]) -> list[Pair]:
    return reservoir_sample(islice(pairs, READ), CORPUS, SEED)


def statistically_linked(
    t: Translator, train: Sequence[str] = (), valid: Sequence[str] = (), *, training_pairs: int = 0
) -> tuple[LinkedPairs, LinkedPairs]:
    """Return training pairs and validation pairs of a run with statistical links.

    Args:
        t: the run's translator.
        train: files of training pairs; the run's own by default.
        valid: files of validation pairs; the run's own by default.
        training_pairs: the number of training pairs to return.

    Raises:
        TooFewPairsError: there are too few pairs.
        UserError: there are no such files, or they can't be read.
    """
    corpus, compared = corpus_of(t, train, valid)
    compared = compared[:COMPARED]
    if len(compared) + len(corpus) < FEWEST_LINKED:
        what = f"has {len(compared) + len(corpus):,} pairs, too few to learn links from"
        raise TooFewPairsError(what, file=Path(t.run), fix=f"Give {FEWEST_LINKED:,} or more with `train=FILES`.")
    result_pairs = compared + corpus[:training_pairs]
    links = statistical_links([*compared, *corpus], len(result_pairs))
    end = len(compared)
    return LinkedPairs(result_pairs[end:], links[end:]), LinkedPairs(result_pairs[:end], links[:end])


def choose_alignment(
    run: Path, *, languages: Languages = (None, None), console: Console, device: str = "auto"
) -> dict[AlignmentOptions, AlignmentScore]:
    """Choose how alignments are read from a run's attention, by agreement with statistical links, and save that.

    After guided alignment, they are always read from the head that it taught: from one side, or from both.

    Args:
        run: the run folder.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        console: shows the progress.
        device: auto, cpu, cuda, cuda:1 or mps.

    Returns:
        The score of each way to read alignments, the best first; nothing if there are too few pairs to choose by.

    Raises:
        UserError: the run is damaged, or its files do not exist.
    """
    t = Translator.load(run, device, "torch", source=languages[0], target=languages[1])
    if not t.inspector.has_cross_attention:
        return {}
    with console.status("choosing the attention from which alignments are read", is_long=True):
        try:
            valid = statistically_linked(t)[1]
        except TooFewPairsError:
            return {}
        compared = usable_pairs(t, *(valid + valid.joined(len(valid.pairs), SEED)))
        if len(compared) < FEWEST:
            return {}
        ids = [EncodedPair(pair.source, pair.target) for pair, _ in compared]
        guided = guided_readings(t.configuration)
        inspected = t.inspector.forced_decoding(ids, contributions=t.inspector.has_contributions and not guided)
        ranked = choose(inspected, [links for _, links in compared], guided)
        save_alignment_options(t, ranked, valid.pairs)
    return ranked


def usable_pairs(t: Translator, texts: Sequence[Pair], gold: Sequence[Gold]) -> list[tuple[AlignmentExample, Gold]]:
    """Return pairs with links between their pieces, and with their links between words.

    Pairs without links are left out, as are those that are too long, or whose words the tokenizer splits differently.
    """
    usable = []
    for text, pair, gold_links in zip(texts, t.pipeline.pairs(texts), gold, strict=True):
        if gold_links.possible and pair.longest <= t.pipeline.longest:
            words = len(linked_words(text.source)), len(linked_words(text.target))
            pair_links = link_pieces(t.tokenizer, *pair.ids, gold_links, words)
            if pair_links:
                usable.append((pair_links, gold_links))
    return usable


LEARNED = 4000
"""The number of texts with statistical links to learn from."""
HELD_OUT = 10
"""One pair in so many is held out."""


class LearnedAlignment(NamedTuple):
    """The result of training an alignment layer."""

    pairs: int
    """The number of training pairs."""
    held_out: int
    """The number of pairs that were held out for evaluation."""
    skipped: int
    """The number of pairs without links, or too long, or whose words the tokenizer splits differently."""
    scores: dict[AlignmentOptions, AlignmentScore]
    """The score of each way of reading alignments on held-out pairs, the best first."""

    @property
    def chosen(self) -> AlignmentOptions:
        """The best way to align words; the attention if the alignment layer has the same error rate."""
        return next(iter(self.scores))

    @property
    def kept(self) -> bool:
        """Whether the alignment layer is better, and was saved."""
        return self.chosen.learned


def fit_alignment(
    run: Path,
    *,
    links: str | Path | None = None,
    pairs: Sequence[str] = (),
    valid: Sequence[str] = (),
    languages: Languages = (None, None),
    console: Console,
    device: str = "auto",
) -> LearnedAlignment:
    """Train an alignment layer for a run, and save it if it is better than the run's attention.

    Args:
        run: the run folder.
        links: word links, see `read_gold`; without them, statistical links are learned from training pairs.
        pairs: files of the pairs whose words are linked; by default the file of links itself, a .jsonl. Without links,
            files of training pairs; the run's own by default.
        valid: without links, files of the validation pairs on which alignments are compared; the run's own by default.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        console: shows the progress.
        device: auto, cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: the run or a file is damaged, the model has no attention, or there are too few pairs.
    """
    t = Translator.load(run, device, "torch", source=languages[0], target=languages[1])
    if not t.inspector.has_cross_attention:
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Give another run.")
    if links:
        training_pairs, held_out, texts, pair_count = _pairs_by_gold(t, links, pairs)
    else:
        with console.status("linking words by statistics"):
            training_pairs, held_out, texts, pair_count = _pairs_by_statistics(t, pairs, valid)
    with progress_bar(console, "training the alignment layer", updates_for(training_pairs)) as advance:
        layer = learn_alignment(t.model, training_pairs, t.device, advance)
    ids = [EncodedPair(*pair.ids) for pair in held_out]
    guided = guided_readings(t.configuration)
    contributions = t.inspector.has_contributions and not guided
    inspected = forced_decoding(t.model, t.tokenizer, ids, t.device, layer=layer, with_contributions=contributions)
    # Gold links are few, too few to choose among many options.
    reading = t.configuration.alignment
    candidates = []
    if links:
        candidates = [reading.of(has_layer=False), AlignmentOptions(both=reading.both)]
    elif guided:
        candidates = [*guided, AlignmentOptions(both=True), AlignmentOptions(both=False)]
    ranked = choose(inspected, [pair.links for pair in held_out], candidates)
    alignment = LearnedAlignment(
        len(training_pairs), len(held_out), pair_count - len(training_pairs) - len(held_out), ranked
    )
    if alignment.kept:
        save_alignment_layer(RunFolder(run), layer, t.configuration.data.chosen_languages)
    if alignment.kept or not links:
        with console.status("choosing when live translation writes"):
            save_alignment_options(t, ranked, texts)
    return alignment


def scored_readings(
    translator: Translator, pairs: Sequence[Pair], links: Sequence[Gold]
) -> dict[AlignmentOptions, AlignmentScore]:
    """Score every way to read a model's attention as word alignments by gold links, the best first."""
    inspected = translator.inspector.inspect(pairs, contributions=translator.inspector.has_contributions)
    return choose(inspected, links, [*candidates(inspected[0]), *guided_readings(translator.configuration)])


def fit_reading(
    run: Path,
    links: Path,
    *,
    pairs: Sequence[str] = (),
    languages: Languages = (None, None),
    device: str = "auto",
) -> dict[AlignmentOptions, AlignmentScore]:
    """Choose by gold links how a run's attention is read as word alignments, save it, and return the scores of all.

    Args:
        run: the run folder.
        links: word links, see `read_gold`.
        pairs: files of the pairs whose words are linked; by default the file of links itself, a .jsonl.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        device: auto, cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: the run or a file is damaged, the model has no attention, or its run reads pairs in reverse.
    """
    translator = Translator.load(run, device, source=languages[0], target=languages[1])
    refuse_reversed(run, translator.configuration)
    if not translator.inspector.has_cross_attention:
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Give another run.")
    examples = list(pairs_of(translator.configuration.data, *(pairs or [str(links)])))
    scores = scored_readings(translator, examples, read_gold(links, examples))
    save_alignment_options(translator, scores, examples)
    return scores


def refuse_reversed(run: Path, configuration: Configuration) -> None:
    """Check that a run reads pairs as they stand, as gold links between their words do.

    Raises:
        UserError: it reads them in reverse.
    """
    if configuration.data.reverse:
        fix = "Give them for a run of the other direction."
        raise UserError("gold word links are for runs that read pairs as they stand", file=run, fix=fix)


class _HeldOutPair(NamedTuple):
    """A pair on which alignments are compared."""

    ids: tuple[list[int], list[int]]
    """The ids of both sides, end tokens included."""
    links: Gold
    """The links between its words."""


def _pairs_by_gold(
    t: Translator, links: str | Path, files: Sequence[str]
) -> tuple[list[AlignmentExample], list[_HeldOutPair], list[Pair], int]:
    """Return pairs with gold links to learn from, others to compare alignments on, their texts, and the number of all.

    The texts are those of all pairs: the held-out ones are few, and live translation needs no links.

    Raises:
        UserError: a file is damaged, or there are too few pairs.
    """
    data = t.configuration.data
    if data.reverse:
        what = "word links are for runs that read pairs as they stand"
        raise UserError(what, file=Path(t.run), fix="Give another run.")
    texts = list(pairs_of(data, *(files or [str(links)])))
    usable = usable_pairs(t, texts, read_gold(links, texts))
    _refuse_few(usable, links)
    # Those held out are spread over the file, whose parts may come from different texts.
    training_pairs, held_out = [], []
    for i, (pair, gold) in enumerate(usable):
        if i % HELD_OUT:
            training_pairs.append(pair)
        else:
            held_out.append(_HeldOutPair((pair.source, pair.target), gold))
    return training_pairs, held_out, texts, len(texts)


def _pairs_by_statistics(
    t: Translator, train: Sequence[str], valid: Sequence[str]
) -> tuple[list[AlignmentExample], list[_HeldOutPair], list[Pair], int]:
    """Return pairs with statistical links to learn from, others to compare on, the validation pairs, and the number.

    Raises:
        UserError: a file is damaged, or there are too few pairs.
    """
    linked_train, linked_valid = statistically_linked(t, train, valid, training_pairs=LEARNED)
    # Longer texts teach and show how to align long sentences, also where the pairs are short.
    texts = linked_train.joined(LEARNED, SEED)
    training_pairs = [pair for pair, _ in usable_pairs(t, *texts)]
    _refuse_few(training_pairs, "the training text")
    held_out = []
    validation = linked_valid + linked_valid.joined(len(linked_valid.pairs), SEED)
    for pair, gold in usable_pairs(t, *validation):
        held_out.append(_HeldOutPair((pair.source, pair.target), gold))
    _refuse_few(held_out, "the validation text")
    return training_pairs, held_out, linked_valid.pairs, len(texts.pairs) + len(validation.pairs)


def _refuse_few(usable: Sequence[object], file: str | Path) -> None:
    """Check that there are enough pairs.

    Raises:
        UserError: there are too few.
    """
    if len(usable) < FEWEST:
        what = f"holds {len(usable)} pairs that can be learned from"
        raise UserError(what, file=file, fix=f"Give {FEWEST} or more.")
