"""Runs with random models: their output is meaningless but deterministic."""

from pathlib import Path

import torch

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from translucid import Translator
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.pieces import MATCH, SEPARATOR, TERM
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.run_files import save_confidence
from translucid.evaluation.confidence import KINDS, Estimator
from translucid.models.build import build_model
from translucid.models.transformer import Transformer
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder

SHAPE = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 2}


def untrained_run(
    folder: Path, seed: int, source: str, target: str, *, formality: float = 0.0, **decoding: float
) -> None:
    """Write a run for two languages, with a quality estimator; `decoding`: settings of the search."""
    torch.manual_seed(seed)
    limits = {"decoding.max_length_ratio": 1, "decoding.max_length_extra": 5}
    languages = {"data.source_language": source, "data.target_language": target, "data.formality": formality}
    decoding_overrides = {f"decoding.{name}": value for name, value in decoding.items()}
    overrides = {"model": SHAPE, "data.tokenizer.vocabulary": 200, **limits, **languages, **decoding_overrides}
    configuration = resolve(overrides=overrides)
    pairs = [Pair(p.source, p.target) for p in generate(200, max_words=8)]
    tokenizer = Tokenizer.learn(pairs, configuration.data.tokenizer, seed=1, reserved=configuration.data.reserved)
    run = RunFolder(folder)
    run.begin(configuration, tokenizer)
    run.save_model(Transformer(tokenizer.source_size, tokenizer.target_size, configuration.model), tokenizer, {})
    weights = {name: {"mean": 0.0, "deviation": 1.0, "weight": 0.1} for name in KINDS["search"]}
    figures = {"threshold": 40.0, "pairs": 100, "bad": 50, "kind": "search"}
    estimator = Estimator(**figures, weights=weights, offset=0.0, slope=1.0, shift=0.1 * seed)
    save_confidence(run, run.tokenizer(), None, estimator)


def untrained_translator(
    folder: Path, model: dict[str, object] | None = None, pairs=None, **data: object
) -> Translator:
    """Write a run whose vocabularies have all reserved pieces, and load it.

    It writes no piece twice, so that a translation has several words.

    Args:
        folder: the folder of the run.
        model: options of the model; those of a small Transformer by default.
        pairs: the text for the vocabulary; that of the phrasebook by default.
        data: further settings, without `data.`.
    """
    torch.manual_seed(3)
    limits = {"decoding.max_length_ratio": 1, "decoding.max_length_extra": 5, "decoding.no_repeat_ngram": 1}
    settings = {f"data.{name}": value for name, value in data.items()}
    configuration = resolve(overrides={"model": model or SHAPE, "data.tokenizer.vocabulary": 220, **limits, **settings})
    pairs = pairs or [Pair(p.source, p.target) for p in generate(200, max_words=8)]
    reserved = [*PLACEHOLDERS, *TERM, SEPARATOR, MATCH]
    tokenizer = Tokenizer.learn(pairs, configuration.data.tokenizer, seed=1, reserved=reserved, flexible=True)
    run = RunFolder(folder)
    run.begin(configuration, tokenizer)
    run.save_model(build_model(configuration.model, tokenizer.source_size, tokenizer.target_size), tokenizer, {})
    return Translator.load(folder, engine="torch")
