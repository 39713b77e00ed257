"""Greedy and beam search by CTranslate2, the fast engine for Transformers on CPUs.

Its beam search differs from ours in when it stops and in how it counts length, so it is asked for the whole beam with
bare log-probabilities, and the ranking is ours. It knows no rule against loops and one limit of length for all
sentences, so a sentence whose output loops or gets too long is searched for again, the loop forbidden, with a limit of
its own. What is beyond it after all is left to our search: the rules hold whatever the engine.

What it may not say (padding, unknown, start, and the end token at once) lends its probability to all else, so that its
scores are a little higher than ours: by 0.001 on average and 0.003 at most over 500 sentences of the phrasebook. To
score its outputs anew would cost a quarter of the time of a beam search, and most of that of a greedy one. With a
minimum length it is the likely end itself that is forbidden, which turns the ranking round: that is left to our search.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import ctranslate2

from translucid import __version__
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary, DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis
from translucid.decoding.limits import find_loop, length_limit, length_penalty
from translucid.engines.agreement import equations_digest, largest_difference
from translucid.engines.ctranslate2.cache import open_converted
from translucid.engines.ctranslate2.conventions import POSITIONS, Quantization
from translucid.ground.cancellation import asked_about, between_steps
from translucid.ground.reading import digest
from translucid.ground.special import SPELLED
from translucid.kernels.machine import cores

if TYPE_CHECKING:
    from translucid.engines.engine import TorchEngine
    from translucid.runs.configuration import Configuration
    from translucid.runs.run_folder import RunFolder

BATCH = 64
"""Sentences in a batch, at most; larger ones fall out of the cache."""
CALL = 1024
"""Sentences of like length handed over at a time; a call has one limit of length."""
PARTS = 16
"""Batches that a call is cut into, at least, where the numbers must not depend on how many threads there are."""
ATTEMPTS = 8
"""Searches for a sentence, at most, before one that keeps looping is left to our search."""
DIFFERENCE = "difference.json"
"""How far what a converted model computes is from what ours does; see `agreement`."""
WIDEST = 32
"""The widest beam that is left to it."""


class CTranslate2Engine:
    """Searches with a converted model, on each core by itself."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        own: Callable[[], TorchEngine],
        *,
        longest: int | None,
        device: str = "cpu",
        considered: CandidateVocabulary = "all pieces",
        threads: int | None = None,
    ) -> None:
        """Open a converted model.

        Args:
            folder: of the converted model; not needed any more afterwards.
            tokenizer: the model's.
            own: gives our own search with the same model, when there is something that only it can do.
            longest: the most tokens that the model takes on either side, if there is a limit.
            device: cpu, cuda or, say, cuda:1.
            considered: the target pieces that are considered; if not all, the folder says which.
            threads: how many work; one for each core if not given. If given, batches, on which the last digits of the
                scores depend, are the same for any number.
        """
        self.own, self.longest, self.considered = own, longest, considered
        self.difference = _noted_difference(folder)
        """See `agreement`; 0 where nobody has compared."""
        self.by_words = (folder / "vmap.txt").exists()  # a shortlist by source words goes with the model
        self.parts = PARTS if threads else cores()
        self.word_starts = tokenizer.target_word_starts()
        self.source = tokenizer.source_pieces(range(tokenizer.source_size))
        self.pieces = tokenizer.target_pieces(range(tokenizer.target_size))
        self.target = {piece: i for i, piece in enumerate(self.pieces)}
        self.opening = [self.pieces[token] for token in tokenizer.target_opening]
        self.device_type, _, index = device.partition(":")
        # In a thread of its own, as PyTorch would have one thread too from then on in the one that opens it.
        with ThreadPoolExecutor(1) as aside:
            self.translator = aside.submit(
                ctranslate2.Translator,
                str(folder),
                self.device_type,
                device_index=int(index or 0),
                inter_threads=threads or cores(),
                intra_threads=1,
            ).result()

    def __str__(self) -> str:
        """Say what it is, what its weights are and what it considers."""
        weights = self.translator.compute_type.partition("_")[0]
        return f"{self.name}, {weights}, {self.considered}"

    def opened(self, tokenizer: Tokenizer) -> Self:
        """See `Engine`."""
        opened, own = copy(self), self.own
        opened.opening = [self.pieces[token] for token in tokenizer.target_opening]
        opened.own = lambda: own().opened(tokenizer)
        return opened

    @classmethod
    def of(
        cls,
        own: TorchEngine,
        tokenizer: Tokenizer,
        *,
        quantization: Quantization = "float32",
        considered: CandidateVocabulary = "all pieces",
        shortlist: Path | None = None,
        threads: int | None = None,
    ) -> CTranslate2Engine:
        """Convert the model of our own search and open it; `shortlist` is a file of `shortlist.py`'s.

        Raises:
            UserError: the model is not a Transformer, or there is no such file.
        """
        from translucid.engines.ctranslate2.convert import save_ctranslate2

        with tempfile.TemporaryDirectory(prefix="translucid-") as name:
            save_ctranslate2(own.model, tokenizer, Path(name), quantization, shortlist)
            return cls(
                Path(name),
                tokenizer,
                lambda: own,
                longest=own.model.max_length,
                device=str(own.device),
                considered=considered,
                threads=threads,
            )

    @classmethod
    def of_run(
        cls,
        run: RunFolder,
        configuration: Configuration,
        tokenizer: Tokenizer,
        own: Callable[[], TorchEngine],
        *,
        device: str = "cpu",
        quantization: Quantization = "float32",
        considered: CandidateVocabulary = "all pieces",
        shortlist: Path | None = None,
        threads: int | None = None,
        adapter: str | None = None,
    ) -> CTranslate2Engine:
        """Open the model of a run folder, without loading PyTorch if it has been converted before.

        `adapter`: the fingerprint of what it wears, if anything.

        Raises:
            UserError: the model is damaged or no Transformer, or there is no such shortlist.
        """
        made_from = {
            "model": run.model_digest(),
            "adapter": adapter,
            "shape": configuration.model.model_dump(),
            "tokenizer": tokenizer.fingerprint,
            "shortlist": shortlist and digest(shortlist),
            "quantization": quantization,
            "by": [__version__, ctranslate2.__version__, digest(Path(__file__).with_name("convert.py"))],
            "equations": equations_digest(),
        }

        def convert(folder: Path) -> None:
            from translucid.engines.ctranslate2.convert import save_ctranslate2

            save_ctranslate2(own().model, tokenizer, folder, quantization, shortlist)
            difference = cls.difference_from(own(), tokenizer)
            (folder / DIFFERENCE).write_text(json.dumps(difference), encoding="utf-8")

        opened = partial(
            cls,
            tokenizer=tokenizer,
            own=own,
            longest=configuration.model.longest,
            device=device,
            considered=considered,
            threads=threads,
        )
        fingerprint = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
        return open_converted(fingerprint, convert, opened)

    @classmethod
    def difference_from(cls, own: TorchEngine, tokenizer: Tokenizer) -> float:
        """Convert the model of our own search, and return how far what it computes is from that; see `agreement`."""
        whole = cls.of(own, tokenizer)
        return largest_difference(own, whole, tokenizer, own.model.max_length or POSITIONS)

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`."""
        if options.sample or options.beam > WIDEST or options.min_length > 1:
            return self.own().decode(sentences, options, on_batch, numbers)
        done = on_batch or (lambda count: None)
        results = [[empty_hypothesis()] for _ in sentences]
        most = self.longest or POSITIONS
        asked: list[_Asked] = []
        left: list[_Asked] = []
        for i, ids in enumerate(sentences):
            limit = length_limit(len(ids) - 1, options, self.longest)
            if len(ids) > 1:
                (asked if max(len(ids), limit + 1) <= most else left).append(_Asked(i, ids, limit))
        done(len(sentences) - len(asked) - len(left))
        asked.sort(key=lambda one: -len(one.ids))
        begun: list[_Begun] = []
        for first in range(0, len(asked), CALL):
            call = asked[first : first + CALL]
            # One token more than any may have, so that what has ended can be told from what was cut off.
            begun += zip(call, self._begin(call, 1 + max(one.limit for one in call), options), strict=True)
        again: list[_Asked] = []
        for attempt in range(ATTEMPTS):
            answers = self._one_by_one(again, options) if attempt else iter(begun)
            again = []
            for one, answer in answers:
                if found := self._found(one, _waited_for(answer), options, cut=attempt > 0):
                    results[one.number] = found
                    done(1)
                else:
                    again.append(one)
        left += again
        if left:
            for one, found in zip(left, self.own().decode([one.ids for one in left], options), strict=True):
                results[one.number] = found
            done(len(left))
        return results

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        most = self.longest or POSITIONS
        asked = [pair for pair in pairs if max(map(len, pair)) <= most]
        scored = self.translator.score_batch(
            [self._source(source) for source, _ in asked],
            [[self.pieces[token] for token in target[:-1]] for _, target in asked],
            max_batch_size=min(BATCH, max(-(-len(asked) // self.parts), 1)),
            asynchronous=True,
        )
        found = iter([list(_waited_for(score).log_probs[len(self.opening) :]) for score in scored])
        left = iter(
            self.own().forced([pair for pair in pairs if max(map(len, pair)) > most]) if len(asked) < len(pairs) else ()
        )
        return [next(found if max(map(len, pair)) <= most else left) for pair in pairs]

    def _one_by_one(self, asked: Sequence[_Asked], options: DecodingOptions) -> Iterator[_Begun]:
        """Begin a search for each, a few ahead of the one that is waited for."""
        ahead: deque[_Begun] = deque()
        for one in asked:
            ahead.append((one, self._begin([one], one.limit, options, one.banned)[0]))
            if len(ahead) > self.parts:
                yield ahead.popleft()
        yield from ahead

    def _begin(
        self, asked: Sequence[_Asked], longest: int, options: DecodingOptions, banned: Sequence[list[str]] = ()
    ) -> list[ctranslate2.AsyncTranslationResult]:
        """Begin a search for outputs of up to `longest` tokens, end token counted."""
        # With a shortlist, CTranslate2 (4.8) takes the numbers of forbidden pieces for places on the list; and after a
        # beginning that is given it fails, or says other pieces.
        shortlist = self.by_words and not banned and not self.opening
        # It considers what the words of any sentence of a batch may become: so each is a batch of its own, or its
        # translation would depend on the others.
        largest = 1 if shortlist else BATCH
        begun: list[ctranslate2.AsyncTranslationResult] = self.translator.translate_batch(
            [self._source(one.ids) for one in asked],
            [self.opening] * len(asked) if self.opening else None,
            asynchronous=True,
            max_batch_size=min(largest, -(-len(asked) // self.parts)),
            use_vmap=shortlist,
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=0,
            return_scores=True,
            min_decoding_length=len(self.opening) + options.min_length if options.min_length else 0,
            max_decoding_length=longest,
            max_input_length=0,
            no_repeat_ngram_size=options.no_repeat_ngram,
            disable_unk=True,
            suppress_sequences=[[SPELLED.pad], [SPELLED.start], *banned],
        )
        return begun

    def _found(
        self, one: _Asked, answer: ctranslate2.TranslationResult, options: DecodingOptions, *, cut: bool
    ) -> list[Hypothesis] | None:
        """Return the best outputs; None if the sentence has to be searched for again, as an output breaks a rule.

        `cut`: the search was cut off at the sentence's own limit, with what is banned for it forbidden.
        """
        outputs = [[self.target[piece] for piece in pieces] for pieces in answer.hypotheses]
        log_probabilities = list(answer.scores)
        if max(map(len, outputs)) > one.limit:
            # How far beyond its limit it went on, and into which loops, depends on the others of its call.
            return None
        loops = [find_loop(tokens, options.max_loops, self.word_starts) for tokens in outputs if options.max_loops]
        one.banned += [[self.pieces[token] for token in loop] for loop in loops if loop]
        if any(loops) or not all(map(math.isfinite, log_probabilities)):
            return None
        if cut:
            # What was cut off at the limit has to end there, as in our search, and what is forbidden has lent its
            # probability to all else: the scores are those without either.
            source = self._source(one.ids)
            scored = self.translator.score_batch([source] * len(outputs), answer.hypotheses, asynchronous=True)
            log_probabilities = [sum(_waited_for(score).log_probs[len(self.opening) :]) for score in scored]
        found = []
        for tokens, log_probability in zip(outputs, log_probabilities, strict=True):
            penalty = length_penalty(len(tokens) + 1.0, options.length_penalty)
            found.append(Hypothesis(tokens, log_probability, log_probability / penalty))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)[: options.nbest]

    def _source(self, ids: list[int]) -> list[str]:
        return [*(self.source[number] for number in ids[:-1]), SPELLED.end]


def _noted_difference(folder: Path) -> float:
    """Return the difference that was noted when a model was converted."""
    file = folder / DIFFERENCE
    return float(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else 0.0


def _waited_for(answer: Any) -> Any:
    """Return a result, and ask meanwhile whether it is still wanted."""
    pause = 0.0005
    while asked_about() and not answer.done():
        between_steps()
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    return answer.result()


@dataclass
class _Asked:
    """A sentence that is searched for."""

    number: int
    """Its place in the results."""
    ids: list[int]
    limit: int
    """The most tokens that an output may have, end token not counted."""
    banned: list[list[str]] = field(default_factory=list)
    """Loops that earlier outputs had, and later ones may not have."""


_Begun: TypeAlias = tuple[_Asked, "ctranslate2.AsyncTranslationResult"]
