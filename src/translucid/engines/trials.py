"""Which engine and weights translate fastest on this machine without loss: tried once, remembered in the run folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import torch

from translucid.data.corpus import Pair
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.decoding_options import Considered, DecodingOptions
from translucid.engines import ALLOWED
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.engine import Engine, TorchEngine
from translucid.engines.tuned import Tuned
from translucid.evaluation.metrics import bleu
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel
from translucid.models.transformer import Transformer


class Trial(NamedTuple):
    """How one of them did."""

    tuned: Tuned
    sentences_per_second: float
    bleu: float

    def __str__(self) -> str:
        """Say so in a few words."""
        return f"{self.tuned} ({self.sentences_per_second:,.0f} sentences/s, BLEU {self.bleu:.2f})"


def trials(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    ways: Sequence[Tuned],
    shortlists: Mapping[Considered, Path],
) -> Iterator[Trial]:
    """Translate the sources of `pairs` in each of these ways; `shortlists` are the files for those that have one."""
    whole = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source([pair.source for pair in pairs])]
    references = [[pair.target for pair in pairs]]
    for tuned in ways:
        considered, shortlist = tuned.considered, shortlists.get(tuned.considered)
        own = whole.narrowed(considered, shortlist, tokenizer)
        engine: Engine = own
        if tuned.engine == "ctranslate2":
            weights = tuned.quantization
            engine = CTranslate2Engine.of(
                own, tokenizer, quantization=weights, considered=considered, shortlist=shortlist
            )
        engine.decode(sources[:8], options)
        started = time.perf_counter()
        found = engine.decode(sources, options)
        spent = time.perf_counter() - started
        texts = [tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]
        yield Trial(tuned, len(pairs) / spent, bleu(texts, references))


def all_ways(model: SequenceModel, lists: Iterable[Considered], *, opened: bool = False) -> list[Tuned]:
    """Return every way to translate with a model and these lists, that without any loss first.

    `opened`: outputs begin with a token that is given, with which CTranslate2 takes no lists by source words.
    """
    considered: list[Considered] = ["all pieces", *lists]
    ways = [Tuned(engine="torch", considered=each) for each in considered]
    if isinstance(model, Transformer) and model.options.elmo is None:
        ways[:0] = [
            Tuned(quantization=weights, considered=each)
            for each in considered
            for weights in get_args(Quantization)
            if not (opened and each in ("small shortlist", "large shortlist"))
        ]
    return ways


def fastest(tried: Sequence[Trial], allowed: float) -> Trial:
    """Return the fastest one that costs at most `allowed` BLEU against the first."""
    full = tried[0].bleu
    return max((trial for trial in tried if trial.bleu >= full - allowed), key=lambda trial: trial.sentences_per_second)


def greedy_bleu(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tuned: Tuned) -> float:
    """Return the BLEU of greedy translations in one of these ways, without a shortlist.

    There is no rule against loops, as whoever runs an exported model has none.
    """
    (trial,) = trials(model, tokenizer, pairs, DecodingOptions(beam=1, max_loops=0), [tuned], {})
    return trial.bleu


def refuse_loss(ours: float, exported: float, quantization: Quantization, run: Path) -> None:
    """Compare the BLEU of an exported model to that of its run.

    Raises:
        UserError: it has lost more than is allowed.
    """
    if ours - exported >= ALLOWED:
        other = "Export with --quantization float32, or leave" if quantization == "int8" else "Leave"
        fix = f"{other} out --check if that does not matter."
        raise UserError(f"{quantization} costs {ours - exported:.2f} BLEU", file=run, fix=fix)
