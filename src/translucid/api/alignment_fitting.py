"""Train an alignment layer for a run on word links, and save it in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from translucid.api.scoring import save_alignment_options
from translucid.api.translator import Translator
from translucid.data.languages import Languages
from translucid.data.readers.corpus import Pair
from translucid.engines.run_files import save_alignment_layer
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, alignment_score, read_gold
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.inspection.alignment import Linked, learn_alignment, linked, read_alignment, updates_for
from translucid.inspection.forced_decoding import forced_decoding
from translucid.runs.corpus_files import pairs_of
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""The least number of pairs for training and evaluation."""
HELD_OUT = 10
"""One pair in so many is held out."""


class LearnedAlignment(NamedTuple):
    """The result of training an alignment layer."""

    pairs: int
    """The number of training pairs."""
    held_out: int
    """The number of pairs that were held out for evaluation."""
    skipped: int
    """The number of pairs without links, or too long, or whose words are different for the tokenizer."""
    scores: dict[AlignmentOptions, AlignmentScore]
    """The scores of alignments from the attention and from the alignment layer, on held-out pairs, the better first."""

    @property
    def chosen(self) -> AlignmentOptions:
        """The better way to align words; the attention if both have the same error rate."""
        return next(iter(self.scores))

    @property
    def kept(self) -> bool:
        """Whether the alignment layer is better, and was saved."""
        return self.chosen.learned


def fit_alignment(
    run: Path,
    *,
    links: str | Path,
    pairs: Sequence[str] = (),
    languages: Languages = (None, None),
    console: Console,
    device: str = "auto",
) -> LearnedAlignment:
    """Train an alignment layer for a run, and save it if it is better than the run's attention.

    Args:
        run: the run folder.
        links: word links, see `read_gold`.
        pairs: files of the pairs whose words are linked; by default the file of links itself, a .jsonl.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        console: shows the progress.
        device: auto, cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: the run or a file is damaged, the model has no attention, or there are too few pairs.
    """
    t = Translator.load(run, device, "torch", source=languages[0], target=languages[1])
    data, reading = t.configuration.data, t.configuration.alignment
    if not t.can_look():
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Give another run.")
    if data.reverse:
        raise UserError("word links are for runs that read pairs as they stand", file=run, fix="Give another run.")
    texts = list(pairs_of(data, *(pairs or [str(links)])))
    gold = read_gold(links, texts)
    usable = _linked(t, texts, gold)
    if len(usable) < FEWEST:
        what = f"holds {len(usable)} pairs that can be learned from"
        raise UserError(what, file=links, fix=f"Give {FEWEST} or more.")
    # Those held out are spread over the file, whose parts may come from different texts.
    learned, ids, references = [], [], []
    for i, (pair, right) in enumerate(usable):
        if i % HELD_OUT:
            learned.append(pair)
        else:
            ids.append((pair.source, pair.target))
            references.append(right)
    with counting(console, "learning where words belong", updates_for(learned)) as advance:
        layer = learn_alignment(t.model, learned, t.device, advance)
    inspected = forced_decoding(t.model, t.tokenizer, ids, t.device, layer=layer)
    scores = {}
    for options in (reading.of(taught=False), AlignmentOptions(both=reading.both)):
        scores[options] = alignment_score([read_alignment(inspection, options) for inspection in inspected], references)
    # Sorting is stable: the attention stays the first if both have the same error rate.
    ranked = dict(sorted(scores.items(), key=lambda item: item[1].error_rate))
    alignment = LearnedAlignment(len(learned), len(references), len(texts) - len(usable), ranked)
    if alignment.kept:
        save_alignment_layer(RunFolder(run), layer, data.chosen_languages)
        save_alignment_options(run, ranked)
    return alignment


def _linked(t: Translator, texts: Sequence[Pair], gold: Sequence[Gold]) -> list[tuple[Linked, Gold]]:
    """Return the usable pairs with links between their pieces, and with their links between words."""
    usable = []
    for text, pair, right in zip(texts, t.pipeline.pairs(texts), gold, strict=True):
        if right.possible and pair.longest <= t.longest:
            words = len(text.source.split()), len(text.target.split())
            pair_links = linked(t.tokenizer, *pair.ids, right, words)
            if pair_links:
                usable.append((pair_links, right))
    return usable
