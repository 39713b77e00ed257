"""Train an alignment layer for a run on word links, and save it in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bitext.languages import Languages
from translucid.api.alignment_choice import FEWEST, SEED, statistically_linked, usable_pairs
from translucid.api.scoring import save_alignment_options
from translucid.api.translator import Translator
from translucid.engines.run_files import save_alignment_layer
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, read_gold
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.alignment import AlignmentExample, choose, learn_alignment, updates_for
from translucid.inspection.forced_decoding import forced_decoding
from translucid.runs.corpus_files import pairs_of
from translucid.runs.guided_alignment import taught_readings
from translucid.runs.run_folder import RunFolder

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
    if not t.can_look():
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Give another run.")
    if links:
        training_pairs, held_out, pair_count = _pairs_by_gold(t, links, pairs)
    else:
        with console.status("linking words by statistics"):
            training_pairs, held_out, pair_count = _pairs_by_statistics(t, pairs, valid)
    with progress_bar(console, "training the alignment layer", updates_for(training_pairs)) as advance:
        layer = learn_alignment(t.model, training_pairs, t.device, advance)
    ids = [pair.ids for pair in held_out]
    guided_readings = taught_readings(t.configuration)
    contributions = t.has_contributions and not guided_readings
    inspected = forced_decoding(t.model, t.tokenizer, ids, t.device, layer=layer, with_contributions=contributions)
    # Gold links are few, too few to choose among many options.
    reading = t.configuration.alignment
    candidates = []
    if links:
        candidates = [reading.of(has_layer=False), AlignmentOptions(both=reading.both)]
    elif guided_readings:
        candidates = [*guided_readings, AlignmentOptions(both=True), AlignmentOptions(both=False)]
    ranked = choose(inspected, [pair.links for pair in held_out], candidates)
    alignment = LearnedAlignment(
        len(training_pairs), len(held_out), pair_count - len(training_pairs) - len(held_out), ranked
    )
    if alignment.kept:
        save_alignment_layer(RunFolder(run), layer, t.configuration.data.chosen_languages)
    if alignment.kept or not links:
        save_alignment_options(run, ranked)
    return alignment


class _HeldOutPair(NamedTuple):
    """A pair on which alignments are compared."""

    ids: tuple[list[int], list[int]]
    """The ids of both sides, end tokens included."""
    links: Gold
    """The links between its words."""


def _pairs_by_gold(
    t: Translator, links: str | Path, files: Sequence[str]
) -> tuple[list[AlignmentExample], list[_HeldOutPair], int]:
    """Return pairs with gold links to learn from, others to compare alignments on, and the number of pairs given.

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
    return training_pairs, held_out, len(texts)


def _pairs_by_statistics(
    t: Translator, train: Sequence[str], valid: Sequence[str]
) -> tuple[list[AlignmentExample], list[_HeldOutPair], int]:
    """Return pairs with statistical links to learn from, others to compare on, and the number of both.

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
    return training_pairs, held_out, len(texts.pairs) + len(validation.pairs)


def _refuse_few(usable: Sequence[object], file: str | Path) -> None:
    """Check that there are enough pairs.

    Raises:
        UserError: there are too few.
    """
    if len(usable) < FEWEST:
        what = f"holds {len(usable)} pairs that can be learned from"
        raise UserError(what, file=file, fix=f"Give {FEWEST} or more.")
