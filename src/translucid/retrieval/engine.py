"""The engine that searches with retrieval: it finds similar segments of a memory, and keeps their keys.

For each sentence, the at most 16 most similar segments are looked up, as in the cache of Dai et al. (2023, arXiv
2302.12188). A sentence without any is left to the engine of the translator, which costs nothing.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self

from bitext.documents.document import RetrievedWord
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.data.batching import batches, padded
from translucid.data.formality import may_be
from translucid.data.text_pipeline import Piece
from translucid.data.tokenizing.pieces import MATCH, TERM
from translucid.decoding.decoding_options import SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.combinations import KNN, refuse_together
from translucid.engines.stages import Part
from translucid.ground.errors import UserError
from translucid.kernels.machine import require_pytorch
from translucid.kernels.upload import upload
from translucid.memory.opening import open_memory
from translucid.retrieval.mixture import Datastore, Keys, Mixture
from translucid.retrieval.model import RetrievalModel, keys_of
from translucid.retrieval.words import retrieved_words

if TYPE_CHECKING:
    from translucid.api.translator import Translator
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.decoding.search import TorchEngine

SEGMENTS = 16
"""The largest number of similar segments of a sentence."""
MIN_PERCENT = 30
"""The percentage from which a segment is similar, as in `docs/memory.md`."""
MIXTURE = Mixture(bandwidth=0.05, reach=0.6, weight=0.8)
"""T, R and λ₀ by default; see docs/claims/26-corrections.md for how they were chosen."""
BATCH_TOKENS = 4096
"""The number of tokens in a batch of pairs, padding included."""
KEPT_KEYS = 1 << 16
"""The number of keys that are kept, 128 MiB for a width of 512; those of the least recently used pairs are dropped."""
KEPT_SENTENCES = 1 << 12
"""The number of sentences whose similar segments are kept until the memory changes."""
_SEARCHED: ContextVar[dict[tuple[int, ...], tuple[Pair, ...]] | None] = ContextVar("searched", default=None)
"""The similar pairs of the sources of the present search, which ends with those that it began with."""
_ANNOTATION = re.compile(rf"{MATCH}.*|{TERM.target}[^{TERM.end}]*{TERM.end}|{TERM.source}", re.DOTALL)
_PLACEHOLDER = re.compile(r"⟦\d+⟧")


@dataclass(frozen=True)
class Retrieval:
    """What a translator retrieves from, `engines.stages.Retrieval`."""

    memory: TranslationMemory
    mixture: Mixture

    def engine(self, translator: Translator) -> RetrievalEngine:
        """Return the engine that searches with retrieval for a translator."""
        return RetrievalEngine(translator, self.memory, self.mixture)


def with_knn(translator: Translator, memory: TranslationMemory | str | Path, **options: float) -> Translator:
    """Return a translator that retrieves from a memory in the decoder; see `Translator.with_knn`."""
    require_pytorch("retrieval in the decoder")
    engine = f'`engine="{translator.loaded.engine_name}"`'
    refuse_together({KNN: True, "`others`": translator.loaded.averages, engine: True})
    mixture = replace(MIXTURE, **options)
    if not (mixture.bandwidth > 0 and mixture.reach > 0 and 0 < mixture.weight < 1):
        fix = "Give a bandwidth and a reach above 0, and a weight between 0 and 1."
        raise UserError(f"no memory is weighted by {options}", fix=fix)
    if not isinstance(memory, TranslationMemory):
        memory = open_memory(memory, translator.languages)
    return replace(translator, retrieval=Retrieval(memory, mixture))


class RetrievalEngine:
    """Searches with the PyTorch engine where similar segments are found, and with that of the translator elsewhere."""

    def __init__(self, translator: Translator, memory: TranslationMemory, mixture: Mixture) -> None:
        """Search for a translator with a memory."""
        self.plain, self.memory, self.mixture = translator.engine, memory, mixture
        self.name, self.device_type = self.plain.name, self.plain.device_type
        self._translator, self._pipeline = translator, translator.pipeline
        self._lock = RLock()
        self._change = -1
        """The number of the memory's latest change when `_pairs` was empty."""
        self._pairs: dict[tuple[int, ...], tuple[Pair, ...]] = {}
        self._keys: OrderedDict[Pair, Keys] = OrderedDict()

    def __str__(self) -> str:
        return f"{self.plain}, with retrieval"

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The PyTorch engine with retrieval, whose candidates are all pieces."""
        engine = self._translator.loaded.torch_engine.opened(self._pipeline.tokenizer)
        engine.model = RetrievalModel(engine.model, self.mixture, self._look_up)
        return engine

    @property
    def model(self) -> RetrievalModel:
        """The model with retrieval."""
        model = self.torch_engine.model
        assert isinstance(model, RetrievalModel)
        return model

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Not supported: a memory is of one pair of languages."""
        raise NotImplementedError("a memory is of one pair of languages")

    def decode(self, request: SearchRequest[list[int]]) -> list[list[Hypothesis]]:
        """Find outputs, as an `Engine` does; those that were found with retrieval name the similar pairs."""
        pairs = list(map(self.similar, request.sentences))
        if not any(pairs):
            return self.plain.decode(request)
        results: list[list[Hypothesis]] = [[] for _ in pairs]
        for engine, indices in (
            (self.torch_engine, [i for i, similar in enumerate(pairs) if similar]),
            (self.plain, [i for i, similar in enumerate(pairs) if not similar]),
        ):
            numbers = indices if request.numbers is None else [request.numbers[i] for i in indices]
            part = replace(request, sentences=[request.sentences[i] for i in indices], numbers=numbers)
            token = _SEARCHED.set({tuple(request.sentences[i]): pairs[i] for i in indices})
            try:
                nbest_lists = engine.decode(part) if indices else []
            finally:
                _SEARCHED.reset(token)
            for i, nbest in zip(indices, nbest_lists, strict=True):
                results[i] = [replace(hypothesis, retrieved=pairs[i]) for hypothesis in nbest]
        return results

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token, as an `Engine` does, with retrieval."""
        if not any(self.similar(source) for source, _ in pairs):
            return self.plain.forced(pairs)
        return self.torch_engine.forced(pairs)

    def similar(self, ids: list[int]) -> tuple[Pair, ...]:
        """Return the pairs that are most similar to a source, given by the ids that the model reads, the best first."""
        key = tuple(ids)
        with self._lock:
            if (change := self.memory.change) != self._change or len(self._pairs) >= KEPT_SENTENCES:
                self._pairs.clear()
                self._change = change
            if key in self._pairs:
                return self._pairs[key]
            pairs = tuple(self._matching_pairs(self._text(ids)))
            if self.memory.change == change:  # otherwise they may be those of either state
                self._pairs[key] = pairs
            return pairs

    def _matching_pairs(self, text: str) -> Iterator[Pair]:
        """Yield the most similar pairs of a text, without those that address the reader in the other form."""
        formality, languages = self._translator.formality, self._translator.languages
        matches = self.memory.matches(text, MIN_PERCENT, 2 * SEGMENTS if formality else SEGMENTS)
        entries = (match.entry for match in matches)
        accepted = (entry for entry in entries if may_be(formality, languages, entry.source, entry.target))
        for entry in islice(accepted, SEGMENTS):
            yield Pair(entry.source, entry.target)

    def words(self, pieces: Sequence[Piece], parts: Sequence[Part]) -> list[RetrievedWord]:
        """Return the words of a translation that retrieval has changed or supported; see `retrieved_words`."""
        return retrieved_words(self, self._pipeline, pieces, parts)

    def datastore(self, sources: Sequence[Sequence[Pair]]) -> Datastore | None:
        """Return the keys of pairs, given those of each source; pairs that are too long for the model have none."""
        with self._lock:
            needed = dict.fromkeys(pair for pairs in sources for pair in pairs)
            self._compute([pair for pair in needed if pair not in self._keys])
            store = Datastore.of([[self._keys[pair] for pair in pairs] for pairs in sources])
            for pair in needed:
                self._keys.move_to_end(pair)
            kept = sum(len(keys.tokens) for keys in self._keys.values())
            while kept > KEPT_KEYS:
                _, dropped = self._keys.popitem(last=False)
                kept -= len(dropped.tokens)
        return store

    def _look_up(self, sources: Sequence[list[int]]) -> Datastore | None:
        """Return the keys of the pairs that are similar to sources, given by their ids."""
        searched = _SEARCHED.get() or {}
        return self.datastore([searched.get(tuple(ids)) or self.similar(ids) for ids in sources])

    def _text(self, ids: list[int]) -> str:
        """Return the text of a source without what the text pipeline has added: context, terms, near matches.

        It depends on the ids alone, so that equal ids have the same translation. A placeholder stands for any other.
        """
        tokenizer, start = self._pipeline.tokenizer, 0
        if self._pipeline.context and self._pipeline.context.separator in ids:
            start = len(ids) - ids[::-1].index(self._pipeline.context.separator)
        text = tokenizer.decode_source(ids[start + len(tokenizer.source_opening) : -1])
        return _PLACEHOLDER.sub("{0}", _ANNOTATION.sub("", text))

    def _compute(self, pairs: Sequence[Pair]) -> None:
        """Compute the keys of pairs in batches."""
        model, device = self.model.model, self.torch_engine.device
        encoded = self._pipeline.pairs([(pair.source, pair.target) for pair in pairs])
        lengths = [pair.longest for pair in encoded]
        readable = [i for i, length in enumerate(lengths) if length <= self._pipeline.longest]
        for batch in batches(sorted(readable, key=lambda i: -lengths[i]), lengths, BATCH_TOKENS):
            source = upload(padded([encoded[i].source for i in batch], model.pad), device)
            target = upload(padded([encoded[i].target for i in batch], model.pad), device)
            for i, keys in zip(batch, keys_of(model, source, target), strict=True):
                self._keys[pairs[i]] = keys
        for pair in pairs:
            self._keys.setdefault(pair, Keys.none(model.output.weight))  # it is too long
