"""The interface of the engines that search for translations, and the PyTorch engine."""

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
    """An engine that finds outputs for sentences of any length."""

    name: str
    device_type: str
    """The type of the device that it runs on: cpu, cuda or mps."""

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each sentence, at least one, the best first.

        Args:
            sentences: the source ids, each with the end token at its end; the end token alone gives the empty output.
            options: how to search.
            on_batch: called now and then with the number of sentences that were finished since the last call.
            numbers: the number of each sentence, on which sampling depends together with the seed; 0, 1, … by default.

        Raises:
            UserError: the model's log-probabilities are not finite.
        """

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token, in nats, by forced decoding.

        `pairs`: source and target ids, both with the end token. The prefix that all outputs share is left out.
        """


class TorchEngine:
    """The search in PyTorch, which runs every model on every device with every option."""

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
        """Search with a model.

        Args:
            model: any sequence model.
            word_starts: [V] boolean, True where a piece begins a word.
            device: the device of the model.
            considered: the name of the target pieces that are candidates.
            shortlist: lists these pieces, unless all pieces are candidates.
            opening: the target ids that every output begins with.
        """
        self.model, self.word_starts, self.device = model, word_starts, device
        self.considered, self.shortlist, self.opening = considered, shortlist, opening
        self.device_type = device.type

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""
        opened = copy(self)
        opened.opening = tokenizer.target_opening
        return opened

    def __str__(self) -> str:
        """Name the engine, the type of its weights and its candidates."""
        return f"{self.name}, float32, {self.considered}"

    @classmethod
    def of(cls, model: SequenceModel, tokenizer: Tokenizer, device: torch.device) -> TorchEngine:
        """Return the PyTorch engine for a model and its tokenizer."""
        starts = torch.tensor(tokenizer.target_word_starts(), device=device)
        return cls(model, starts, device, opening=tokenizer.target_opening)

    def narrowed(self, considered: CandidateVocabulary, shortlist: Path | None, tokenizer: Tokenizer) -> TorchEngine:
        """Return an engine whose candidates are the pieces of a shortlist that `translucid tune` has written.

        Raises:
            UserError: the shortlist does not exist or is damaged.
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
        """Search for each sentence; each output has to satisfy its `constraints`."""
        return decode_sentences(
            self.model,
            sentences,
            options,
            word_starts=self.word_starts,
            shortlist=self.shortlist,
            on_batch=on_batch,
            numbers=numbers,
            opening=self.opening,
            constraints=constraints,
        )

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token after the common prefix, in nats."""
        scores = pair_scores(self.model, pairs, self.device, prefix_length=len(self.opening))
        return [score.log_probabilities for score in scores]

    def traced(self, ids: list[int], options: DecodingOptions) -> tuple[BeamTrace, Hypothesis]:
        """Return the hypotheses that a beam search considers at each step, and the best one, for one sentence."""
        trace, prefix = BeamTrace(), self.opening
        source = torch.tensor([ids], device=self.device)
        # One sentence, and its best hypothesis.
        ((best,),) = search(
            self.model, source, options, self.word_starts, prefix=prefix, prefix_length=len(prefix), trace=trace
        )
        return trace, best
