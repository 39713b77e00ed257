"""Greedy and beam search with ONNX Runtime on a CPU, for the models that CTranslate2 can't run.

It finds what our own search finds: the same equations in float32 or with weights of 8 bits, and the same beam search in
NumPy. `OnnxModel` has
the encoder, and one step of the decoder for all hypotheses. B sentences have K slots each, as in our own search. A slot
without a live hypothesis has the log-probability -inf.

What it does not have is left to the PyTorch engine: sampling, forbidden n-grams, shortlists by source words, and
sentences longer than the table of positions. PyTorch is not loaded before that.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bitext.cancellation import between_steps, is_cancellable
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import (
    BY_WORDS,
    LONGEST_LOOP,
    CandidateVocabulary,
    DecodingOptions,
    SearchRequest,
    length_limit,
    length_penalty,
)
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis, in_order
from translucid.engines.agreement import largest_difference
from translucid.engines.converted import (
    conversion_identity,
    convert_in_other_process,
    load_difference,
    open_converted,
    save_difference,
)
from translucid.engines.ctranslate2.conventions import POSITIONS, Quantization
from translucid.engines.onnx.conventions import AFTER, ENCODER, IDS, SENTENCES, STEP, TOKENS, refuse_unsupported
from translucid.engines.tuned import Tuned
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SpecialTokens
from translucid.kernels.machine import cores

if TYPE_CHECKING:
    import onnxruntime

    from translucid.decoding.search import TorchEngine
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
        self.torch_engine, self.longest, self.considered = torch_engine, longest, considered
        self.difference = load_difference(folder)
        """The difference between the converted model and ours, in nats a token; 0 where it was not measured."""
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        self.special: SpecialTokens[int] = SpecialTokens(*facts["special"])
        self.positions: int = facts["positions"] or sys.maxsize
        # The target ids of the graphs are indices into the candidates.
        self.quantization: Quantization = facts["weights"]
        self.pieces = np.array(facts["pieces"] or range(tokenizer.target_size))
        self.word_starts = np.array(tokenizer.target_word_starts())[self.pieces]
        self.opening = self._opening_ids(tokenizer)
        self.threads = threads or cores()
        self.model = OnnxModel(folder)

    def __str__(self) -> str:
        return f"{self.name}, {self.quantization}, {self.considered}"

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
        quantization: Quantization = "float32",
        considered: CandidateVocabulary = "all pieces",
        threads: int | None = None,
    ) -> OnnxEngine:
        """Convert the model of the PyTorch engine, and open it with that engine's candidates.

        Raises:
            UserError: there are no graphs for the model, or a package is missing.
        """
        with tempfile.TemporaryDirectory(prefix="translucid-") as name:
            _save(torch_engine, tokenizer, Path(name), considered, quantization)
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

        `tuned` names the candidates and, if it is about this engine, the weights; `adapter`: the adapter, if any.

        Raises:
            UserError: the model is damaged, there are no graphs for it, or a package is missing.
        """
        refuse_unsupported(configuration.model)
        considered: CandidateVocabulary = "all pieces" if tuned.considered in BY_WORDS else tuned.considered
        shortlist = tuned.shortlist(run.path) if considered == tuned.considered else None
        code = sorted(Path(__file__).parent.glob("*.py"))
        quantization: Quantization = tuned.quantization if tuned.engine == "onnx" else "float32"
        identity = conversion_identity(run, configuration, tokenizer, shortlist=shortlist, adapter=adapter, code=code)
        identity["quantization"] = quantization

        def convert(folder: Path) -> None:
            options = tuned.model_copy(update={"considered": considered, "quantization": quantization})
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
        _save(torch_engine, tokenizer, folder, tuned.considered, tuned.quantization)
        engine = None
        if tuned.considered == "all pieces" and tuned.quantization == "float32":
            longest = torch_engine.model.max_length
            engine = cls(folder, tokenizer, lambda: torch_engine, longest=longest)
        save_difference(folder, cls.difference_from(torch_engine, tokenizer, engine))

    @classmethod
    def difference_from(
        cls, torch_engine: TorchEngine, tokenizer: Tokenizer, engine: OnnxEngine | None = None
    ) -> float:
        """Return the difference between the model of the PyTorch engine and its graphs, in nats a token.

        `engine`: one with graphs in float32 in which all pieces are candidates; converted now by default.
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
        search_batch = partial(self._search_batch, rules=Rules(options, self.special, self.word_starts, self.opening))
        # The function that checks for cancellation between steps must be called in this thread.
        if len(batches) < 2 or self.threads < 2 or is_cancellable():
            yield from map(search_batch, batches)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(search_batch, batches)

    def _search_batch(self, sentences: Sequence[list[int]], rules: Rules) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence of a batch."""
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


def _save(
    torch_engine: TorchEngine,
    tokenizer: Tokenizer,
    folder: Path,
    considered: CandidateVocabulary,
    quantization: Quantization,
) -> None:
    """Write the graphs for the model of the PyTorch engine, with its candidates if they are the same for all words."""
    from translucid.engines.onnx.convert import positions_of, save_onnx

    refuse_unsupported(torch_engine.model.options)
    pieces = None
    if considered != "all pieces":
        assert torch_engine.shortlist is not None
        pieces = np.union1d(torch_engine.shortlist.always, tokenizer.target_opening).astype(np.int64).tolist()
    save_onnx(torch_engine.model, folder, pieces, quantization)
    model = torch_engine.model
    facts = {"special": list(model.special), "pieces": pieces, "positions": positions_of(model)}
    facts["weights"] = quantization
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class OnnxModel:
    """The two graphs that `save_onnx` has written."""

    def __init__(self, folder: Path) -> None:
        self.encoder, self.decoder = _session(folder / ENCODER), _session(folder / STEP)
        self.encoder_outputs = [value.name for value in self.encoder.get_outputs()]
        self.shared, self.repeated = list[str](), list[str]()
        output_names = [value.name for value in self.decoder.get_outputs()]
        self.carried = [name.removeprefix(AFTER) for name in output_names if name.startswith(AFTER)]
        for value in self.decoder.get_inputs():
            if value.name in self.encoder_outputs and value.name not in self.carried:
                (self.shared if value.shape[0] == SENTENCES else self.repeated).append(value.name)
        self.decoder_outputs = [*(AFTER + name for name in self.carried), "values", "end", "pieces"]

    def start(self, sentences: Sequence[list[int]], pad: int) -> State:
        """Encode source ids, each with the end token at its end, and return the state before the first token."""
        ids = np.full((len(sentences), max(map(len, sentences))), pad)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        encoded = self.encoder.run(self.encoder_outputs, {IDS: ids})
        return State(self, dict(zip(self.encoder_outputs, encoded, strict=True)))


class State:
    """The decoder's state for B sentences with K rows each, sentence by sentence."""

    def __init__(self, model: OnnxModel, encoded: dict[str, Any]) -> None:
        """Begin with one row for each sentence, which has no token yet."""
        self.model = model
        self.past = {name: encoded.pop(name) for name in model.carried}
        self.memory = encoded
        self._shape: tuple[int, int] | None = None
        self._repeated: dict[str, Any] = {}

    def select(self, sentences: Ints) -> None:
        """Keep only some sentences; their rows follow from the next parents."""
        self.memory, self._shape = {name: value[sentences] for name, value in self.memory.items()}, None

    def advance(self, tokens: Ints, parent: Ints, count: int) -> tuple[Floats, Ints, Floats]:
        """Feed one token per row.

        Args:
            tokens: [B, K].
            parent: [B, K] the row of the step before that each row extends, in 0 .. N - 1.
            count: how many of the most probable next tokens to return.

        Returns:
            Their log-probabilities [B, K, count], sorted; their ids [B, K, count], of equally probable ones the lower
            id first; and the log-probability of the end token [B, K].
        """
        if tokens.shape != self._shape:
            self._shape = tokens.shape
            self._repeated = {name: np.repeat(self.memory[name], tokens.shape[1], 0) for name in self.model.repeated}
        values = {TOKENS: tokens.reshape(-1), "parent": parent.reshape(-1), "count": np.array([count])}
        values |= {name: self.memory[name] for name in self.model.shared} | self._repeated | self.past
        outputs = self.model.decoder.run(self.model.decoder_outputs, values)
        *next_past, log_probs, end, pieces = outputs
        self.past = dict(zip(self.model.carried, next_past, strict=True))
        shape = (*tokens.shape, count)
        return log_probs.reshape(shape), pieces.reshape(shape), end.reshape(tokens.shape)


def _session(file: Path) -> onnxruntime.InferenceSession:
    import onnxruntime  # of an extra, and the tuning of all engines imports this module

    options = onnxruntime.SessionOptions()
    # The operators of a step are too small to be divided; threads search for batches of their own.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])


FEWEST_ENDED = 8
"""Sentences that have ended leave the batch when they are this fraction of it, since that copies the memory."""
BY_SENTENCE = "sentence", "limit", "longest_penalty", "width", "scores"
BY_SLOT = "total", "token", "parent", "history", "gains"
"""The arrays of a search [B, ..], and those [B, K, ..]."""


@dataclass(frozen=True)
class Rules:
    """What no output may have."""

    options: DecodingOptions
    special: SpecialTokens[int]
    word_starts: NDArray[np.bool_]
    """[V], True where a piece begins a word."""
    opening: Sequence[int]
    """The tokens that every output begins with, at no cost."""

    @cached_property
    def never(self) -> NDArray[np.bool_]:
        """[V], True for the tokens that no output has."""
        never = np.zeros(len(self.word_starts), np.bool_)
        never[[self.special.pad, self.special.unknown, self.special.start]] = True
        return never

    @property
    def candidates(self) -> int:
        """How many of the likeliest tokens of a row are sure to contain K that are not forbidden."""
        loops = LONGEST_LOOP if self.options.max_loops else 0
        return min(self.options.beam + len(self.special) + loops, len(self.word_starts))

    def forbidden(self, history: Ints, pieces: Ints) -> Iterator[NDArray[np.bool_]]:
        """Return which of the pieces [B, K, M] may not follow the rows of history [B, K, t], rule by rule."""
        yield self.never[pieces]
        if history.shape[2] < len(self.opening) + self.options.min_length:
            yield pieces == self.special.end
        for token in self._loops(history):
            yield pieces == token

    def _loops(self, history: Ints) -> list[Ints]:
        """Return the first token of each run that a row ends in `max_loops` times, [B, K, 1] each; -1 for none."""
        times, length = self.options.max_loops, history.shape[2]
        if not times or length < times:
            return []
        longest = min(LONGEST_LOOP, length // times)
        last_tokens = history[:, :, -1:]
        # A row that ends in a loop of n tokens also has its last token n positions earlier.
        if not (history[:, :, -1 - longest : -1] == last_tokens).any():
            return []
        loops = []
        for n in range(1, longest + 1):
            runs = history[:, :, -n * times :].reshape(*history.shape[:2], times, n)
            run = runs[:, :, -1]
            loop = (runs == run[:, :, None]).all((2, 3)) & self.word_starts[run].any(-1)
            loops.append(np.where(loop, run[:, :, 0], -1)[:, :, None])
        return loops


def search(
    model: OnnxModel, sentences: Sequence[list[int]], limits: Sequence[int], rules: Rules, pieces: Ints
) -> list[list[Hypothesis]]:
    """Find outputs for source ids, each with the end token at its end.

    Args:
        model: the model.
        sentences: the source ids of B sentences.
        limits: the largest number of tokens of each output, without the end token.
        rules: the options of the search, and what no output may have.
        pieces: [V] the target piece for each target id of the model.

    Returns:
        For each sentence up to `nbest` different hypotheses, at least one, the best first.

    Raises:
        UserError: the model's log-probabilities are not finite.
        Cancelled: the search was cancelled.
    """
    beam = _Beam(model, sentences, limits, rules, pieces)
    while len(beam.sentence):
        between_steps()
        beam.step()
    return [in_order(hypotheses.values())[: rules.options.nbest] for hypotheses in beam.finished]


class _Beam:
    """The live hypotheses of the sentences that have not ended, [B, K] each unless a comment has another shape."""

    def __init__(
        self, model: OnnxModel, sentences: Sequence[list[int]], limits: Sequence[int], rules: Rules, pieces: Ints
    ) -> None:
        options, special, opening = rules.options, rules.special, rules.opening
        self.rules, self.pieces, self.size = rules, pieces, options.beam
        self.finished: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in sentences]
        count = len(sentences)
        self.sentence = np.arange(count)  # [B] the index in `finished`
        self.limit = np.array(limits)  # [B]
        penalties = [length_penalty(float(length), options.length_penalty) for length in range(max(limits) + 2)]
        self.penalties = np.array(penalties, np.float32)
        self.lowest_limit = min(limits)
        self.longest_penalty = self.penalties[self.limit + 1][:, None]  # [B, 1]
        self.width = np.full((count, 1), options.beam)  # [B, 1] the number of slots without a finished hypothesis
        self.scores = np.full((count, options.nbest), -np.inf, np.float32)  # [B, n] of the finished ones, sorted
        self.any_finished = False
        self.state = model.start(sentences, special.pad)
        self.total = np.zeros((count, 1), np.float32)
        self.parent = self.sentence[:, None]
        self.token = np.full((count, 1), special.start)
        for token in opening:
            self.state.advance(self.token, self.parent, 1)
            self.token = np.full((count, 1), token)
        self.history = np.tile(np.array(opening, np.int64), (count, 1, 1))  # [B, K, t]
        self.gains = np.zeros(self.history.shape, np.float32)  # [B, K, t] their log-probabilities

    def step(self) -> None:
        """Extend the hypotheses by a token; see `decoding.beam.beam_search`, line by line."""
        values, pieces = self._predict()
        slots, candidates = values.shape[1:]
        totals = (self.total[:, :, None] + values).reshape(len(values), -1)
        best = np.argsort(-totals, axis=1, kind="stable")[:, : self.size]  # of equal ones the first
        rows, slot, candidate = np.arange(len(values))[:, None], best // candidates, best % candidates
        self.total = total = totals[rows, best]
        self.token = token = pieces[rows, slot, candidate]
        self.history = np.concatenate([self.history[rows, slot], token[:, :, None]], 2)
        self.gains = np.concatenate([self.gains[rows, slot], values[rows, slot, candidate][:, :, None]], 2)
        self.parent = slot + rows * slots
        valid = total > -np.inf
        if self.any_finished:
            valid &= (np.arange(total.shape[1]) < self.width) & self._can_reach_nbest()
        ends = valid & (token == self.rules.special.end)
        live = valid & ~ends
        if ends.any():
            self._finish(ends)
            live &= self._can_reach_nbest()
        if not live.all():
            self._compact(live)

    def _can_reach_nbest(self) -> NDArray[np.bool_]:
        """Return which hypotheses [B, K] may still reach the score of the n-th best finished one."""
        reachable: NDArray[np.bool_] = self.total / self.longest_penalty >= self.scores[:, -1:]
        return reachable

    def _predict(self) -> tuple[Floats, Ints]:
        """Return the log-probabilities [B, K, M] of the likeliest next tokens, and the tokens; -inf where forbidden."""
        rules = self.rules
        values, pieces, end = self.state.advance(self.token, self.parent, rules.candidates)
        for forbidden in rules.forbidden(self.history, pieces):
            values[forbidden] = -np.inf
        highest = values.max(2)
        if self.history.shape[2] >= self.lowest_limit or not np.isfinite(highest).all():
            self._leave_only_the_end(values, pieces, end, highest)
        return values, pieces

    def _leave_only_the_end(self, values: Floats, pieces: Ints, end: Floats, highest: Floats) -> None:
        """Leave only the end token at the limit, and where the rules leave no token, in place.

        Raises:
            UserError: the model's log-probabilities are not finite.
        """
        stop = (highest == -np.inf) | (self.limit[:, None] <= self.history.shape[2])
        if not np.isfinite(np.where(stop, end, highest)).all():
            raise UserError(
                "the model's predictions are not numbers (NaN or infinite)",
                fix="Its weights are damaged or its training has diverged; use an earlier checkpoint.",
            )
        values[stop], pieces[stop] = -np.inf, self.rules.special.end
        values[stop, 0] = end[stop]

    def _finish(self, ends: NDArray[np.bool_]) -> None:
        """Keep the hypotheses where `ends` [B, K], and raise the score that others have to reach."""
        self.any_finished = True
        score = self.total / self.penalties[self.history.shape[2]]
        for row, slot in zip(*ends.nonzero(), strict=True):
            tokens, gains = self.pieces[self.history[row, slot, :-1]].tolist(), self.gains[row, slot].tolist()
            hypothesis = Hypothesis(tokens, float(self.total[row, slot]), float(score[row, slot]), gains)
            self.finished[self.sentence[row]].setdefault(tuple(tokens), hypothesis)
        scores = np.concatenate([self.scores, np.where(ends, score, np.float32(-np.inf))], 1)
        self.scores = -np.sort(-scores, axis=1)[:, : self.scores.shape[1]]
        self.width = self.width - ends.sum(1, keepdims=True)

    def _compact(self, live: NDArray[np.bool_]) -> None:
        """Move the live hypotheses to the first slots, and drop the slots and sentences that have none left."""
        self.total = np.where(live, self.total, np.float32(-np.inf))
        slots = live.sum(1).max()
        slot = np.argsort(~live, axis=1, kind="stable")[:, :slots]
        rows = np.arange(len(live))
        active = np.any(live, 1)
        if (len(live) - active.sum()) * FEWEST_ENDED >= len(live):
            (rows,) = active.nonzero()
            self.state.select(rows)
            for name in BY_SENTENCE:
                setattr(self, name, getattr(self, name)[rows])
        for name in BY_SLOT:
            setattr(self, name, getattr(self, name)[rows[:, None], slot[rows]])
