"""An engine that shows a model what a memory has that is like its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.ground.special import SPECIAL
from translucid.memory.augmenting import behind
from translucid.memory.translation_memory import TranslationMemory

if TYPE_CHECKING:
    from translucid.engines.engine import Engine


class FuzzyMatchEngine:
    """Searches with another engine, for sources that have the translation of a near match behind them.

    The model has to be trained with data.fuzzy_matches.
    """

    def __init__(
        self, engine: Engine, memory: TranslationMemory, tokenizer: Tokenizer, least: int, longest: int
    ) -> None:
        """Put one together.

        Args:
            engine: any.
            memory: to be looked up in, sentence by sentence.
            tokenizer: the model's.
            least: percent that a match has.
            longest: source tokens that the model takes, end token included.
        """
        self.engine, self.memory, self.tokenizer = engine, memory, tokenizer
        self.least, self.longest = least, longest
        self.name, self.device_type = engine.name, engine.device_type

    def opened(self, tokenizer: Tokenizer) -> FuzzyMatchEngine:
        """See `Engine`."""
        return FuzzyMatchEngine(self.engine.opened(tokenizer), self.memory, tokenizer, self.least, self.longest)

    def __str__(self) -> str:
        """Say what searches and where matches come from."""
        return f"{self.engine}, with near matches of {self.memory.file.name}"

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`."""
        return self.engine.decode([self._with_match(ids) for ids in sentences], options, on_batch, numbers)

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        return self.engine.forced([(self._with_match(source), target) for source, target in pairs])

    def _with_match(self, ids: list[int]) -> list[int]:
        """Return a sentence with its match, if there is one and the model takes both."""
        text = self.tokenizer.decode_source(ids)
        found = self.memory.matches(text, self.least, most=1)
        if not found or SPECIAL.unknown in ids:
            return ids
        (longer,) = self.tokenizer.encode_source([behind(text, found[0])])
        return ids if len(longer) >= self.longest else [*longer, SPECIAL.end]
