"""A model that is made to write given targets: how likely it finds them, and where it looks meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from translucid.data.text_pipeline import EncodedPair, TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration

if TYPE_CHECKING:
    import torch

    from translucid.data.placeholders import Masked
    from translucid.decoding.alignment_layer import AlignmentLayer
    from translucid.decoding.pair_scores import PairScore
    from translucid.evaluation.report import Forced
    from translucid.inspection.inspected import Inspected
    from translucid.models.protocol import SequenceModel

INSPECTED = 256
"""Pairs inspected together."""


class Examiner:
    """What a translator can tell of translations that others made (forced decoding)."""

    pipeline: TextPipeline
    """Makes of texts what the model reads."""
    configuration: Configuration

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, for its languages."""
        return self.pipeline.tokenizer

    @property
    def longest(self) -> int:
        """Source tokens, end token included, that are translated in one piece: what the model has seen in training."""
        return self.pipeline.longest

    @property
    def run(self) -> str:
        """The run folder."""
        raise NotImplementedError

    @property
    def model(self) -> SequenceModel:
        """In evaluation mode."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        raise NotImplementedError

    @property
    def alignment_layer(self) -> AlignmentLayer | None:
        """What `tune --alignments` has taught, if it has and it holds."""
        return None

    @property
    def heads(self) -> dict[str, int]:
        """The attention maps that the model has by name, and how many heads each has."""
        return self.configuration.model.maps

    def can_look(self) -> bool:
        """Whether the model has attention between source and target, without which there is no alignment."""
        return self.configuration.model.looks

    def inspect(self, pairs: Sequence[tuple[str, str]], *, first: int = 1) -> list[Inspected]:
        """Watch the model write given targets for given sources, word for word (forced decoding).

        Args:
            pairs: of texts.
            first: the number of the first pair, for messages.

        Raises:
            TypeError: this is one pair.
            UserError: a text is longer than the model takes in one piece.
        """
        _refuse_one_pair(pairs)
        return self.inspect_encoded(self.pipeline.pairs(pairs), first=first)

    def inspect_encoded(self, pairs: Sequence[EncodedPair], *, first: int = 1) -> list[Inspected]:
        """Do so with pairs that the text pipeline has encoded; see `inspect`."""
        for number, pair in enumerate(pairs, first):
            if self.model.max_length and pair.longest > self.model.max_length:
                what = f"pair {number} has {pair.longest} tokens, the model takes {self.model.max_length}"
                raise UserError(what, fix="Split it into sentences.")
        ids = [pair.ids for pair in pairs]
        masked = [pair.masked for pair in pairs]
        return self.forced_decoding(ids, masked)

    def forced_decoding(
        self, pairs: Sequence[tuple[list[int], list[int]]], masked: Sequence[Masked] = ()
    ) -> list[Inspected]:
        """Do so with pairs of source and target ids, end tokens included; `masked`: the sources, to be shown."""
        from translucid.inspection.forced_decoding import forced_decoding

        layer, run = self.alignment_layer, self.run
        return forced_decoding(self.model, self.tokenizer, pairs, self.device, layer=layer, run=run, masked=masked)

    def inspect_all(
        self, pairs: Sequence[tuple[str, str]], on_done: Callable[[int], None] | None = None
    ) -> Iterator[Inspected]:
        """Do the same for any number of pairs, with the maps of a few in memory; `on_done` is told of each part."""
        for first in range(0, len(pairs), INSPECTED):
            part = pairs[first : first + INSPECTED]
            yield from self.inspect(part, first=first + 1)
            if on_done:
                on_done(len(part))

    def forced_scores(
        self, pairs: Sequence[tuple[str, str]], on_done: Callable[[int], None] | None = None
    ) -> tuple[Forced | None, int]:
        """Return how the model finds given targets for given sources, and how many pairs are too long to be asked.

        The former is None if all are.

        Args:
            pairs: of texts.
            on_done: called with the number of pairs done after each batch.
        """
        from translucid.decoding.pair_scores import forced_scores, perplexity
        from translucid.evaluation.report import Forced

        encoded = self.pipeline.pairs(pairs)
        kept = [pair.ids for pair in encoded if pair.longest <= self.longest]
        told = len(self.tokenizer.target_opening)
        entropy, correct, tokens = forced_scores(self.model, kept, self.device, on_batch=on_done, told=told)
        forced = Forced(perplexity(-entropy, tokens), correct / tokens, tokens) if tokens else None
        return forced, len(encoded) - len(kept)

    @overload
    def score(self, source: str, target: str) -> PairScore: ...
    @overload
    def score(self, source: list[str], target: list[str]) -> list[PairScore]: ...
    def score(self, source: str | list[str], target: str | list[str]) -> PairScore | list[PairScore]:
        """Return how likely the model finds a given translation of a text, or several of several.

        Raises:
            TypeError: one is a text, and the other several.
            ValueError: there are more of the one than of the other.
            UserError: a source is blank, or a text is longer than the model takes in one piece.
        """
        from translucid.decoding.pair_scores import all_scored, score_pairs

        if isinstance(source, str) != isinstance(target, str):
            raise TypeError("one source is scored with one target, and a list of sources with a list of targets")
        if not isinstance(source, str) and len(source) != len(target):
            raise ValueError(f"{len(source)} sources and {len(target)} targets: each source needs one target")
        pairs: Any = [(source, target)] if isinstance(source, str) else list(zip(source, target, strict=True))
        found = all_scored(score_pairs(self.model, self.pipeline, pairs, self.device))
        return found[0] if isinstance(source, str) else found


def _refuse_one_pair(pairs: Sequence[object]) -> None:
    """Check that this is a list of pairs, not one pair: its letters would be taken for texts."""
    if isinstance(pairs, str) or any(isinstance(pair, str) for pair in pairs):
        raise TypeError("a list of pairs is wanted, not one pair: write [(source, target)]")
