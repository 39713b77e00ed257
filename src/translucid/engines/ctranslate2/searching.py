"""Greedy and beam search by CTranslate2, the fast engine for Transformers on CPUs.

Its beam search differs from ours in the stopping criterion and in length normalization, so we request the whole beam
with plain log-probabilities, and rank it ourselves. Its beam stays as wide when a hypothesis ends, ours gets narrower:
either finds hypotheses that the other drops. It would stop at the first K finished ones, of which many are short and
improbable; so it searches until `PATIENCE` K are finished. Of 2,814 sentences with document context, and a run trained
for ten minutes, 4 outputs differ with a beam of 5: ours scores higher in 3, its in 1. Without context, 7 of 3,000
differ: 5 and 2. With a beam of 1, none does.

It has no rule against loops and one limit of length for all sentences, so a sentence whose output loops is searched
again with its own limit and without the loop. A sentence that breaks a rule even then is left to the PyTorch engine, or
without PyTorch searched once more without any repeated pair of pieces: the rules hold for every engine.

At the limit, it cuts hypotheses off and does not let them end, so that they displace finished ones; and if a repetition
is forbidden, its probability goes to all other tokens. Such a sentence is left to PyTorch at once.

The probability of tokens that it may not output (padding, unknown, start, and an immediate end) goes to all others, so
its scores are a little higher than ours: by 0.001 on average and 0.003 at most over 500 sentences of the phrasebook.
Scoring its outputs again would cost a quarter of the time of a beam search, and most of that of a greedy one. With a
minimum length, the likely end token itself is forbidden, which changes the ranking: that is left to PyTorch too.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import ctranslate2

from bitext.cancellation import between_steps, is_cancellable
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import (
    CandidateVocabulary,
    DecodingOptions,
    SearchRequest,
    find_loop,
    has_repetition,
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
from translucid.engines.ctranslate2.conventions import POSITIONS, Quantization, position_rows, reads_source_end
from translucid.engines.tuned import Tuned
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLINGS
from translucid.kernels.devices import INSTRUCTIONS, forget_instructions
from translucid.kernels.machine import cores, has_pytorch, require_pytorch
from translucid.runs import transformer_weights
from translucid.runs.transformer_weights import TransformerWeights

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.runs.adapters import Adapter
    from translucid.runs.configuration import Configuration
    from translucid.runs.run_folder import RunFolder


def wait_for(answer: Any) -> Any:
    """Wait for a result, and check meanwhile whether it was cancelled.

    The pauses between the checks grow with the time that has passed, so that they add at most a tenth to it.
    """
    started = time.monotonic()
    while is_cancellable() and not answer.done():
        between_steps()
        time.sleep(min(max(0.1 * (time.monotonic() - started), SHORTEST_PAUSE), LONGEST_PAUSE))
    return answer.result()


@dataclass
class Task:
    """A sentence to search for."""

    number: int
    """The index of the sentence in the results."""
    ids: list[int]
    limit: int
    """The largest number of tokens of an output, without the end token."""
    banned: list[list[str]] = field(default_factory=list)
    """The loops of earlier outputs, which later ones may not have."""
    needs_torch: bool = False
    """Whether an output breaks a rule that CTranslate2 applies in another way, so that PyTorch has to search."""


Search: TypeAlias = tuple[Task, ctranslate2.AsyncTranslationResult]


BATCH = 64
"""The largest number of sentences in a batch; larger batches exceed the processor's cache."""
BATCH_ON_GPU = 256
"""The same on a GPU, which takes hardly longer for many sentences than for few."""
CALL = 1024
"""Sentences of similar length in one call, which has one limit of length."""
PARTS = 16
"""The least number of batches in a call where results must not depend on the number of threads."""
FEW = 8
"""The number of sentences from which a call is divided: five take less time in one batch than in two on two threads."""
ATTEMPTS = 8
"""The largest number of searches for a sentence that keeps looping, before it is left to the PyTorch engine."""
PATIENCE = 1.2
"""The number of finished hypotheses that end a search, relative to the beam (Kasai et al. 2022, arXiv 2204.05424).

On sentences that are hard for the demo, a beam of 5 takes 5 % more processor time than with 1; 1.5 takes 16 % more.
"""
ALMOST_NO_PENALTY = 1e-6
"""A length penalty that changes no score; without any, CTranslate2 ends a search with its most probable hypothesis."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0002, 0.01
"""The seconds between two checks whether a search is over."""
WIDEST = 32
"""The widest beam for which CTranslate2 is used."""


class CTranslate2Engine:
    """Searches with a converted model, with one thread on each core."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        torch_engine: Callable[[], TorchEngine],
        *,
        longest: int | None,
        positions: int = POSITIONS,
        source_end: bool = True,
        device: str = "cpu",
        considered: CandidateVocabulary = "all pieces",
        threads: int | None = None,
        compute_type: str = "default",
    ) -> None:
        """Open a converted model.

        Args:
            folder: the folder of the converted model, which may be deleted afterwards.
            tokenizer: the model's tokenizer.
            torch_engine: returns the PyTorch engine with the same model, for sentences that only it can translate.
            longest: the largest number of tokens that the model accepts on either side, if there is a limit.
            positions: the largest number of tokens that the converted model accepts.
            source_end: whether the model reads the end token of the source.
            device: cpu, cuda or, for example, cuda:1.
            considered: the name of the candidates; if not all pieces, the folder has the list.
            threads: the number of threads; one for each core by default. If given, batches, on which the last digits
                of the scores depend, are the same for any number.
            compute_type: the type in which CTranslate2 computes; by default, that of the weights.
        """
        self.torch_engine, self.longest, self.considered = torch_engine, longest, considered
        self.positions, self.source_end = positions, [SPELLINGS.end] if source_end else []
        self.difference = load_difference(folder)
        """The difference between the converted model and ours, in nats a token; 0 where it was not measured."""
        self.by_words = (folder / "vmap.txt").exists()  # the name that CTranslate2 gives to a list by source words
        self.parts, self.batch = PARTS if threads else cores(), BATCH
        self.device_type = device.partition(":")[0]
        if self.device_type == "cuda":
            self.parts, self.batch = 1, BATCH_ON_GPU
        self.word_starts = tokenizer.target_word_starts()
        self.source = tokenizer.source_pieces(range(tokenizer.source_size))
        self.pieces = tokenizer.target_pieces(range(tokenizer.target_size))
        self.target = {piece: number for number, piece in enumerate(self.pieces)}
        self.opening = self._pieces(tokenizer.target_opening)
        self.translator = open_translator(folder, device, threads or cores(), compute_type)

    def __str__(self) -> str:
        weights = self.translator.compute_type.partition("_")[0]
        return f"{self.name}, {weights}, {self.considered}"

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""
        engine, torch_engine = copy(self), self.torch_engine
        engine.opening = self._pieces(tokenizer.target_opening)
        engine.torch_engine = lambda: torch_engine().opened(tokenizer)
        return engine

    @classmethod
    def of(
        cls,
        torch_engine: TorchEngine,
        tokenizer: Tokenizer,
        *,
        quantization: Quantization = "float32",
        considered: CandidateVocabulary = "all pieces",
        shortlist: Path | None = None,
        threads: int | None = None,
    ) -> CTranslate2Engine:
        """Convert the model of the PyTorch engine and open it; `shortlist` is a file of `translucid tune shortlists`.

        Raises:
            UserError: the model is not a Transformer, or there is no such file.
        """
        from translucid.engines.ctranslate2.convert import save_ctranslate2

        with tempfile.TemporaryDirectory(prefix="translucid-") as name:
            save_ctranslate2(torch_engine.model, tokenizer, Path(name), quantization, shortlist)
            return cls(
                Path(name),
                tokenizer,
                lambda: torch_engine,
                longest=torch_engine.model.max_length,
                positions=position_rows(torch_engine.model.options),
                source_end=reads_source_end(torch_engine.model.options),
                device=str(torch_engine.device),
                considered=considered,
                threads=threads,
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
        device: str = "cpu",
        threads: int | None = None,
        adapter: Adapter | None = None,
    ) -> CTranslate2Engine:
        """Open the model of a run folder, without loading PyTorch if it has been converted before.

        `tuned` names the weights and candidates; `adapter`: the model's adapter, if any.

        Raises:
            UserError: the model is damaged or not a Transformer, or the shortlist does not exist.
        """
        shortlist = tuned.shortlist(run.path)
        package = Path(__file__).parent
        identity = conversion_identity(
            run,
            configuration,
            tokenizer,
            shortlist=shortlist,
            adapter=adapter,
            versions=[ctranslate2.__version__],
            code=[package / "convert.py", package / "conventions.py", Path(transformer_weights.__file__)],
        )
        # Without PyTorch, there is nothing to compare the converted model with.
        full_identity = identity | {"quantization": tuned.quantization, "compared": has_pytorch()}

        def convert(folder: Path) -> None:
            if not has_pytorch():
                from translucid.engines.ctranslate2.convert import save_weights

                rows = position_rows(configuration.model)
                weights = TransformerWeights.of_run(run, configuration, tokenizer, adapter, rows)
                save_weights(weights, tokenizer, folder, tuned.quantization, shortlist)
            elif not convert_in_other_process(cls, run, configuration, tuned, adapter, folder):
                cls.save(torch_engine(), tokenizer, folder, tuned, shortlist)

        open_engine = partial(
            cls,
            tokenizer=tokenizer,
            torch_engine=torch_engine,
            longest=configuration.model.longest,
            positions=position_rows(configuration.model),
            source_end=reads_source_end(configuration.model),
            device=device,
            considered=tuned.considered,
            threads=threads,
            compute_type=half_precision(device, tuned.quantization),
        )
        return open_converted("ctranslate2", full_identity, convert, open_engine)

    @classmethod
    def save(
        cls, torch_engine: TorchEngine, tokenizer: Tokenizer, folder: Path, tuned: Tuned, shortlist: Path | None
    ) -> None:
        """Write the converted model of the PyTorch engine, and the difference between the two, into a folder.

        Raises:
            UserError: the model is not a Transformer, or there is no shortlist.
        """
        from translucid.engines.ctranslate2.convert import save_ctranslate2

        save_ctranslate2(torch_engine.model, tokenizer, folder, tuned.quantization, shortlist)
        save_difference(folder, cls.difference_from(torch_engine, tokenizer))

    @classmethod
    def difference_from(cls, torch_engine: TorchEngine, tokenizer: Tokenizer) -> float:
        """Return the difference between the model of the PyTorch engine and its conversion, in nats a token."""
        full_engine = cls.of(torch_engine, tokenizer)
        return largest_difference(torch_engine.forced, full_engine.forced, tokenizer, full_engine.positions)

    def decode(self, request: SearchRequest[list[int]]) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each sentence."""
        sentences, options = request.sentences, request.options
        if options.sample or options.beam > WIDEST or options.min_length > 1:
            require_pytorch(f"sampling, a beam above {WIDEST} or a minimum length above 1")
            return self.torch_engine().decode(request)
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        max_length = self.longest or self.positions
        accepted: list[Task] = []
        fallback: list[Task] = []
        for i, ids in enumerate(sentences):
            if len(ids) <= 1:
                results[i] = [empty_hypothesis()]
                continue
            task = Task(i, ids, length_limit(len(ids) - 1, options, self.longest))
            if max(len(ids), task.limit + 1) <= max_length:
                accepted.append(task)
            else:
                fallback.append(task)
        request.report(len(sentences) - len(accepted) - len(fallback))
        accepted.sort(key=lambda task: -len(task.ids))
        searches: Iterable[Search] = self._search_in_calls(accepted, options)
        for attempt in range(ATTEMPTS):
            retries: list[Task] = []
            for task, answer in searches:
                hypotheses = self._hypotheses(task, wait_for(answer), options, cut=attempt > 0)
                if hypotheses:
                    results[task.number] = hypotheses
                    request.report(1)
                elif task.needs_torch:
                    fallback.append(task)
                else:
                    retries.append(task)
            searches = self._search_one_by_one(retries, options)
        fallback += retries
        if fallback:
            for task, hypotheses in zip(fallback, self._decode_fallback(fallback, options), strict=True):
                results[task.number] = hypotheses
            request.report(len(fallback))
        return results

    def _decode_fallback(self, tasks: Sequence[Task], options: DecodingOptions) -> list[list[Hypothesis]]:
        """Translate sentences that break a rule, or are too long, by PyTorch; without it, repeat no pair of pieces.

        Raises:
            UserError: a source is too long for the converted model, and there is no PyTorch.
        """
        if has_pytorch():
            return self.torch_engine().decode(SearchRequest([task.ids for task in tasks], options))
        max_length = self.longest or self.positions
        strict_options = options.model_copy(update={"no_repeat_ngram": 2, "max_loops": 0})
        results = []
        for task in tasks:
            if len(task.ids) > max_length:
                require_pytorch(f"a source of {len(task.ids)} pieces, where CTranslate2 has {max_length} positions,")
            task.limit = min(task.limit, max_length - 1)
            (answer,) = self._start_search([task], task.limit, strict_options)
            hypotheses = self._hypotheses(task, wait_for(answer), strict_options, cut=True)
            if hypotheses is None:
                raise UserError("the model's predictions are not numbers (NaN or infinite)", fix="Train it again.")
            results.append(hypotheses)
        return results

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token after the common prefix, in nats."""
        max_length = self.longest or self.positions
        sources, targets, too_long = [], [], {}
        for index, (source, target) in enumerate(pairs):
            if max(len(source), len(target)) <= max_length:
                sources.append(self._source(source))
                targets.append(self._pieces(target[:-1]))
            else:
                too_long[index] = source, target
        size = min(self.batch, max(-(-len(sources) // self.parts), 1))
        answers = self.translator.score_batch(sources, targets, max_batch_size=size, asynchronous=True)
        scores = list(map(self._scores, answers))
        if too_long:
            by_torch = self.torch_engine().forced(list(too_long.values()))
            for index, log_probs in zip(too_long, by_torch, strict=True):
                scores.insert(index, log_probs)
        return scores

    def _scores(self, answer: ctranslate2.AsyncScoringResult) -> list[float]:
        """Wait for the log-probabilities of an output, and leave out those of the common prefix."""
        return list(wait_for(answer).log_probs[len(self.opening) :])

    def _search_in_calls(self, tasks: Sequence[Task], options: DecodingOptions) -> list[Search]:
        """Begin the first search for each sentence, many sentences in a call."""
        searches: list[Search] = []
        for start in range(0, len(tasks), CALL):
            call = tasks[start : start + CALL]
            # One token more than any output may have, so that finished outputs differ from truncated ones.
            longest = 1 + max(task.limit for task in call)
            searches += zip(call, self._start_search(call, longest, options), strict=True)
        return searches

    def _search_one_by_one(self, tasks: Sequence[Task], options: DecodingOptions) -> Iterator[Search]:
        """Begin a search for each sentence alone, with its own limit, a few ahead of the one that is awaited."""
        ahead: deque[Search] = deque()
        for task in tasks:
            (answer,) = self._start_search([task], task.limit, options, task.banned)
            ahead.append((task, answer))
            if len(ahead) > self.parts:
                yield ahead.popleft()
        yield from ahead

    def _start_search(
        self, tasks: Sequence[Task], longest: int, options: DecodingOptions, banned: Sequence[list[str]] = ()
    ) -> list[ctranslate2.AsyncTranslationResult]:
        """Begin a search for outputs of up to `longest` tokens, end token included."""
        # With a shortlist, CTranslate2 (4.8) mistakes the ids of forbidden pieces for indices in the list; and after a
        # target prefix, it fails or outputs other pieces.
        shortlist = self.by_words and not banned and not self.opening
        # The candidates of a batch are those of all its sentences: so each is a batch of its own, or its translation
        # would depend on the others.
        largest = 1 if shortlist else self.batch
        answers: list[ctranslate2.AsyncTranslationResult] = self.translator.translate_batch(
            [self._source(task.ids) for task in tasks],
            [self.opening] * len(tasks) if self.opening else None,
            asynchronous=True,
            max_batch_size=min(largest, len(tasks) if len(tasks) < FEW else -(-len(tasks) // self.parts)),
            use_vmap=shortlist,
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=ALMOST_NO_PENALTY if options.beam > 1 else 0,
            patience=PATIENCE if options.beam > 1 else 1,
            return_scores=True,
            min_decoding_length=len(self.opening) + options.min_length if options.min_length else 0,
            max_decoding_length=longest,
            max_input_length=0,
            no_repeat_ngram_size=0 if has_pytorch() else options.no_repeat_ngram,
            disable_unk=True,
            suppress_sequences=[[SPELLINGS.pad], [SPELLINGS.start], *banned],
        )
        return answers

    def _hypotheses(
        self, task: Task, answer: ctranslate2.TranslationResult, options: DecodingOptions, *, cut: bool
    ) -> list[Hypothesis] | None:
        """Return the best outputs; None if one of them breaks a rule, so that the sentence has to be searched again.

        A sentence that only PyTorch searches correctly is marked (`needs_torch`). `cut`: whether the search ended at
        the sentence's own limit, with its banned loops forbidden.
        """
        outputs = [list(map(self.target.__getitem__, pieces)) for pieces in answer.hypotheses]
        log_probabilities = list(answer.scores)
        task.needs_torch = has_pytorch() and self._needs_torch(task, outputs, options, cut=cut)
        if task.needs_torch or max(map(len, outputs)) > task.limit:
            # How far an output exceeds its limit, and which loops it has, depends on the other sentences of the call.
            return None
        if self._ban_loops(task, outputs, options.max_loops) or not all(map(math.isfinite, log_probabilities)):
            return None
        if cut or (options.no_repeat_ngram and not has_pytorch()):
            # These scores include the probability of forbidden tokens, and lack that of an end token at the limit.
            source = self._source(task.ids)
            answers = self.translator.score_batch([source] * len(outputs), answer.hypotheses, asynchronous=True)
            log_probabilities = list(map(sum, map(self._scores, answers)))
        hypotheses = []
        for tokens, log_probability in zip(outputs, log_probabilities, strict=True):
            penalty = length_penalty(len(tokens) + 1.0, options.length_penalty)
            hypotheses.append(Hypothesis(tokens, log_probability, log_probability / penalty))
        return in_order(hypotheses)[: options.nbest]

    def _needs_torch(self, task: Task, outputs: Sequence[list[int]], options: DecodingOptions, *, cut: bool) -> bool:
        """Whether an output repeats what it may not, or was cut off: CTranslate2 searches on in another way than we."""
        if options.no_repeat_ngram and any(has_repetition(tokens, options.no_repeat_ngram) for tokens in outputs):
            return True
        longest = max(map(len, outputs))
        is_cut = longest > task.limit or (cut and longest == task.limit)
        if not is_cut or options.beam == 1:
            return False
        # Without its loops, an output may be shorter.
        within_limit = [tokens[: task.limit] for tokens in outputs]
        return not any(self._loops(within_limit, options.max_loops))

    def _ban_loops(self, task: Task, outputs: Sequence[list[int]], max_loops: int) -> bool:
        """Ban the loops in the outputs of a sentence from its next search; whether there are any."""
        loops = self._loops(outputs, max_loops)
        for loop in filter(None, loops):
            task.banned.append(self._pieces(loop))
        return any(loops)

    def _loops(self, outputs: Sequence[list[int]], max_loops: int) -> list[Sequence[int] | None]:
        return [find_loop(tokens, max_loops, self.word_starts) for tokens in outputs if max_loops]

    def _pieces(self, tokens: Sequence[int]) -> list[str]:
        return list(map(self.pieces.__getitem__, tokens))

    def _source(self, ids: list[int]) -> list[str]:
        return [*map(self.source.__getitem__, ids[:-1]), *self.source_end]


def gpu_of(device: str) -> int | None:
    """Return the number of the GPU that a device such as `cuda` or `cuda:1` names; None for the CPU."""
    kind, _, number = device.partition(":")
    return int(number or 0) if kind == "cuda" else None


def refuse_missing_gpu(device: str) -> None:
    """Check that CTranslate2 has the GPU that a device names.

    Raises:
        UserError: it has not.
    """
    gpu, count = gpu_of(device), ctranslate2.get_cuda_device_count()
    if gpu is not None and gpu >= count:
        raise UserError(
            f"there is no device {device!r} here", fix=f'CTranslate2 finds {count} GPUs; use `device="cpu"`.'
        )


def half_precision(device: str, quantization: Quantization) -> str:
    """Return the type in which CTranslate2 computes with weights of this type: float16 on a GPU that has it.

    `default` is the type of the weights, and float32 for what int8 leaves out.
    """
    gpu = gpu_of(device)
    if gpu is None:
        return "default"
    half_type = "float16" if quantization == "float32" else "int8_float16"
    return half_type if half_type in ctranslate2.get_supported_compute_types("cuda", gpu) else "default"


def open_translator(folder: Path, device: str, threads: int, compute_type: str) -> ctranslate2.Translator:
    """Open a converted model; `threads` work on a CPU, each on its own batches."""
    gpu = gpu_of(device)
    open_model = partial(
        ctranslate2.Translator,
        str(folder),
        "cpu" if gpu is None else "cuda",
        device_index=gpu or 0,
        compute_type=compute_type,
        # A GPU computes one batch after another; more threads would only keep more batches in its memory.
        inter_threads=threads if gpu is None else 1,
        intra_threads=1,
    )
    # CTranslate2 sets OpenMP's number of threads in the thread that opens it. In the current thread, that would limit
    # PyTorch to one thread from then on.
    with ThreadPoolExecutor(1) as executor:
        try:
            return executor.submit(open_model).result()
        except ValueError as error:
            if forget_instructions():
                return executor.submit(open_model).result()
            if INSTRUCTIONS in os.environ and str(error).startswith("The CPU does not support"):
                what = f"CTranslate2 can't use the instructions of {INSTRUCTIONS}={os.environ[INSTRUCTIONS]}"
                raise UserError(what, fix="Choose others, or unset the variable.") from error
            raise
