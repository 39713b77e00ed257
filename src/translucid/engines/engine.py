"""The interface of the engines that search for translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis


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
