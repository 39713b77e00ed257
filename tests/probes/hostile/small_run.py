"""A run folder with a tiny untrained model and every optional file."""

from __future__ import annotations

from pathlib import Path

import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.tuned import Tuned, save_tuned
from translucid.engines.tuning import learn_links
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import unshared

SETTINGS = {
    "model": {"width": 16, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1},
    "data": {
        "max_tokens": 20,
        "source_language": "en",
        "target_language": "es",
        "tokenizer": {"vocabulary": 120, "normalization": "identity"},
    },
    "decoding": {"beam": 2, "max_length_ratio": 1, "max_length_extra": 3},
}


def make_run(folder: Path) -> RunFolder:
    """Write the run folder."""
    run = RunFolder(folder)
    configuration = resolve(overrides=SETTINGS)
    pairs = [Pair(p.source, p.target) for p in generate(100, max_words=8)]
    tokenizer = Tokenizer.learn(pairs, configuration.data.tokenizer, seed=1)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size).eval()
    run.begin(configuration, tokenizer)
    run.save_model(model, tokenizer, {"step": 1})
    for step in range(1, 4):
        run.add_metrics({"kind": "training", "step": step, "seconds": step, "loss": 1.0, "learning_rate": 0.1})
    for _ in range(2):
        run.save_state({f"model.{name}": weight for name, weight in unshared(model).items()}, {"place": {"step": 1}})
    source, target = (
        tokenizer.encode_source([p.source for p in pairs]),
        tokenizer.encode_target([p.target for p in pairs]),
    )
    ids = [([*s, 3], [*t, 3]) for s, t in zip(source, target, strict=True)]
    links = learn_links(model, ids, torch.device("cpu"))
    save_tuned(folder, Tuned(considered="small shortlist"), links.shortlist(tokenizer, per_source=40, always=200))
    return run
