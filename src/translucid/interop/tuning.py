"""Which engine and weights translate fastest on this machine without loss: tried once, remembered in the run folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.atomic import write_atomically
from translucid.data.corpus import Pair
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.engine import Engine, TorchEngine
from translucid.decoding.options import DecodingOptions
from translucid.errors import UserError
from translucid.evaluation.scores import bleu
from translucid.interop.ctranslate2 import CTranslate2Engine
from translucid.models.protocol import SequenceModel
from translucid.reading import read_at_most

FILE = "tuned.json"
SHORTLIST = "shortlist.tsv"


class Tuned(BaseModel):
    """What was found to be fastest."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    engine: Literal["torch", "ctranslate2"] = "ctranslate2"
    """What searches."""
    quantization: Literal["float32", "int8"] = "float32"
    """The weights of CTranslate2."""
    shortlist: bool = False
    """Whether only the pieces on the shortlist are considered."""


class Trial(NamedTuple):
    """How one of them did."""

    tuned: Tuned
    sentences_per_second: float
    bleu: float


def load_tuned(run: Path) -> Tuned | None:
    """Read what was found for a run, if anything.

    Raises:
        UserError: the file is damaged.
    """
    file = run / FILE
    if not file.exists():
        return None
    try:
        return Tuned.model_validate_json(read_at_most(file, 1 << 16))
    except (ValidationError, OSError) as error:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune again.") from error


def save_tuned(run: Path, tuned: Tuned) -> None:
    """Remember it."""
    write_atomically(run / FILE, (tuned.model_dump_json(indent=2) + "\n").encode())


def trials(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    shortlist: Path | None,
    ways: Sequence[Tuned] | None = None,
) -> Iterator[Trial]:
    """Translate the sources of `pairs` in each of these ways; if none are given in all, `Tuned()` first."""
    device = torch.device("cpu")
    own = TorchEngine.of(model, tokenizer, device)
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source([pair.source for pair in pairs])]
    references = [[pair.target for pair in pairs]]
    for way in ways or all_ways(shortlist=shortlist is not None):
        engine: Engine = own
        if way.engine == "ctranslate2":
            words = shortlist if way.shortlist else None
            engine = CTranslate2Engine.of(model, tokenizer, device, own, quantization=way.quantization, shortlist=words)
        engine.decode(sources[:8], options)
        started = time.perf_counter()
        found = engine.decode(sources, options)
        spent = time.perf_counter() - started
        texts = [tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]
        yield Trial(way, len(pairs) / spent, bleu(texts, references))


def all_ways(*, shortlist: bool) -> list[Tuned]:
    """Return every way to translate, with a shortlist too if there is one."""
    lists = (False, True) if shortlist else (False,)
    fast = [Tuned(quantization=weights, shortlist=words) for words in lists for weights in ("float32", "int8")]
    return [*fast, Tuned(engine="torch")]


def fastest(tried: Sequence[Trial], allowed: float) -> Trial:
    """Return the fastest one that costs at most `allowed` BLEU against the first."""
    full = tried[0].bleu
    return max((trial for trial in tried if trial.bleu >= full - allowed), key=lambda trial: trial.sentences_per_second)
