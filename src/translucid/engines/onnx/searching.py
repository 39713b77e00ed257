"""Greedy and beam search with ONNX Runtime on a CPU, for the models that CTranslate2 can't run.

It finds what our own search finds: the same equations in float32, and the same beam search in NumPy. What it does not
have is left to the PyTorch engine: sampling, forbidden n-grams, shortlists by source words, and sentences longer than
the table of positions. PyTorch is not loaded before that.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from bitext.cancellation import is_cancellable
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import (
    BY_WORDS,
    CandidateVocabulary,
    DecodingOptions,
    SearchRequest,
    length_limit,
)
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis
from translucid.engines.agreement import largest_difference
from translucid.engines.converted import (
    conversion_identity,
    convert_in_other_process,
    load_difference,
    open_converted,
    save_difference,
)
from translucid.engines.ctranslate2.conventions import POSITIONS
from translucid.engines.onnx.conventions import refuse_unsupported
from translucid.engines.tuned import Tuned
from translucid.ground.iteration import batched
from translucid.ground.special import SpecialTokens
from translucid.kernels.machine import cores

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.engines.onnx.search import Rules
    from translucid.runs.adapters import Adapter
    from translucid.runs.configuration import Configuration
    from translucid.runs.run_folder import RunFolder

ROWS, BATCH = 320, 128
"""The largest numbers of hypotheses and of sentences in a batch; larger batches exceed the processor's cache."""
FACTS = "model.json"
"""The file with the candidates and the special tokens of a converted model."""


class OnnxEngine:
    """Searches with a model in ONNX Runtime."""

    name, device_type = "onnx", "cpu"

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        torch_engine: Callable[[], TorchEngine],
        *,
        longest: int | None,
        considered: CandidateVocabulary = "all pieces",
        threads: int | None = None,
    ) -> None:
        """Open a model that `save_onnx` has written.

        Args:
            folder: the folder of the graphs, which may be deleted afterwards.
            tokenizer: the model's tokenizer.
            torch_engine: returns the PyTorch engine with the same model, for what only it can do.
            longest: the largest number of tokens that the model accepts on either side, if there is a limit.
            considered: the name of the candidates; if not all pieces, the folder has the list.
            threads: the number of threads, each with its own batches; one for each core by default.
        """
        from translucid.engines.onnx.search import OnnxModel

        self.torch_engine, self.longest, self.considered = torch_engine, longest, considered
        self.difference = load_difference(folder)
        """The difference between the converted model and ours, in nats a token; 0 where it was not measured."""
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        self.special: SpecialTokens[int] = SpecialTokens(*facts["special"])
        self.positions: int = facts["positions"] or sys.maxsize
        # The target ids of the graphs are indices into the candidates.
        self.pieces = np.array(facts["pieces"] or range(tokenizer.target_size))
        self.word_starts = np.array(tokenizer.target_word_starts())[self.pieces]
        self.opening = self._opening_ids(tokenizer)
        self.threads = threads or cores()
        self.model = OnnxModel(folder)

    def __str__(self) -> str:
        """Name the engine, the type of its weights and its candidates."""
        return f"{self.name}, float32, {self.considered}"

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""
        engine, torch_engine = copy(self), self.torch_engine
        engine.opening = self._opening_ids(tokenizer)
        engine.torch_engine = lambda: torch_engine().opened(tokenizer)
        return engine

    def _opening_ids(self, tokenizer: Tokenizer) -> list[int]:
        """Return the target prefix of a tokenizer in the ids of the graphs."""
        return np.searchsorted(self.pieces, tokenizer.target_opening).tolist()

    @classmethod
    def of(
        cls,
        torch_engine: TorchEngine,
        tokenizer: Tokenizer,
        *,
        considered: CandidateVocabulary = "all pieces",
        threads: int | None = None,
    ) -> OnnxEngine:
        """Convert the model of the PyTorch engine, and open it with that engine's candidates.

        Raises:
            UserError: there are no graphs for the model, or a package is missing.
        """
        with tempfile.TemporaryDirectory(prefix="translucid-") as name:
            _save(torch_engine, tokenizer, Path(name), considered)
            longest = torch_engine.model.max_length
            return cls(
                Path(name), tokenizer, lambda: torch_engine, longest=longest, considered=considered, threads=threads
            )

    @classmethod
    def of_run(
        cls,
        run: RunFolder,
        configuration: Configuration,
        tokenizer: Tokenizer,
        torch_engine: Callable[[], TorchEngine],
        tuned: Tuned,
        *,
        threads: int | None = None,
        adapter: Adapter | None = None,
    ) -> OnnxEngine:
        """Open the model of a run folder, without loading PyTorch if it has been converted before.

        `tuned` names the candidates; `adapter`: the model's adapter, if any.

        Raises:
            UserError: the model is damaged, there are no graphs for it, or a package is missing.
        """
        refuse_unsupported(configuration.model)
        considered: CandidateVocabulary = "all pieces" if tuned.considered in BY_WORDS else tuned.considered
        shortlist = tuned.shortlist(run.path) if considered == tuned.considered else None
        code = sorted(Path(__file__).parent.glob("*.py"))
        identity = conversion_identity(run, configuration, tokenizer, shortlist=shortlist, adapter=adapter, code=code)

        def convert(folder: Path) -> None:
            options = tuned.model_copy(update={"considered": considered})
            if not convert_in_other_process(cls, run, configuration, options, adapter, folder):
                cls.save(torch_engine(), tokenizer, folder, options, shortlist)

        open_engine = partial(
            cls,
            tokenizer=tokenizer,
            torch_engine=torch_engine,
            longest=configuration.model.longest,
            considered=considered,
            threads=threads,
        )
        return open_converted("onnx", identity, convert, open_engine)

    @classmethod
    def save(
        cls, torch_engine: TorchEngine, tokenizer: Tokenizer, folder: Path, tuned: Tuned, shortlist: Path | None
    ) -> None:
        """Write the graphs for the model of the PyTorch engine, and the difference between the two, into a folder.

        The PyTorch engine has the candidates, so that the file `shortlist` is not read.

        Raises:
            UserError: there are no graphs for the model, or a package is missing.
        """
        _save(torch_engine, tokenizer, folder, tuned.considered)
        engine = None
        if tuned.considered == "all pieces":
            longest = torch_engine.model.max_length
            engine = cls(folder, tokenizer, lambda: torch_engine, longest=longest)
        save_difference(folder, cls.difference_from(torch_engine, tokenizer, engine))

    @classmethod
    def difference_from(
        cls, torch_engine: TorchEngine, tokenizer: Tokenizer, engine: OnnxEngine | None = None
    ) -> float:
        """Return the difference between the model of the PyTorch engine and its graphs, in nats a token.

        `engine`: one with graphs of the model in which all pieces are candidates; converted now by default.
        """
        engine = engine or cls.of(torch_engine, tokenizer)
        longest = torch_engine.model.max_length or POSITIONS
        return largest_difference(torch_engine.forced, engine.stepwise, tokenizer, longest)

    def decode(self, request: SearchRequest[list[int]]) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each sentence."""
        sentences, options = request.sentences, request.options
        if options.sample or options.no_repeat_ngram:
            return self.torch_engine().decode(request)
        results = [[empty_hypothesis()] for _ in sentences]
        accepted: list[int] = []
        fallback: list[int] = []
        for number, ids in enumerate(sentences):
            if len(ids) > 1:
                fits = max(len(ids), self._limit(ids, options) + 1) <= self.positions
                (accepted if fits else fallback).append(number)
        request.report(len(sentences) - len(accepted) - len(fallback))
        accepted.sort(key=lambda number: -len(sentences[number]))  # sentences of similar length need little padding
        size = max(1, min(ROWS // options.beam, BATCH))
        batches = list(batched(accepted, size))
        batch_sources = [list(map(sentences.__getitem__, batch)) for batch in batches]
        for batch, nbest_lists in zip(batches, self._search(batch_sources, options), strict=True):
            for number, hypotheses in zip(batch, nbest_lists, strict=True):
                results[number] = hypotheses
            request.report(len(batch))
        if fallback:
            by_torch = self.torch_engine().decode(SearchRequest([sentences[i] for i in fallback], options))
            for number, hypotheses in zip(fallback, by_torch, strict=True):
                results[number] = hypotheses
            request.report(len(fallback))
        return results

    def _search(
        self, batches: Sequence[Sequence[list[int]]], options: DecodingOptions
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield the hypotheses of each sentence, batch by batch."""
        from translucid.engines.onnx.search import Rules

        search_batch = partial(self._search_batch, rules=Rules(options, self.special, self.word_starts, self.opening))
        # The function that checks for cancellation between steps must be called in this thread.
        if len(batches) < 2 or self.threads < 2 or is_cancellable():
            yield from map(search_batch, batches)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(search_batch, batches)

    def _search_batch(self, sentences: Sequence[list[int]], rules: Rules) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence of a batch."""
        from translucid.engines.onnx.search import search

        limits = [self._limit(ids, rules.options) for ids in sentences]
        return search(self.model, sentences, limits, rules, self.pieces)

    def _limit(self, ids: list[int], options: DecodingOptions) -> int:
        """Return the largest number of tokens of an output, as `decoding.search.prepare` does."""
        limit = max(length_limit(len(ids) - 1, options, self.longest), len(self.opening) + 1)
        return min(limit, self.longest - 1) if self.longest else limit

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token after the common prefix, in nats.

        PyTorch computes all positions of a target at once.
        """
        return self.torch_engine().forced(pairs)

    def stepwise(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the same from the graphs, one position after another; all pieces must be candidates."""
        scores = []
        for source, target in pairs:
            state = self.model.start([source], self.special.pad)
            log_probs = []
            for previous, token in zip([self.special.start, *target], target, strict=False):
                values, pieces, _ = state.advance(np.array([[previous]]), np.array([[0]]), len(self.pieces))
                log_probs += values[pieces == token].tolist()
            scores.append(log_probs[len(self.opening) :])
        return scores


def _save(torch_engine: TorchEngine, tokenizer: Tokenizer, folder: Path, considered: CandidateVocabulary) -> None:
    """Write the graphs for the model of the PyTorch engine, with its candidates if they are the same for all words."""
    from translucid.engines.onnx.convert import positions_of, save_onnx

    refuse_unsupported(torch_engine.model.options)
    pieces = None
    if considered != "all pieces":
        assert torch_engine.shortlist is not None
        pieces = np.union1d(torch_engine.shortlist.always, tokenizer.target_opening).astype(np.int64).tolist()
    save_onnx(torch_engine.model, folder, pieces)
    model = torch_engine.model
    facts = {"special": list(model.special), "pieces": pieces, "positions": positions_of(model)}
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
