"""Which words belong together, taught to a run: an alignment layer that learns from word links, kept in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from translucid.api.scoring import save_alignment_options
from translucid.api.translator import Translator
from translucid.data.readers.corpus import Pair
from translucid.engines.alignment_file import save_alignment_layer
from translucid.engines.confidence_file import Languages
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, alignment_score, read_gold
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.inspection.alignment import read_alignment
from translucid.inspection.alignment_learning import Linked, learn_alignment, linked, updates_for
from translucid.inspection.forced_decoding import forced_decoding
from translucid.runs.corpus_files import pairs_of
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""Pairs, without which there is nothing to learn or to judge by."""
HELD_OUT = 10
"""One pair of so many is held out."""


class LearnedAlignment(NamedTuple):
    """What came of it, on pairs that were held out."""

    pairs: int
    """That it learned from."""
    held_out: int
    skipped: int
    """Pairs without links, too long, or whose words are others for the tokenizer."""
    ways: dict[AlignmentOptions, AlignmentScore]
    """How right alignments are, read off the attention and off the alignment layer; the better one comes first."""

    @property
    def chosen(self) -> AlignmentOptions:
        """The better one; the attention, where both are alike."""
        return next(iter(self.ways))

    @property
    def kept(self) -> bool:
        """Whether that is the alignment layer."""
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
    """Teach a run which words belong together; what it learned is kept if it is better than its attention.

    Args:
        run: its folder.
        links: word links, see `read_gold`.
        pairs: files of the pairs whose words they link; the file of links itself, a .jsonl, if not given.
        languages: codes of source and target, for a model that has many; as the run says if not given.
        console: where progress is shown.
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
    there = [(one, right) for one, right in zip(_linked(t, texts, gold), gold, strict=True) if one]
    if len(there) < FEWEST:
        raise UserError(f"holds {len(there)} pairs that can be learned from", file=links, fix=f"Give {FEWEST} or more.")
    learned, held_out = [one for i, (one, _) in enumerate(there) if i % HELD_OUT], there[::HELD_OUT]
    with counting(console, "learning where words belong", updates_for(learned)) as advance:
        layer = learn_alignment(t.model, learned, t.device, advance)
    seen = forced_decoding(
        t.model, t.tokenizer, [(one.source, one.target) for one, _ in held_out], t.device, layer=layer
    )
    ways = {
        way: alignment_score([read_alignment(one, way) for one in seen], [right for _, right in held_out])
        for way in (reading.of(taught=False), AlignmentOptions(both=reading.both))
    }
    ways = dict(sorted(ways.items(), key=lambda way: way[1].error_rate))
    found = LearnedAlignment(len(learned), len(held_out), len(texts) - len(there), ways)
    if found.kept:
        save_alignment_layer(RunFolder(run), layer, data.languages if data.tokenizer.languages else None)
        save_alignment_options(run, ways)
    return found


def _linked(t: Translator, texts: Sequence[Pair], gold: Sequence[Gold]) -> list[Linked | None]:
    """Return pairs with their links between pieces; None for those that nothing can be learned from."""
    found: list[Linked | None] = []
    for text, pair, right in zip(texts, t.pipeline.pairs(texts), gold, strict=True):
        words = len(text.source.split()), len(text.target.split())
        fits = right.possible and pair.longest <= t.longest
        found.append(linked(t.tokenizer, *pair.ids, right, words) if fits else None)
    return found
