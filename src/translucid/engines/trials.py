"""Which engine and weights translate fastest on this machine without loss: tried once, remembered in the run folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import torch

from translucid.data.readers.corpus import Pair
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import BY_WORDS, CandidateVocabulary, DecodingOptions
from translucid.engines import ALLOWED
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.engine import Engine, TorchEngine
from translucid.engines.tuned import Tuned
from translucid.evaluation.criterion import Criterion
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel
from translucid.models.transformer import Transformer


class Trial(NamedTuple):
    """How one of them did."""

    tuned: Tuned
    sentences_per_second: float
    score: float
    metric: str = "BLEU"
    """What the score is; BLEU or chrF."""
    tells: bool = True
    """Whether the score of the first one is high enough for others to be compared with it."""
    same: bool = False
    """Whether its translations are those of the first one."""

    def __str__(self) -> str:
        """Say so in a few words."""
        return f"{self.tuned} ({self.sentences_per_second:,.0f} sentences/s, {self.metric} {self.score:.2f})"


def trials(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    ways: Sequence[Tuned],
    shortlists: Mapping[CandidateVocabulary, Path],
    language: str | None = None,
) -> Iterator[Trial]:
    """Translate the sources of `pairs` in each of these ways; what the first one writes decides on the metric.

    Args:
        model: a translator.
        tokenizer: of the model.
        pairs: to translate, and what is right.
        options: of the search.
        ways: that are tried.
        shortlists: the files for those ways that have one.
        language: code of the target language, if it is known.
    """
    whole = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    pipeline = TextPipeline(tokenizer, model.max_length or sys.maxsize)
    pieces = [pipeline.encode(pair.source) for pair in pairs]
    sources = [piece.ids for piece in pieces]
    criterion = Criterion([[pair.target for pair in pairs]], language)
    first: list[str] = []
    tells = True
    for tuned in ways:
        engine = _engine(whole, tokenizer, tuned, shortlists.get(tuned.considered))
        engine.decode(sources[:8], options)
        started = time.perf_counter()
        found = engine.decode(sources, options)
        spent = time.perf_counter() - started
        best = (hypotheses[0].tokens for hypotheses in found)
        texts = [pipeline.text(piece, tokens) for piece, tokens in zip(pieces, best, strict=True)]
        if first:
            score = criterion.score(texts)
        else:
            score, first = criterion.settle(texts), texts
            tells = criterion.tells(score)
        yield Trial(tuned, len(pairs) / spent, score, criterion.name, tells, texts == first)


def _encoded(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[list[int]]:
    return [[*ids, model.eos] for ids in tokenizer.encode_source([pair.source for pair in pairs])]


def _engine(whole: TorchEngine, tokenizer: Tokenizer, tuned: Tuned, shortlist: Path | None) -> Engine:
    own = whole.narrowed(tuned.considered, shortlist, tokenizer)
    if tuned.engine == "torch":
        return own
    return CTranslate2Engine.of(
        own, tokenizer, quantization=tuned.quantization, considered=tuned.considered, shortlist=shortlist
    )


def all_ways(model: SequenceModel, lists: Iterable[CandidateVocabulary], *, opened: bool = False) -> list[Tuned]:
    """Return every way to translate with a model and these lists, that without any loss first.

    `opened`: outputs begin with a token that is given, with which CTranslate2 takes no lists by source words.
    """
    considered: list[CandidateVocabulary] = ["all pieces", *lists]
    ways = [Tuned(engine="torch", considered=each) for each in considered]
    if isinstance(model, Transformer) and model.options.elmo is None:
        ways[:0] = [
            Tuned(quantization=weights, considered=each)
            for each in considered
            for weights in get_args(Quantization)
            if not (opened and each in BY_WORDS)
        ]
    return ways


def fastest(tried: Sequence[Trial], allowed: float) -> Trial:
    """Return the fastest one that costs at most `allowed` of the score against the first.

    Where the score does not tell, it is the fastest of those that write the same as the first.
    """
    full = tried[0]
    if full.tells:
        good = [trial for trial in tried if trial.score >= full.score - allowed]
    else:
        good = [full, *(trial for trial in tried[1:] if trial.same)]
    return max(good, key=lambda trial: trial.sentences_per_second)


def greedy_texts(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tuned: Tuned) -> list[str]:
    """Return greedy translations of the sources of `pairs` in one of these ways, without a shortlist.

    There is no rule against loops, as whoever runs an exported model has none.
    """
    whole = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    sources = _encoded(model, tokenizer, pairs)
    found = _engine(whole, tokenizer, tuned, None).decode(sources, DecodingOptions(beam=1, max_loops=0))
    return [tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]


class Comparison(NamedTuple):
    """An exported model beside the run that it was made from."""

    metric: str
    """BLEU or chrF."""
    ours: float
    exported: float
    quantization: Quantization
    tells: bool
    """Whether the run translates well enough for a difference to mean something, or there is none."""

    @classmethod
    def of(
        cls,
        ours: Sequence[str],
        exported: Sequence[str],
        pairs: Sequence[Pair],
        quantization: Quantization,
        language: str | None,
    ) -> Comparison:
        """Compare translations of the run and of the exported model."""
        criterion = Criterion([[pair.target for pair in pairs]], language)
        score = criterion.settle(ours)
        tells = criterion.tells(score) or list(ours) == list(exported)
        return cls(criterion.name, score, criterion.score(exported), quantization, tells)

    def refuse_loss(self, run: Path) -> None:
        """Check that the exported model is about as good as the run.

        Raises:
            UserError: it has lost more than is allowed, or that can't be told.
        """
        if not self.tells:
            what = f"can't be compared on --check: {self.metric} {self.ours:.2f} of its own translations is too low"
            raise UserError(what, file=run, fix="Give pairs that it translates well, or leave out --check.")
        if self.ours - self.exported >= ALLOWED:
            other = "Export with --quantization float32, or leave" if self.quantization == "int8" else "Leave"
            fix = f"{other} out --check if that does not matter."
            raise UserError(
                f"{self.quantization} costs {self.ours - self.exported:.2f} {self.metric}", file=run, fix=fix
            )
