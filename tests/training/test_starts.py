"""Every way to start a run: killed before its first update and resumed, it gives the same result."""

import shutil
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from tests.conftest import IMAGE_ENCODER
from tests.probes.forked import killed_at
from tests.training.test_resume import assert_same_run
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.stores.chunked import ChunkedFiles
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.trainer import Trainer
from translucid.training.weights import with_prefix

STEPS = [
    *("training.max_steps=2", "training.validate_every=2", "training.validate_sentences=3", "training.log_every=1"),
    *("training.batch_tokens=160", "training.warmup=2", "training.averaging=0.5", "training.save_minutes=1000"),
    *("decoding.max_length_ratio=0", "decoding.max_length_extra=4"),  # untrained models never predict the end token
]
VOCABULARY = "data.tokenizer.vocabulary=150"
TRANSFORMER = ["model.width=16", "model.heads=2", "model.feed_forward=24", VOCABULARY]
LAYERS = ["model.encoder_layers=1", "model.decoder_layers=1"]
WINDOW = ["training.window=10"]
LANGUAGE = {
    "lm-transformer": [*TRANSFORMER, *WINDOW, "model.layers=1", "model.context=10"],
    "lm-lstm": ["model.width=16", "model.hidden=16", "model.layers=1", VOCABULARY, *WINDOW],
    "lm-bilstm": ["model.width=12", "model.hidden=10", "model.layers=1", VOCABULARY, *WINDOW],
}
PAIRS = ["--train", "pairs.tsv", "--valid", "valid.tsv"]
TEXTS = ["--train", "texts.txt", "--valid", "valid.txt"]
LABELS = ["--train", "labels.jsonl", "--valid", "valid.jsonl"]
CAPTIONS = ["--train", "scenes/train.tsv", "--valid", "scenes/valid.tsv", "--images", "scenes/images.tar"]
FROM = ["--init-from", "translator", *PAIRS]
STARTS = {
    "fresh": ["--model", "tiny", *PAIRS, "--set", *TRANSFORMER, *LAYERS],
    "held out": ["--model", "tiny", "--train", "pairs.tsv", "--set", *TRANSFORMER, *LAYERS],
    "synthetic": ["--model", "tiny", *PAIRS, "--synthetic", "valid.tsv", "--set", *TRANSFORMER, *LAYERS],
    "from, frozen": [*FROM, "--set", "training.freeze=[encoder,embeddings]"],
    "from, adapter": [*FROM, "--set", "training.adapter_rank=2"],
    "from, like": [*FROM, "--set", "training.distillation_weight=0.5"],
    "from, mixed": [*FROM, "--mix", "valid.tsv=0.5", "--valid-general", "pairs.tsv", "--set"],
    "both halves": ["--init-from", "encoder=lm-lstm", "--init-from", "decoder=lm-lstm", *PAIRS, "--set"],
    "elmo": ["--model", "tiny", "--elmo", "lm-bilstm", *PAIRS, "--set", *TRANSFORMER[:3], *LAYERS, VOCABULARY],
    "target text": ["--init-from", "decoder=lm-transformer", "--target-text", "valid.txt", *PAIRS, "--set"],
    "language, lstm": ["--model", "lm-lstm", *TEXTS, "--set", *LANGUAGE["lm-lstm"]],
    "classifier, from": ["--model", "classifier", "--init-from", "lm-bilstm", *LABELS, "--set"],
    "captioner": ["--model", "caption-soft", *CAPTIONS, "--set", *IMAGE_ENCODER],
    "captioner, from": ["--init-from", "captioner", *CAPTIONS, "--set"],
}
INITIALIZED = [name for name in STARTS if "from" in name or name in ("both halves", "elmo")]


def label_of(text):
    return "long" if len(text) > 20 else "short"


@pytest.fixture(scope="module", autouse=True)
def work(scenes, tmp_path_factory):
    """Create the working folder of the commands, with corpora and the runs that initialize others."""
    folder = tmp_path_factory.mktemp("starts")
    phrases = list(generate(90, split="train", max_words=6))
    for name, part in (("pairs", phrases[:60]), ("valid", phrases[60:])):
        lines = {
            f"{name}.tsv": [f"{p.source}\t{p.target}" for p in part],
            f"{name.replace('pairs', 'texts')}.txt": [p.source for p in part],
            f"{name.replace('pairs', 'labels')}.jsonl": [
                f'{{"text": "{p.source}", "label": "{label_of(p.source)}"}}' for p in part
            ],
        }
        for file, rows in lines.items():
            (folder / file).write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "scenes").symlink_to(scenes)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        train("translator", STARTS["fresh"])
        train("captioner", STARTS["captioner"])
        for preset, shape in LANGUAGE.items():
            train(preset, ["--model", preset, *TEXTS, "--set", *shape])
        yield folder


def command(out, start):
    return ["--log-format", "off", "train", "--out", str(out), "--no-tune", *start, *STEPS]


def train(out, start):
    assert run(command(out, start)) == 0


def resume(out):
    assert run(["--log-format", "off", "train", "--out", str(out), "--no-tune", "--resume"]) == 0


def killed(out, start, where):
    """Train in another process that is killed when it calls the method `where`."""
    assert killed_at(where, *command(out, start)).wait() == 9


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory):
    """Return a function that trains a named start without interruption; tests must not change the runs."""

    @cache
    def training(name):
        folder = tmp_path_factory.mktemp("whole") / "run"
        train(folder, STARTS[name])
        return folder

    return training


@pytest.fixture(scope="module")
def killed_early(tmp_path_factory):
    """Kill a training before its first update: killed_early("fresh", folder) leaves its run in a new folder."""

    @cache
    def kill(name):
        folder = tmp_path_factory.mktemp("killed") / "run"
        killed(folder, STARTS[name], (Trainer, "_update"))
        return folder

    return lambda name, folder: shutil.copytree(kill(name), folder)


@contextmanager
def hidden_runs(*runs):
    """Hide the initial runs within the context, as on another machine."""
    moved = {Path(name): Path(f"{name}.gone") for name in runs}
    for before, after in moved.items():
        before.rename(after)
    try:
        yield
    finally:
        for before, after in moved.items():
            after.rename(before)


MOVED = ["from, frozen", "both halves", "elmo", "captioner, from"]
"""Starts that are resumed without their initial run."""


@pytest.mark.parametrize("name", STARTS)
def test_killed_before_the_first_update_and_resumed(name, uninterrupted_run, killed_early, tmp_path):
    uninterrupted = uninterrupted_run(name)
    killed_early(name, tmp_path / "killed")
    with hidden_runs(*(["translator", "lm-lstm", "lm-bilstm", "captioner"] if name in MOVED else [])):
        resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", uninterrupted)


READY = (Trainer, "save")
"""Everything is ready except the first checkpoint."""
READ = (RunFolder, "begin")
"""The corpus is read and the vocabulary learned."""
REPLACING = (Path, "rmdir")
"""The new run is about to replace the old one."""


@pytest.mark.parametrize(
    ("name", "where"),
    [
        *(("fresh", READY), ("fresh", REPLACING), ("from, frozen", REPLACING), ("classifier, from", READY)),
        *(("captioner", READ), ("language, lstm", READ)),
    ],
)
def test_killed_while_it_is_prepared_and_resumed(name, where, uninterrupted_run, tmp_path):
    killed(tmp_path / "killed", STARTS[name], where)
    resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", uninterrupted_run(name))
    assert_nothing_is_left(tmp_path / "killed")


def assert_nothing_is_left(run):
    """Check that no temporary folders of the preparation are left."""
    assert not {".preparing", ".ready", ".moving"} & {item.name for item in run.iterdir()}


def test_chunks_encoded_before_a_kill_are_not_encoded_again(tmp_path, monkeypatch):
    killed(tmp_path / "run", STARTS["fresh"], (Trainer, "save"))
    original_begin = ChunkedFiles.begin
    calls = []
    monkeypatch.setattr(ChunkedFiles, "begin", lambda *arguments: calls.append(arguments) or original_begin(*arguments))
    resume(tmp_path / "run")
    assert not calls


@pytest.mark.parametrize("name", INITIALIZED)
def test_the_weights_that_it_begins_with_are_in_the_model(name, killed_early, tmp_path):
    """Almost every weight of the initial run is in the new run, possibly under another name."""
    start = STARTS[name]
    killed_early(name, tmp_path / "run")
    tensors = with_prefix("model.", RunFolder(tmp_path / "run").load_state()[0])
    ours = [tensor for tensor in tensors.values() if tensor.dim() > 1]
    for source in {
        value.rpartition("=")[2] for option, value in pairwise(start) if option in ("--init-from", "--elmo")
    }:
        theirs = [tensor for tensor in load_tensors(Path(source) / "model.safetensors")[0].values() if tensor.dim() > 1]
        matched = sum(_any_begins_with(ours, tensor) for tensor in theirs)
        # An encoder does not use the output layer of a bidirectional language model.
        assert matched >= len(theirs) - 2 and matched >= 0.6 * len(theirs), (matched, len(theirs))


def _any_begins_with(ours, tensor):
    return any(_begins_with(mine, tensor) for mine in ours)


def _begins_with(ours, theirs):
    """Return whether a matrix equals another one, except for further rows."""
    fits = ours.dim() == theirs.dim() and ours.shape[1:] == theirs.shape[1:] and len(ours) >= len(theirs)
    return fits and torch.equal(ours[: len(theirs)], theirs)
