"""Trials of engines, weights and shortlists, to find the fastest without loss; and comparisons with exported models."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import torch

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import BY_WORDS, CandidateVocabulary, DecodingOptions
from translucid.decoding.search import TorchEngine
from translucid.engines import ALLOWED
from translucid.engines.ctranslate2.conventions import Quantization, is_supported
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.engine import Engine
from translucid.engines.onnx.conventions import is_installed as onnx_is_installed
from translucid.engines.onnx.conventions import is_supported as onnx_supports
from translucid.engines.onnx.searching import OnnxEngine
from translucid.engines.tuned import Tuned
from translucid.evaluation.metrics import Criterion
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel


class Trial(NamedTuple):
    """The result of translating in one way."""

    tuned: Tuned
    sentences_per_second: float
    score: float
    metric: str = "BLEU"
    """The metric of the score, BLEU or chrF."""
    is_meaningful: bool = True
    """Whether the score of the first trial is high enough for a comparison with the others."""
    same: bool = False
    """Whether the translations are those of the first trial."""

    def __str__(self) -> str:
        """Describe the trial in a few words."""
        return f"{self.tuned} ({self.sentences_per_second:,.0f} sentences/s, {self.metric} {self.score:.2f})"


def trials(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    configurations: Sequence[Tuned],
    shortlists: Mapping[CandidateVocabulary, Path],
    language: str | None = None,
) -> Iterator[Trial]:
    """Translate the sources of `pairs` in each of these ways; the translations of the first one decide on the metric.

    Args:
        model: a translator.
        tokenizer: the model's tokenizer.
        pairs: the sources to translate, with references.
        options: the options of the search.
        configurations: the ways to translate.
        shortlists: the files of the shortlists, by the candidates that they name.
        language: the code of the target language, if it is known.
    """
    torch_engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    pipeline = TextPipeline(tokenizer, model.max_length or sys.maxsize)
    pieces = list(map(pipeline.encode, sources_of(pairs)))
    sources = [piece.ids for piece in pieces]
    criterion = Criterion([targets_of(pairs)], language)
    first_texts: list[str] = []
    is_meaningful = True
    for tuned in configurations:
        engine = engine_for(torch_engine, tokenizer, tuned, shortlists.get(tuned.considered))
        engine.decode(sources[:8], options)  # the first batch allocates memory and starts threads: it is not timed
        started = time.perf_counter()
        nbest_lists = engine.decode(sources, options)
        seconds = time.perf_counter() - started
        texts = [pipeline.text(piece, nbest[0].tokens) for piece, nbest in zip(pieces, nbest_lists, strict=True)]
        if first_texts:
            score = criterion.score(texts)
        else:
            score, first_texts = criterion.choose_metric(texts), texts
            is_meaningful = criterion.is_meaningful(score)
        yield Trial(tuned, len(pairs) / seconds, score, criterion.name, is_meaningful, texts == first_texts)


def engine_for(torch_engine: TorchEngine, tokenizer: Tokenizer, tuned: Tuned, shortlist: Path | None) -> Engine:
    """Return an engine that translates in one of the ways, given the PyTorch engine with the whole vocabulary."""
    narrowed = torch_engine.narrowed(tuned.considered, shortlist, tokenizer)
    if tuned.engine == "torch":
        return narrowed
    if tuned.engine == "onnx":
        return OnnxEngine.of(narrowed, tokenizer, considered=tuned.considered)
    return CTranslate2Engine.of(
        narrowed, tokenizer, quantization=tuned.quantization, considered=tuned.considered, shortlist=shortlist
    )


def all_configurations(
    model: SequenceModel, lists: Iterable[CandidateVocabulary], *, opened: bool = False
) -> list[Tuned]:
    """Return every way to translate with a model and these shortlists, the one without any loss first.

    `opened`: whether outputs begin with a given token, for which CTranslate2 supports no lists by source words.
    """
    considered: list[CandidateVocabulary] = ["all pieces", *lists]
    configurations = []
    if is_supported(model.options):
        for candidates in considered:
            if opened and candidates in BY_WORDS:
                continue
            for weights in get_args(Quantization):
                configurations.append(Tuned(quantization=weights, considered=candidates))
    elif onnx_supports(model.options) and onnx_is_installed():
        for candidates in considered:
            if candidates not in BY_WORDS:
                configurations.append(Tuned(engine="onnx", considered=candidates))
    for candidates in considered:
        configurations.append(Tuned(engine="torch", considered=candidates))
    return configurations


def fastest(results: Sequence[Trial], allowed: float) -> Trial:
    """Return the fastest trial whose score is at most `allowed` below that of the first.

    If the score is too low to tell, return the fastest trial whose translations equal those of the first.
    """
    reference = results[0]
    if reference.is_meaningful:
        acceptable = [trial for trial in results if trial.score >= reference.score - allowed]
    else:
        acceptable = [trial for trial in results if trial is reference or trial.same]
    return max(acceptable, key=lambda trial: trial.sentences_per_second)


def greedy_texts(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tuned: Tuned) -> list[str]:
    """Return greedy translations of the sources of `pairs` in one of these ways, without a shortlist.

    No rule prevents loops, since other programs run an exported model without one.
    """
    torch_engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(sources_of(pairs))]
    nbest_lists = engine_for(torch_engine, tokenizer, tuned, None).decode(sources, DecodingOptions(beam=1, max_loops=0))
    return [tokenizer.decode(hypotheses[0].tokens) for hypotheses in nbest_lists]


class Comparison(NamedTuple):
    """The scores of an exported model and of the run that it was made from."""

    metric: str
    """The metric of the scores, BLEU or chrF."""
    original: float
    exported: float
    quantization: Quantization
    is_meaningful: bool
    """Whether the run translates well enough for a comparison, or the translations are equal."""

    @classmethod
    def of(
        cls,
        original: Sequence[str],
        exported: Sequence[str],
        pairs: Sequence[Pair],
        quantization: Quantization,
        language: str | None,
    ) -> Comparison:
        """Compare translations of the run and of the exported model."""
        criterion = Criterion([targets_of(pairs)], language)
        score = criterion.choose_metric(original)
        is_meaningful = criterion.is_meaningful(score) or list(original) == list(exported)
        return cls(criterion.name, score, criterion.score(exported), quantization, is_meaningful)

    def refuse_loss(self, run: Path) -> None:
        """Check that the exported model is about as good as the run.

        Raises:
            UserError: the exported model has lost more than is allowed, or the scores are too low for a comparison.
        """
        if not self.is_meaningful:
            what = f"can't be compared on --check: {self.metric} {self.original:.2f} of its own translations is too low"
            raise UserError(what, file=run, fix="Give pairs that it translates well, or leave out --check.")
        if self.original - self.exported >= ALLOWED:
            what, fix = f"{self.quantization} costs {self.original - self.exported:.2f} {self.metric}", "Leave"
            if self.quantization == "int8":
                fix = "Export with --quantization float32, or leave"
            raise UserError(what, file=run, fix=f"{fix} out --check if that does not matter.")
