"""Every way a run can start: killed before its first update and resumed, it ends as if nothing had happened."""

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
from translucid.training.weights import under

STEPS = [
    *("training.max_steps=2", "training.validate_every=2", "training.validate_sentences=3", "training.log_every=1"),
    *("training.batch_tokens=160", "training.warmup=2", "training.averaging=0.5", "training.save_minutes=1000"),
    *("decoding.max_length_ratio=0", "decoding.max_length_extra=4"),  # models that have not learned never end
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
    "recurrent": ["--model", "rnn-bahdanau", *PAIRS, "--set", "model.width=16", VOCABULARY],
    "held out": ["--model", "tiny", "--train", "pairs.tsv", "--set", *TRANSFORMER, *LAYERS],
    "placeholders": ["--model", "tiny", *PAIRS, "--set", *TRANSFORMER, *LAYERS, "data.placeholders=0.2"],
    "synthetic": ["--model", "tiny", *PAIRS, "--synthetic", "valid.tsv", "--set", *TRANSFORMER, *LAYERS],
    "from": [*FROM, "--set"],
    "from, frozen": [*FROM, "--set", "training.freeze=[encoder,embeddings]"],
    "from, adapter": [*FROM, "--set", "training.adapter_rank=2"],
    "from, near": [*FROM, "--set", "training.l2_sp=0.1"],
    "from, like": [*FROM, "--set", "training.distillation_weight=0.5"],
    "from, more pieces": [*FROM, "--set", "data.tokenizer.added=5"],
    "from, reserved pieces": [*FROM, "--set", "data.placeholders=0.2"],
    "from, mixed": [*FROM, "--mix", "valid.tsv=0.5", "--valid-general", "pairs.tsv", "--set"],
    "encoder": ["--init-encoder", "lm-transformer", *PAIRS, "--set"],
    "decoder": ["--init-decoder", "lm-transformer", *PAIRS, "--set"],
    "both halves": ["--init-encoder", "lm-lstm", "--init-decoder", "lm-lstm", *PAIRS, "--set"],
    "elmo": ["--model", "tiny", "--elmo", "lm-bilstm", *PAIRS, "--set", *TRANSFORMER[:3], *LAYERS, VOCABULARY],
    "target text": ["--init-decoder", "lm-transformer", "--target-text", "valid.txt", *PAIRS, "--set"],
    "language, lstm": ["--model", "lm-lstm", *TEXTS, "--set", *LANGUAGE["lm-lstm"]],
    "language, bilstm": ["--model", "lm-bilstm", *TEXTS, "--set", *LANGUAGE["lm-bilstm"]],
    "language, from": ["--init-from", "lm-lstm", *TEXTS, "--set", *WINDOW],
    "classifier": ["--model", "classifier", *LABELS, "--set", VOCABULARY, "model.language.width=8"],
    "classifier, from": ["--model", "classifier", "--init-from", "lm-bilstm", *LABELS, "--set"],
    "captioner": ["--model", "caption-soft", *CAPTIONS, "--set", *IMAGE_ENCODER],
    "captioner, from": ["--init-from", "captioner", *CAPTIONS, "--set"],
}
BEGUN = [name for name in STARTS if "from" in name or name in ("encoder", "decoder", "both halves", "elmo")]


@pytest.fixture(scope="module", autouse=True)
def work(scenes, tmp_path_factory):
    """A folder with the corpora and the runs that others begin with, in which the commands run."""
    folder = tmp_path_factory.mktemp("starts")
    phrases = list(generate(90, split="train", max_words=6))
    for name, part in (("pairs", phrases[:60]), ("valid", phrases[60:])):
        lines = {
            f"{name}.tsv": [f"{p.source}\t{p.target}" for p in part],
            f"{name.replace('pairs', 'texts')}.txt": [p.source for p in part],
            f"{name.replace('pairs', 'labels')}.jsonl": [
                f'{{"text": "{p.source}", "label": "{"long" if len(p.source) > 20 else "short"}"}}' for p in part
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
    """Train in another process, which is killed where it calls a method."""
    assert killed_at(where, *command(out, start)).wait() == 9


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Train as a start says without an interruption: whole("fresh") is the run, which nobody may change."""

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
    def killing(name):
        folder = tmp_path_factory.mktemp("killed") / "run"
        killed(folder, STARTS[name], (Trainer, "_update"))
        return folder

    return lambda name, folder: shutil.copytree(killing(name), folder)


@contextmanager
def gone(*runs):
    """Within it, the runs that others begin with are not there, as on another machine."""
    moved = {Path(name): Path(f"{name}.gone") for name in runs}
    for before, after in moved.items():
        before.rename(after)
    try:
        yield
    finally:
        for before, after in moved.items():
            after.rename(before)


MOVED = ["from", "from, frozen", "both halves", "elmo", "captioner, from"]
"""Those that are resumed where the run that they began with is not there."""


@pytest.mark.parametrize("name", STARTS)
def test_killed_before_the_first_update_and_resumed(name, whole, killed_early, tmp_path):
    uninterrupted = whole(name)
    killed_early(name, tmp_path / "killed")
    with gone(*(["translator", "lm-lstm", "lm-bilstm", "captioner"] if name in MOVED else [])):
        resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", uninterrupted)


@pytest.mark.parametrize("name", ["fresh", "both halves", "classifier, from", "captioner", "language, lstm"])
@pytest.mark.parametrize(
    "where",
    [
        (Trainer, "save"),  # all is ready but for the first checkpoint
        (RunFolder, "begin"),  # the corpus was read, and the vocabulary learned
    ],
)
def test_killed_while_it_is_prepared_and_resumed(name, where, whole, tmp_path):
    killed(tmp_path / "killed", STARTS[name], where)
    resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", whole(name))
    assert_nothing_is_left(tmp_path / "killed")


@pytest.mark.parametrize("name", ["fresh", "from"])
def test_killed_when_the_new_run_has_all_but_taken_its_place_and_resumed(name, whole, tmp_path):
    killed(tmp_path / "killed", STARTS[name], (Path, "rmdir"))
    resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", whole(name))
    assert_nothing_is_left(tmp_path / "killed")


def assert_nothing_is_left(run):
    """Look for the folders in which a run is prepared."""
    assert not {".preparing", ".ready", ".moving"} & {item.name for item in run.iterdir()}


def test_what_was_encoded_before_a_kill_is_not_encoded_again(tmp_path, monkeypatch):
    killed(tmp_path / "run", STARTS["fresh"], (Trainer, "save"))
    begun = ChunkedFiles.begin
    calls = []
    monkeypatch.setattr(ChunkedFiles, "begin", lambda *given: calls.append(given) or begun(*given))
    resume(tmp_path / "run")
    assert not calls


@pytest.mark.parametrize("name", BEGUN)
def test_the_weights_that_it_begins_with_are_in_the_model(name, killed_early, tmp_path):
    """Almost every weight of the source is one of the new run, whatever it is called there."""
    start = STARTS[name]
    killed_early(name, tmp_path / "run")
    tensors = under("model.", RunFolder(tmp_path / "run").load_state()[0])
    ours = [tensor for tensor in tensors.values() if tensor.dim() > 1]
    options = ("--init-from", "--init-encoder", "--init-decoder", "--elmo")
    for source in {value for option, value in pairwise(start) if option in options}:
        theirs = [tensor for tensor in load_tensors(Path(source) / "model.safetensors")[0].values() if tensor.dim() > 1]
        found = sum(any(_begins_with(mine, tensor) for mine in ours) for tensor in theirs)
        # The output of a bidirectional language model says nothing to an encoder.
        assert found >= len(theirs) - 2 and found >= 0.6 * len(theirs), (found, len(theirs))


def _begins_with(ours, theirs):
    """Whether a matrix is another one, maybe with further rows for further pieces."""
    fits = ours.dim() == theirs.dim() and ours.shape[1:] == theirs.shape[1:] and len(ours) >= len(theirs)
    return fits and torch.equal(ours[: len(theirs)], theirs)
