"""What searches for translations: our own search, or another engine behind the same door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Protocol, Self

import torch
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.batched import decode_sentences
from translucid.decoding.constraints import Constraints
from translucid.decoding.decoding_options import CandidateVocabulary, DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.pair_scores import pair_scores
from translucid.decoding.search import search
from translucid.decoding.shortlist import Shortlist, read_shortlist
from translucid.decoding.trace import BeamTrace
from translucid.models.protocol import SequenceModel


class Engine(Protocol):
    """Finds outputs for sentences of any lengths."""

    name: str
    device_type: str
    """Where it works: cpu, cuda or mps."""

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return the same engine, whose outputs begin as the targets of a tokenizer do."""

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each sentence, best first, at least one, in the order given.

        Args:
            sentences: source ids, each ending in the end token; one that is nothing else gives the empty output.
            options: how to search.
            on_batch: called now and then with the number of sentences done since.
            numbers: of the sentences, which decide with the seed what sampling draws; 0, 1, .. if not given.

        Raises:
            UserError: the model's output is not a number.
        """

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token, in nats, when the model is made to write given outputs.

        `pairs`: source and target ids, both with the end token. What every output begins with is left out.
        """


class TorchEngine:
    """Our own search, for every model, device and option."""

    name = "torch"

    def __init__(
        self,
        model: SequenceModel,
        word_starts: Tensor,
        device: torch.device,
        considered: CandidateVocabulary = "all pieces",
        shortlist: Shortlist | None = None,
        opening: Sequence[int] = (),
    ) -> None:
        """Put together an engine.

        Args:
            model: any.
            word_starts: [V] boolean, True where a piece begins a word.
            device: where the model is.
            considered: the target pieces that are considered.
            shortlist: says which they are, if not all; see `decode_sentences`.
            opening: what every output begins with; see `decode_sentences`.
        """
        self.model, self.word_starts, self.device = model, word_starts, device
        self.considered, self.shortlist, self.opening = considered, shortlist, opening
        self.device_type = device.type

    def opened(self, tokenizer: Tokenizer) -> Self:
        """See `Engine`."""
        opened = copy(self)
        opened.opening = tokenizer.target_opening
        return opened

    def __str__(self) -> str:
        """Say what it is and what it considers."""
        return f"{self.name}, float32, {self.considered}"

    @classmethod
    def of(cls, model: SequenceModel, tokenizer: Tokenizer, device: torch.device) -> TorchEngine:
        """Return our search for a model and its tokenizer."""
        starts = torch.tensor(tokenizer.target_word_starts(), device=device)
        return cls(model, starts, device, opening=tokenizer.target_opening)

    def narrowed(self, considered: CandidateVocabulary, shortlist: Path | None, tokenizer: Tokenizer) -> TorchEngine:
        """Return the same that considers only pieces of a shortlist, a file that `translucid tune` has written, if any.

        Raises:
            UserError: there is no such file, or it is damaged.
        """
        if not shortlist:
            return self
        listed = read_shortlist(shortlist, tokenizer)
        return TorchEngine(self.model, self.word_starts, self.device, considered, listed, self.opening)

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
        constraints: Constraints | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`; `constraints`: what each output has to have."""
        return decode_sentences(
            self.model,
            sentences,
            options,
            word_starts=self.word_starts,
            shortlist=self.shortlist,
            device=self.device,
            on_batch=on_batch,
            numbers=numbers,
            opening=self.opening,
            constraints=constraints,
        )

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        scores = pair_scores(self.model, pairs, self.device, told=len(self.opening))
        return [one.log_probabilities for one in scores]

    def traced(self, ids: list[int], options: DecodingOptions) -> tuple[BeamTrace, Hypothesis]:
        """Return what a beam search of one sentence of source ids considered on its way, and what it found."""
        trace, begun = BeamTrace(), self.opening
        source = torch.tensor([ids], device=self.device)
        ((best,),) = search(self.model, source, options, self.word_starts, prefix=begun, told=len(begun), trace=trace)
        return trace, best
