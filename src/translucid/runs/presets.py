"""Presets and recipes: settings by name that work well; `translucid models` lists them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from translucid.ground.errors import UserError, nearest
from translucid.models.kinds import all_tasks, resolved, tasks
from translucid.models.model_options import USER_CLASS


class Preset(NamedTuple):
    """A named starting point; every value can be overridden."""

    purpose: str
    """The purpose of the preset."""
    settings: dict[str, Any]
    """The settings, with the keys of the YAML file."""
    batch_tokens_on_gpu: int | None = None
    """`training.batch_tokens` on a CUDA GPU, if it differs: small batches leave a GPU idle between kernels."""


def _small(purpose: str, model: dict[str, Any]) -> Preset:
    """Return a preset for a translator of the size of `small`."""
    settings = {
        "model": model,
        "data": {"tokenizer": {"vocabulary": 8000}},
        "training": {"learning_rate": 0.002, "warmup": 400, "batch_tokens": 2048, "max_steps": 50000},
    }
    return Preset(purpose, settings, batch_tokens_on_gpu=8192)


def _recurrent(attention: str, purpose: str, **model: Any) -> Preset:
    """Return a preset for a recurrent model of the size of `small`."""
    preset = _small(purpose, {"kind": "recurrent", "width": 256, "dropout": 0.2, "attention": attention, **model})
    preset.settings["training"]["learning_rate"] = 0.003
    return preset


def _blocks(width: int, heads: int, feed_forward: int, layers: int, dropout: float) -> dict[str, Any]:
    """Return the options of a Transformer with as many decoder layers as encoder layers."""
    shape = {"width": width, "heads": heads, "feed_forward": feed_forward, "dropout": dropout}
    return {**shape, "encoder_layers": layers, "decoder_layers": layers}


_BASE_TRAINING = {
    "learning_rate": 0.0007,
    "warmup": 4000,
    "batch_tokens": 25000,
    "max_steps": 100000,
    "validate_every": 2000,
}
FEW_PAIRS, TINY_PAIRS, SMALL_PAIRS = 10_000, 50_000, 1_000_000
"""The numbers of pairs up to which the recipe `low-resource` and the presets `tiny` and `small` are advised."""
DEMO_TEXTS = ("I like soccer", "I like soccer and also going to the beach")
"""The texts that the demo translates, and that a server shows as examples for its run."""

PRESETS: dict[str, Preset] = {
    "demo": Preset(
        "the built-in phrasebook: two to five minutes on two cores",
        {
            # No dropout for three epochs of a grammar: there is no noise to overfit.
            "model": _blocks(128, heads=4, feed_forward=512, layers=2, dropout=0.0),
            "data": {"tokenizer": {"vocabulary": 1500}},
            "training": {
                "batch_tokens": 2048,
                "learning_rate": 0.004,
                "warmup": 200,
                "cooldown": 0.4,
                "averaging": 0.99,
                "validate_every": 400,
                "patience": None,
                "max_steps": 1100,
            },
        },
    ),
    "student-demo": Preset(
        "a student of the built-in phrasebook: two minutes on two cores",
        {
            "model": {**_blocks(96, heads=4, feed_forward=384, layers=2, dropout=0.0), "decoder_layers": 1},
            "data": {"tokenizer": {"vocabulary": 1500}},
            "training": {
                "batch_tokens": 2048,
                "learning_rate": 0.005,
                "warmup": 200,
                "cooldown": 0.4,
                "averaging": 0.99,
                "validate_every": 400,
                "patience": None,
                "max_steps": 1200,
            },
        },
    ),
    "student-tiny": Preset(
        "a student of up to 5 million pairs: a deep encoder, and a shallow decoder for speed",
        {
            "model": {
                **_blocks(128, heads=4, feed_forward=384, layers=6, dropout=0.1),
                "decoder_layers": 2,
                "norm": "post",  # as Marian's engines require
            },
            "data": {"tokenizer": {"vocabulary": 10000}},
            "training": {"learning_rate": 0.005, "warmup": 1000, "max_steps": 20000},
        },
        batch_tokens_on_gpu=16384,
    ),
    "student-base": Preset(
        "a student of more than 5 million pairs, for a GPU",
        {
            "model": {
                **_blocks(384, heads=6, feed_forward=1536, layers=6, dropout=0.1),
                "decoder_layers": 2,
                "norm": "post",
            },
            "data": {"tokenizer": {"vocabulary": 32000}},
            "training": _BASE_TRAINING,
        },
    ),
    "tiny": Preset(
        "up to about 50,000 pairs: narrow, with strong dropout",
        {
            "model": _blocks(128, heads=4, feed_forward=256, layers=4, dropout=0.3),
            "data": {"tokenizer": {"vocabulary": 10000}},
            "training": {"learning_rate": 0.005, "warmup": 1000, "max_steps": 20000},
        },
        batch_tokens_on_gpu=16384,
    ),
    "small": _small(
        "about 50,000 to 1 million pairs: an hour or more on two cores",
        _blocks(256, heads=4, feed_forward=1024, layers=3, dropout=0.1),
    ),
    "base": Preset(
        "more than 1 million pairs: the paper's base model, for a GPU",
        {
            "model": _blocks(512, heads=8, feed_forward=2048, layers=6, dropout=0.1),
            "data": {"tokenizer": {"vocabulary": 32000}},
            "training": _BASE_TRAINING,
        },
    ),
    "rnn-none": _recurrent("none", "before attention: one vector carries the sentence (Sutskever et al. 2014)"),
    "rnn-bahdanau": _recurrent(
        "bahdanau", "the first attention: additive, before each word (Bahdanau et al. 2015)", cell="gru"
    ),
    "rnn-luong-dot": _recurrent("luong-dot", "attention after each word, by the dot product (Luong et al. 2015)"),
    "rnn-luong-general": _recurrent("luong-general", "Luong's score with a weight matrix"),
    "rnn-luong-concat": _recurrent("luong-concat", "Luong's additive score"),
    "rnn-luong-local": _recurrent("luong-general", "attention near a predicted position only (local-p)", window=5),
    "rnn-luong-feeding": _recurrent(
        "luong-general", "the previous attention vector is an input (input feeding)", input_feeding=True
    ),
    "attention-only": _small(
        "for learning: 6+6 layers of attention alone, no heads, residuals, norms or feed-forward",
        {"kind": "attention-only", "width": 256},
    ),
}
"""The presets of translators."""


def all_presets() -> dict[str, Preset]:
    """Return all presets by name, of translators and of our other tasks."""
    every = dict(PRESETS)
    for task in reversed(tasks()):  # those that few need come last
        if task.presets:
            every |= resolved(task.presets)
    return every


def preset_named(name: str | None) -> Preset | None:
    """Return a preset by its name, or the preset of a user's model by its file and class; None if there is none.

    The preset of a user's model has the other settings of `small`.
    """
    if name in PRESETS:
        return PRESETS[name]
    for task in all_tasks() if name else ():
        if task.presets and name in (others := resolved(task.presets)):
            preset: Preset = others[name]
            return preset
    if name is None or not re.fullmatch(USER_CLASS, name):
        return None
    model = {"kind": "custom", "implementation": name}
    small = PRESETS["small"]
    return small._replace(purpose="your own model", settings={**small.settings, "model": model})


def kind_of_preset(name: str | None) -> str | None:
    """Return the kind of model of a preset; None if there is no such preset."""
    preset = preset_named(name)
    if preset is None:
        return None
    return preset.settings["model"].get("kind", "transformer")


class SizeAdvice(NamedTuple):
    """The preset or recipe for a corpus of a translator."""

    name: str
    reason: str
    is_recipe: bool = False

    def __str__(self) -> str:
        return f"the {'recipe' if self.is_recipe else 'preset'} {self.name} ({self.reason})"


def advice_for_size(pairs: int, *, on_gpu: bool = False) -> list[SizeAdvice]:
    """Return presets and recipes for a number of training pairs, the best first.

    The others are for corpora that the first one is not for, such as several directions.
    """
    if pairs < FEW_PAIRS:
        return [
            SizeAdvice("low-resource", f"for fewer than {FEW_PAIRS:,} pairs", is_recipe=True),
            SizeAdvice("tiny", f"for up to {TINY_PAIRS:,} pairs"),
        ]
    if pairs <= TINY_PAIRS:
        return [SizeAdvice("tiny", f"for up to {TINY_PAIRS:,} pairs")]
    if pairs <= SMALL_PAIRS:
        return [SizeAdvice("small", f"for up to {SMALL_PAIRS:,} pairs")]
    if on_gpu:
        return [SizeAdvice("base", f"for more than {SMALL_PAIRS:,} pairs, on a GPU")]
    return [SizeAdvice("small", f"base, for more than {SMALL_PAIRS:,} pairs, is for a GPU")]


_FOLDERS = Path(__file__).resolve().parents[1] / "recipes", Path(__file__).resolve().parents[3] / "recipes"
"""The folder of the recipes in an installed wheel, and in a clone."""


def recipes() -> dict[str, Path]:
    """Return the recipes of this package, by name."""
    files: list[Path] = []
    for folder in _FOLDERS:
        files += sorted(folder.glob("*.yaml"))
    return {file.stem: file for file in files}


def recipe(path: Path) -> Path:
    """Return the file of a configuration, from its path or from the name of a recipe.

    Raises:
        UserError: there is no such file and no such recipe.
    """
    files = recipes()
    if path.is_file():
        return path
    if path.name in files and path.parent == Path():  # even if a folder, such as that of its corpus, has this name
        return files[path.name]
    raise UserError("is neither a file nor a built-in recipe", file=path, fix=nearest(path.stem, files))
