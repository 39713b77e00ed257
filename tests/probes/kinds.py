"""Trainings for the trials: small models of text or images, on small corpora."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from translucid.captions.scenes import writing
from translucid.cli.main import run
from translucid.corpora import phrasebook

TRAINING = [
    "training.batch_tokens=400",
    "training.validate_every=25",
    "training.validate_sentences=1000",  # all sentences, as at the end of a training
    "training.log_every=1",
    "training.cooldown=0",  # a cooldown would depend on max_steps
    "training.patience=null",
    "training.save_minutes=1e-9",  # a checkpoint after every update
]


@dataclass(frozen=True)
class Kind:
    """A kind of training."""

    name: str
    write: Callable[..., list[str]]
    """`write(folder)` or `write(folder, how_many)` makes a corpus and returns the arguments that train on it."""
    few: int
    """The number of examples for a short epoch."""
    model: str | None
    """A preset other than the default."""
    settings: list[str]
    """Further settings."""
    stored: list[str]
    """Files of the run folder that keep the corpus as the model reads it."""


def _write_phrases(folder: Path, count: int, ending: str, lines: str) -> list[str]:
    """Write `lines` of each phrase, with its source and its target in place."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, phrases in (("train", count), ("valid", 20)):
        rows = (
            lines.format(source=p.source, target=p.target)
            for p in phrasebook.generate(phrases, split=split, max_words=8)
        )
        (folder / f"{split}{ending}").write_text("".join(rows), encoding="utf-8")
    return ["--train", str(folder / f"train{ending}"), "--valid", str(folder / f"valid{ending}")]


def write_pairs(folder: Path, count: int = 600) -> list[str]:
    """Write sentence pairs."""
    return _write_phrases(folder, count, ".tsv", "{source}\t{target}\n")


def write_scenes(folder: Path, count: int = 340) -> list[str]:
    """Paint scenes."""
    writing.write_corpus(folder, count, size=40)
    files = {"train": "train.tsv", "valid": "valid.tsv", "images": "images.tar"}
    return [part for option, file in files.items() for part in (f"--{option}", str(folder / file))]


def write_running_text(folder: Path, count: int = 600) -> list[str]:
    """Write one text per line."""
    return _write_phrases(folder, count, ".txt", "{target}\n")


def write_labeled(folder: Path, count: int = 600) -> list[str]:
    """Write texts labeled with one of two languages."""
    return _write_phrases(folder, count, ".tsv", "{source}\ten\n{target}\tes\n")


TEXT = Kind(
    "text",
    write_pairs,
    150,
    None,
    [
        *("model.width=32", "model.heads=2", "model.feed_forward=64"),
        *("model.encoder_layers=1", "model.decoder_layers=1"),
        *("data.tokenizer.vocabulary=300", "data.subword_dropout=0.1", *TRAINING),
        *("decoding.max_length_ratio=0", "decoding.max_length_extra=9"),  # a barely trained model never ends a sentence
    ],
    [
        f"state/corpus/{name}"
        for name in ("source.ids", "source.offsets", "target.ids", "target.offsets", "index.jsonl")
    ],
)
IMAGES = Kind(
    "images",
    write_scenes,
    20,
    "caption-soft",
    [
        *(
            "model.image_encoder.size=32",
            "model.image_encoder.stride=16",
            "model.image_encoder.channels=4",
            "model.width=16",
        ),
        *("data.tokenizer.vocabulary=200", "data.shift=2", "data.mirror=true", *TRAINING),
        *("training.batch_tokens=150", "decoding.max_length_ratio=0", "decoding.max_length_extra=4"),
    ],
    ["state/images/images.array", "state/images/index.jsonl"],
)
LANGUAGE = Kind(
    "running text",
    write_running_text,
    150,
    "lm-lstm",
    ["model.width=16", "model.hidden=24", "data.tokenizer.vocabulary=120", "training.window=10", *TRAINING],
    ["state/texts/texts.ids", "state/texts/index.jsonl"],
)
LABELS = Kind(
    "texts with labels",
    write_labeled,
    100,
    "classifier",
    [
        *("model.language.width=16", "model.language.hidden=24", "data.tokenizer.vocabulary=150", *TRAINING),
        "training.schedule=inverse-root",  # the default schedule depends on max_steps
    ],
    [],
)


def write_to_tune(folder: Path, count: int = 600) -> list[str]:
    """Write sentence pairs, and train a translator on some of them that is to be tuned."""
    pairs = write_pairs(folder, count)
    command = ["train", *pairs, "--out", str(folder / "base"), "--no-tune"]
    assert run([*command, "--set", *TEXT.settings, "training.max_steps=5"]) == 0
    return ["--init-from", str(folder / "base"), *pairs, "--mix", f"{pairs[3]}=0.2", "--valid-general", pairs[1]]


TUNED = Kind(
    "a translator that begins as another one",
    write_to_tune,
    150,
    None,
    [*TRAINING, "training.distillation_weight=0.1", "training.adapter_rank=2", "training.freeze=[encoder]"],
    TEXT.stored,
)
