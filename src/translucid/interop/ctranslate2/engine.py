"""Greedy and beam search by CTranslate2, the fast engine for Transformers on CPUs.

Its beam search differs from ours in when it stops and in how it counts length, so it is asked for the whole beam with
bare log-probabilities, and the ranking is ours. An output that breaks a rule that CTranslate2 does not know, such as
the limit of its own sentence, is searched for again by our search: the rules hold whatever the engine.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import ctranslate2

from translucid import __version__
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis
from translucid.decoding.lengths import length_limit, length_penalty
from translucid.decoding.loops import has_loop
from translucid.decoding.options import DecodingOptions
from translucid.interop.ctranslate2.cache import open_converted
from translucid.interop.ctranslate2.conventions import END, PADDING, POSITIONS, START, Quantization
from translucid.machine import cores
from translucid.reading import digest

if TYPE_CHECKING:
    from translucid.decoding.engine import TorchEngine
    from translucid.training.configuration import Configuration
    from translucid.training.run_folder import RunFolder

BATCH = 64
"""Sentences in a batch, at most; larger ones fall out of the cache."""
BATCH_WITH_SHORTLIST = 16
"""The same where the words of all the batch's sentences are on one shortlist."""
CALL = 1024
"""Sentences of like length handed over at a time; a call has one limit of length."""
PARTS = 16
"""Batches that a call is cut into, at least, where the numbers must not depend on how many threads there are."""
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
        shortlist: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open a converted model.

        Args:
            folder: of the converted model; not needed any more afterwards.
            tokenizer: the model's.
            own: gives our own search with the same model, when there is something that only it can do.
            longest: the most tokens that the model takes on either side, if there is a limit.
            device: cpu, cuda or, say, cuda:1.
            shortlist: whether the folder has a shortlist, to be used.
            threads: how many work; one for each core if not given. If given, batches, on which the last digits of the
                scores depend, are the same for any number.
        """
        self.own, self.longest, self.shortlist = own, longest, shortlist
        self.parts = PARTS if threads else cores()
        self.word_starts = tokenizer.target_word_starts()
        self.source = tokenizer.source_pieces(range(tokenizer.source_size))
        self.target = {piece: i for i, piece in enumerate(tokenizer.target_pieces(range(tokenizer.target_size)))}
        self.device_type, _, index = device.partition(":")
        self.translator = ctranslate2.Translator(
            str(folder),
            self.device_type,
            device_index=int(index or 0),
            inter_threads=threads or cores(),
            intra_threads=1,
        )

    @classmethod
    def of(
        cls,
        own: TorchEngine,
        tokenizer: Tokenizer,
        *,
        quantization: Quantization = "float32",
        shortlist: Path | None = None,
        threads: int | None = None,
    ) -> CTranslate2Engine:
        """Convert the model of our own search and open it; `shortlist` is a file of `shortlist.py`'s.

        Raises:
            UserError: the model is not a Transformer, or there is no such file.
        """
        from translucid.interop.ctranslate2.convert import save_ctranslate2

        with tempfile.TemporaryDirectory(prefix="translucid-") as name:
            save_ctranslate2(own.model, tokenizer, Path(name), quantization, shortlist)
            return cls(
                Path(name),
                tokenizer,
                lambda: own,
                longest=own.model.max_length,
                device=str(own.device),
                shortlist=shortlist is not None,
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
        shortlist: Path | None = None,
        threads: int | None = None,
    ) -> CTranslate2Engine:
        """Open the model of a run folder, without loading PyTorch if it has been converted before.

        Raises:
            UserError: the model is damaged or no Transformer, or there is no such shortlist.
        """
        made_from = {
            "model": run.model_digest(),
            "shape": configuration.model.model_dump(),
            "tokenizer": tokenizer.fingerprint,
            "shortlist": shortlist and digest(shortlist),
            "quantization": quantization,
            "by": [__version__, ctranslate2.__version__, digest(Path(__file__).with_name("convert.py"))],
        }

        def convert(folder: Path) -> None:
            from translucid.interop.ctranslate2.convert import save_ctranslate2

            save_ctranslate2(own().model, tokenizer, folder, quantization, shortlist)

        opened = partial(
            cls,
            tokenizer=tokenizer,
            own=own,
            longest=configuration.model.longest,
            device=device,
            shortlist=shortlist is not None,
            threads=threads,
        )
        fingerprint = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
        return open_converted(fingerprint, convert, opened)

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`."""
        if options.sample or options.beam > WIDEST:
            return self.own().decode(sentences, options, on_batch)
        done = on_batch or (lambda count: None)
        results = [[empty_hypothesis()] for _ in sentences]
        limits = [length_limit(len(ids) - 1, options, self.longest) for ids in sentences]
        order = sorted((i for i, ids in enumerate(sentences) if len(ids) > 1), key=lambda i: -len(sentences[i]))
        done(len(sentences) - len(order))
        most = self.longest or POSITIONS
        left = [i for i in order if max(len(sentences[i]), limits[i] + 1) > most]
        order = order[len(left) :]
        calls = [order[first : first + CALL] for first in range(0, len(order), CALL)]
        begun = [self._begin([sentences[i] for i in call], max(limits[i] for i in call), options) for call in calls]
        for call, answers in zip(calls, begun, strict=True):
            for i, answer in zip(call, answers, strict=True):
                results[i] = self._ranked(answer.result(), options)
                if all(self._obeys(hypothesis, limits[i], options) for hypothesis in results[i]):
                    done(1)
                else:
                    left.append(i)
        if left:
            for i, found in zip(left, self.own().decode([sentences[i] for i in left], options), strict=True):
                results[i] = found
            done(len(left))
        return results

    def _begin(
        self, sentences: list[list[int]], limit: int, options: DecodingOptions
    ) -> list[ctranslate2.AsyncTranslationResult]:
        largest = BATCH_WITH_SHORTLIST if self.shortlist else BATCH
        begun: list[ctranslate2.AsyncTranslationResult] = self.translator.translate_batch(
            [[*(self.source[number] for number in ids[:-1]), END] for ids in sentences],
            asynchronous=True,
            max_batch_size=min(largest, -(-len(sentences) // self.parts)),
            use_vmap=self.shortlist,
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=0,
            return_scores=True,
            min_decoding_length=options.min_length,
            max_decoding_length=limit + 1,
            max_input_length=0,
            no_repeat_ngram_size=options.no_repeat_ngram,
            disable_unk=True,
            suppress_sequences=[[PADDING], [START]],
        )
        return begun

    def _ranked(self, answer: ctranslate2.TranslationResult, options: DecodingOptions) -> list[Hypothesis]:
        found = []
        for pieces, log_probability in zip(answer.hypotheses, answer.scores, strict=True):
            tokens = [self.target[piece] for piece in pieces]
            penalty = length_penalty(len(tokens) + 1.0, options.length_penalty)
            found.append(Hypothesis(tokens, log_probability, log_probability / penalty))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)[: options.nbest]

    def _obeys(self, hypothesis: Hypothesis, limit: int, options: DecodingOptions) -> bool:
        """Whether our search might have found this: its score is a number, it has ended in time and does not loop."""
        if not math.isfinite(hypothesis.score) or len(hypothesis.tokens) > limit:
            return False
        return not options.max_loops or not has_loop(hypothesis.tokens, options.max_loops, self.word_starts)
