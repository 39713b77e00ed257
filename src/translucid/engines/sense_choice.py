"""The choice among the senses of a term: the one whose example sentence is most similar to the sentence.

The similarity is the cosine of two vectors: the means of the encoder's states of all words but the term itself. What
surrounds an ambiguous word shows its meaning, as in the nearest neighbors of contextual embeddings (Peters et al. 2018,
arXiv 1802.05365, section 5.3). Each sentence is encoded alone, so that a batch never changes a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitext.words import folded, words_in, words_without_signs
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.kernels.machine import has_pytorch
from translucid.terminology.glossary import Term
from translucid.terminology.matching import ChosenSense, OtherSense, Span

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine

Vector: TypeAlias = NDArray[np.float32]
ENCODED = 10_000
"""The number of sentences whose vectors are kept."""


class SenseChooser:
    """Chooses senses by the states of one model's encoder."""

    def __init__(self, torch_engine: Callable[[], TorchEngine], tokenizer: Tokenizer, longest: int) -> None:
        """Use the encoder of a PyTorch engine, which is loaded for the first choice.

        Args:
            torch_engine: returns the engine.
            tokenizer: the model's tokenizer.
            longest: the maximum length in tokens; of longer texts, only the beginning is read.
        """
        self.torch_engine, self.tokenizer, self.longest = torch_engine, tokenizer, longest
        self._vector = lru_cache(ENCODED)(self._encoded)

    def __call__(self, senses: Sequence[Sequence[Term]], text: str, span: Span) -> tuple[int, ChosenSense]:
        """Return the number of the sense of the term at a span of a text, and why.

        Without an example in at least two of the senses, without other words in the text, or without PyTorch, the first
        sense is chosen.
        """
        examples = [dict.fromkeys(term.example for term in sense if term.example) for sense in senses]
        vector = None
        if sum(map(bool, examples)) > 1 and has_pytorch():
            vector = self._vector(text, *span)
        similarities: dict[int, tuple[float, str]] = {}
        if vector is not None:
            for number, sense_examples in enumerate(examples):
                for example in sense_examples:
                    other = self._vector(example, *_span_of(senses[number][0].source, example))
                    if other is not None:
                        row = (_cosine(vector, other), example)
                        similarities[number] = max(similarities.get(number, row), row, key=lambda row: row[0])
        if len(similarities) < 2:
            return 0, ChosenSense("first", senses[0][0].domain)
        # Of equal similarities, the first one: `max` keeps it.
        best = max(similarities, key=lambda number: similarities[number][0])
        others = []
        for number, (similarity, _) in similarities.items():
            if number != best:
                others.append(OtherSense(senses[number][0].target, round(similarity, 4)))
        similarity, example = similarities[best]
        return best, ChosenSense("example", senses[best][0].domain, example, round(similarity, 4), tuple(others))

    def _encoded(self, text: str, start: int, end: int) -> Vector | None:
        """Return the mean state [D] of the words of a text outside of a span; None if there are none."""
        if not words_without_signs(f"{text[:start]} {text[end:]}"):
            return None
        import torch

        before, until = text[:start].rstrip(), text[:end]
        ids, before_ids, until_ids = self.tokenizer.encode_source([text, before, until])
        opening = len(self.tokenizer.source_opening)
        ids = [*ids[: self.longest - 1], SPECIAL.end]
        outside = np.ones(len(ids), bool)
        outside[:opening] = outside[-1:] = False
        outside[max(len(before_ids), opening) : len(until_ids)] = False
        if not outside.any():
            return None
        engine = self.torch_engine()
        with torch.inference_mode():
            memory = engine.model.encode(torch.tensor([ids], device=engine.device))
        states: Vector = memory.states[0].float().cpu().numpy()
        return states[: len(ids)][outside].mean(0)


def _span_of(source: str, example: str) -> Span:
    """Return the span of a term in an example; an empty one if it has another form there."""
    words, term = words_in(example), folded(words_in(source))
    texts = folded(words)
    for index in range(len(words) - len(term) + 1):
        if texts[index : index + len(term)] == term:
            return words[index].start, words[index + len(term) - 1].end
    return 0, 0


def _cosine(first: Vector, second: Vector) -> float:
    return float(first @ second) / max(float(np.linalg.norm(first) * np.linalg.norm(second)), 1e-12)
