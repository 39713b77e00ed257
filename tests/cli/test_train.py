"""`translucid train`: what it writes into a run folder, and the errors that it reports."""

import gzip
import hashlib
import json
import platform
import shutil
import sys
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from translucid import __version__
from translucid.cli.main import run as run_command
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.presets import recipes
from translucid.runs.run_folder import RunFolder
from translucid.training import post_training
from translucid.training.records.record import Progress

from ..conftest import SHAPE

RECIPES = sorted((Path(__file__).resolve().parents[2] / "recipes").glob("*.yaml"))
LIMITS = ["training.max_steps=4", "training.validate_every=2"]


def test_the_run_folder_holds_what_the_docs_say(small_run):
    names = {item.name for item in small_run.iterdir()}
    assert {"config.yaml", "model.safetensors", "tokenizer.model", "metrics.jsonl", "state"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    config = yaml.safe_load((small_run / "config.yaml").read_text())
    assert config["model"]["width"] == 16
    assert config["versions"]["translucid"]


def test_a_moses_pair_that_the_shell_has_spread(call, tmp_path, monkeypatch):
    """Its updates are profiled."""
    monkeypatch.setattr("translucid.training.profile.WARM_UP", 1)
    monkeypatch.setattr("translucid.training.profile.UPDATES", 2)
    for language, text in (("en", "one two\nthree four\n" * 60), ("es", "uno dos\ntres cuatro\n" * 60)):
        with gzip.open(tmp_path / f"c.{language}.gz", "wt") as file:
            file.write(text)
    files = [tmp_path / "c.en.gz", tmp_path / "c.es.gz"]
    shape = [setting for setting in SHAPE if "vocabulary" not in setting] + ["data.tokenizer.vocabulary=20"]
    options = "--out", tmp_path / "run", "--profile", "--set", *shape, *LIMITS
    result = call("train", "--train", *files, "--valid", *files, *options)
    assert result.code == 0, result.err
    assert "120 pairs" in result.err
    assert "2 updates of " in result.err and "that a large product in " in result.err


def counting_options(folder):
    """Return the options of a short training on number words: sequences of four, and one line repeated 100 times."""
    numbers = {"one": "uno", "two": "dos", "three": "tres", "four": "cuatro", "five": "cinco"}
    pairs = [
        (" ".join(w), " ".join(map(numbers.get, w))) for w in [*list(product(numbers, repeat=4))[::6], ["one"] * 100]
    ]
    file = folder / "numbers.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    shape = [setting for setting in SHAPE if "vocabulary" not in setting]
    shape += ["data.tokenizer.vocabulary=36", "model.positions=learned", "model.max_length=40"]
    limits = [
        "training.learning_rate=0.02",
        "training.warmup=10",
        "training.validate_every=30",
        "training.max_steps=60",
    ]
    return ["--train", file, "--valid", file, "--out", folder / "run", "--set", *shape, *limits]


@pytest.fixture
def counting(tmp_path):
    return counting_options(tmp_path)


@pytest.fixture(scope="module")
def counting_run(tmp_path_factory):
    """A run that has learned to count a little and was not tuned."""
    folder = tmp_path_factory.mktemp("counted")
    assert run_command([str(word) for word in ["train", "--no-tune", *counting_options(folder)]]) == 0
    return folder / "run"


def test_in_the_end_the_fastest_way_to_translate_is_found(call, counting_run, tmp_path, monkeypatch):
    monkeypatch.setattr(post_training, "find_fastest", partial(post_training.find_fastest, sentences=2))
    shutil.copytree(counting_run, tmp_path / "run")
    tuned_file = tmp_path / "run" / "tuned.json"
    assert not tuned_file.exists()
    result = call("train", "--resume", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "the run is translated by" in result.err
    assert tuned_file.exists()
    tuned_file.write_text('{"engine": "torch"}')  # the user may have chosen this since
    result = call("train", "--resume", "--out", tmp_path / "run")
    assert "the run is translated by" not in result.err
    assert tuned_file.read_text() == '{"engine": "torch"}'
    tuned_file.write_text('{"shortlist": true}')  # invalid, but the training must not fail because of it
    assert call("train", "--resume", "--out", tmp_path / "run").code == 0


def test_two_vocabularies_have_only_pieces_of_their_language(call, counting, tmp_path):
    apart = ["data.tokenizer.joint=false", "data.tokenizer.vocabulary=22", "model.share_embeddings=false"]
    result = call("train", "--no-tune", *counting, *apart)
    assert result.code == 0, result.err
    result = call("tune", "speed", tmp_path / "run", "--sentences", 2)
    assert result.code == 0, result.err
    assert (result.out.count("all pieces"), result.out.count("seen pieces")) == (3, 0)


@pytest.mark.parametrize("error", [UserError("the files are gone"), OSError("the disk is full"), KeyboardInterrupt()])
def test_a_training_is_done_even_if_the_fastest_way_is_not_found(call, counting_run, tmp_path, monkeypatch, error):
    def find_fastest(run, console, source, target):
        raise error

    monkeypatch.setattr("translucid.training.post_training.find_fastest", find_fastest)
    shutil.copytree(counting_run, tmp_path / "run")
    result = call("train", "--resume", "--out", tmp_path / "run")
    assert result.code == (130 if isinstance(error, KeyboardInterrupt) else 0)
    assert "not tuned" in result.err and str(error) in result.err
    assert not (tmp_path / "run" / "tuned.json").exists()


@pytest.mark.parametrize(
    ("over", "leads", "bleu", "device", "expected"),
    [
        (True, True, 20.0, "cpu", True),
        (False, True, 20.0, "cpu", False),
        (True, False, 20.0, "cpu", False),
        (True, True, 0.5, "cpu", False),
        (True, True, 20.0, "mps", False),
    ],
)
def test_when_a_training_searches_the_fastest_configuration(
    call, counting, monkeypatch, over, leads, bleu, device, expected
):
    calls = []

    @contextmanager
    def prepared(configuration, out, **_):
        progress = Progress(best_score=bleu)
        facts = {"finished": over, "workers": SimpleNamespace(leads=leads), "device": torch.device(device)}
        facts["validator"] = SimpleNamespace(comparable=lambda score: score if score >= 1 else 0.0)
        yield SimpleNamespace(run=RunFolder(out), progress=progress, fit=lambda display: progress, **facts), None

    def find_fastest(run, console, source, target):
        calls.append(run)
        raise UserError("enough")

    monkeypatch.setattr("translucid.training.experiment.prepared", prepared)
    monkeypatch.setattr("translucid.training.post_training.find_fastest", find_fastest)
    monkeypatch.setattr("translucid.training.post_training.trained_directions", lambda trainer: [(None, None)])
    assert call("train", *counting).code == 0
    assert bool(calls) == expected


def test_without_validation_files_some_pairs_are_held_out(call, corpus, tmp_path):
    result = call("train", "--train", corpus / "train.tsv", "--out", tmp_path / "run", "--set", *SHAPE, *LIMITS)
    assert result.code == 0, result.err
    assert "held out" in result.err
    assert "← chosen" in call("tune", "speed", tmp_path / "run", "--sentences", 5).out


def test_an_existing_run_is_not_overwritten(call, corpus, small_run):
    before = (small_run / "model.safetensors").read_bytes()
    result = call("train", "--train", corpus / "train.tsv", "--out", small_run)
    assert result.code == 2
    assert "--resume" in result.err
    assert "--overwrite" in result.err
    assert (small_run / "model.safetensors").read_bytes() == before


def test_a_foreign_folder_is_left_alone(call, corpus, tmp_path):
    (tmp_path / "thesis.txt").write_text("chapter one")
    result = call("train", "--train", corpus / "train.tsv", "--out", tmp_path, "--overwrite")
    assert result.code == 2
    assert (tmp_path / "thesis.txt").read_text() == "chapter one"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"a\tb\n\0\x01\x02", ":2:"),
        (b"a\tb\nca\xf1a\tc\n", ":2:"),
        (b"a\tb\njust one column\n", ":2:"),
    ],
)
def test_bad_files_are_one_clear_line(call, tmp_path, content, message):
    file = tmp_path / "pairs.tsv"
    if content is not None:
        file.write_bytes(content)
    result = call("train", "--train", file, "--out", tmp_path / "run")
    assert result.code == 2
    assert message in result.err
    assert "pairs.tsv" in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "model.widht=3"], "model.width"),
        (["--set", "modle.width=3"], "model"),
        (["--set", "model.width=17"], "heads"),
        (["--set", "model.width"], "--set key=value"),
        (["--set", "training.batch_tokens=many"], "training.batch_tokens"),
        (["--model", "tiny", "--set", "data.tokenizer.vocabulary=90000"], "data.tokenizer.vocabulary="),
        (["--set", "data.tokenizer.joint=false"], "share_embeddings"),
        (["--model", "tinny"], "'tiny'"),
        (["nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_settings_are_one_clear_line(call, corpus, tmp_path, arguments, message):
    positional = [a for a in arguments if a.endswith(".yaml")]
    options = [a for a in arguments if a not in positional]
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    result = call("train", *positional, *files, "--out", tmp_path / "run", *options)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_missing_arguments(call, corpus, tmp_path):
    assert "--out" in call("train", "--train", corpus / "train.tsv").err
    assert "--train" in call("train", "--out", tmp_path / "run").err


def test_a_resumed_run_keeps_its_shape(call, small_run):
    result = call("train", "--resume", "--out", small_run, "--set", "model.width=32")
    assert result.code == 2
    assert "resumed" in result.err


def test_bad_lines_stop_a_training_unless_they_are_to_be_skipped(call, corpus, tmp_path):
    text, run = tmp_path / "train.tsv", tmp_path / "run"
    good = (corpus / "train.tsv").read_bytes()
    text.write_bytes(b"one column\n" + good + b"ca\xf1a\tx\n")
    command = [
        "train",
        "--train",
        text,
        "--valid",
        corpus / "test.tsv",
        "--out",
        run,
        "--no-tune",
        "--set",
        *SHAPE,
        "training.max_steps=2",
    ]
    result = call(*command)
    assert result.code == 2
    assert f"{text}:1: there is one column only" in result.err
    assert not run.exists()
    result = call(*command, "--skip-bad")
    assert result.code == 0, result.err
    assert "skipped 2: 2 no pairs" in " ".join(result.err.split())
    bad = [json.loads(line) for line in (run / "bad-lines.jsonl").read_text().splitlines()]
    assert [(row["line"], row["text"]) for row in bad] == [(1, "one column"), (302, "ca\\xf1a\tx")]
    shutil.rmtree(run / "state" / "corpus")
    result = call("train", "--resume", "--out", run, "--no-tune", "--set", "training.max_steps=3")
    assert result.code == 0, result.err
    assert len((run / "bad-lines.jsonl").read_text().splitlines()) == 2
    stats = call("data", "stats", "--train", text, "--skip-bad")
    assert stats.code == 0 and "2 no pairs" in stats.out
    assert call("data", "stats", "--train", text).code == 2


def test_a_run_says_where_its_weights_come_from(call, corpus, tmp_path):
    run = tmp_path / "run"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    assert call("train", *files, "--out", run, "--no-tune", "--set", *SHAPE, "training.max_steps=2").code == 0
    assert call("train", "--resume", "--out", run, "--no-tune", "--set", "training.max_steps=4").code == 0
    rows = [json.loads(line) for line in (run / "provenance.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 2]
    assert rows[1]["command"][:3] == ["translucid", "train", "--resume"]
    assert rows[0]["translucid"] == __version__
    content = (corpus / "train.tsv").read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    assert rows[0]["data"][0] == {"file": str(corpus / "train.tsv"), "bytes": len(content), "sha256": sha256}
    assert rows[0]["machine"]["cores"] >= 1 and rows[0]["machine"]["processor"]
    assert platform.node() not in (run / "provenance.jsonl").read_text() or len(platform.node()) < 4
    (run / "provenance.jsonl").unlink()
    assert call("translate", run, "I sing").code == 0


def test_a_recipe_is_found_by_its_name(call, tmp_path):
    result = call("train", "tatoeba-eng-spa", "--train", "nowhere.tsv", "--out", tmp_path / "run")
    assert result.code == 2 and "nowhere.tsv" in result.err
    result = call("train", "tatoeba-eng-sap", "--train", "nowhere.tsv", "--out", tmp_path / "run")
    assert result.code == 2 and "Did you mean 'tatoeba-eng-spa'?" in result.err
    listed = call("models").out
    assert {file.stem for file in RECIPES} == set(recipes())
    assert all(name in listed for name in recipes())


def _short_training(corpus, out, *options):
    limits = ["training.max_steps=2", "training.validate_every=2"]
    return ["train", "--train", corpus / "train.tsv", "--out", out, "--no-tune", *options, "--set", *SHAPE, *limits]


def test_bad_lines_of_validation_files_are_counted_and_stored(call, corpus, tmp_path):
    valid = tmp_path / "valid.tsv"
    valid.write_bytes((corpus / "test.tsv").read_bytes() + b"one column\n")
    result = call(*_short_training(corpus, tmp_path / "run", "--valid", valid, "--skip-bad"))
    assert result.code == 0, result.err
    assert "of the validation files, 1 line is no pair and skipped" in " ".join(result.err.split())
    assert "300 pairs; none skipped" in result.err
    (row,) = map(json.loads, (tmp_path / "run" / "bad-lines.jsonl").read_text().splitlines())
    assert (row["file"], row["line"], row["text"]) == (str(valid), 21, "one column")


def test_a_folder_does_not_hide_the_recipe_of_its_name(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tatoeba-eng-spa").mkdir()
    result = call("train", "tatoeba-eng-spa", "--train", "none.tsv", "--out", "run")
    assert result.code == 2 and "none.tsv: can't be read" in result.err


def test_provenance_has_a_command_only_if_there_was_one(call, corpus, tmp_path, monkeypatch):
    from translucid.training.experiment import run_experiment

    monkeypatch.setattr(sys, "argv", ["/home/alice/ipykernel", "-f", "/home/alice/kernel.json"])
    files = {"data.train": [str(corpus / "train.tsv")], "data.valid": [str(corpus / "test.tsv")]}
    settings = [*SHAPE, "training.max_steps=2", "training.validate_every=2"]
    run_experiment(resolve(assignments=settings, overrides=files), tmp_path / "python", device="cpu")
    (row,) = RunFolder(tmp_path / "python").provenance_file.read_text().splitlines()
    assert "alice" not in row and json.loads(row)["command"] is None
    assert [Path(file["file"]).name for file in json.loads(row)["data"]] == ["train.tsv", "test.tsv"]
    arguments = [str(word) for word in _short_training(corpus, tmp_path / "run", "--valid", corpus / "test.tsv")]
    assert call(*arguments).code == 0
    (row,) = RunFolder(tmp_path / "run").provenance_file.read_text().splitlines()
    assert json.loads(row)["command"] == ["translucid", *arguments]


def test_a_row_of_provenance_that_was_cut_off_does_not_swallow_the_next(tmp_path):
    run = RunFolder(tmp_path)
    run.add_provenance({"step": 0})
    with run.provenance_file.open("a") as file:
        file.write('{"date": "cut')
    run.add_provenance({"step": 2})
    lines = run.provenance_file.read_text().splitlines()
    assert [lines[0], lines[-1]] == ['{"step": 0}', '{"step": 2}']


def test_a_refused_command_leaves_no_lock(call, corpus, small_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(small_run, run)
    (run / ".lock").unlink()
    result = call("train", "--resume", "--out", run, "--train", corpus / "test.tsv", "--set", "training.max_steps=30")
    assert result.code == 2 and "the training text has changed" in result.err
    assert not (run / ".lock").exists()


def test_a_model_that_was_given_away_is_not_trained_over(call, small_run, tmp_path):
    run = tmp_path / "given"
    shutil.copytree(small_run, run)
    shutil.rmtree(run / "state")
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    result = call("train", "--resume", "--out", run, "--no-tune")
    assert result.code == 2
    assert "no state/" in result.err
    assert {file.name: file.read_bytes() for file in run.iterdir() if file.name != ".lock"} == {
        name: content for name, content in before.items() if name != ".lock"
    }


def test_a_vocabulary_size_is_adapted_unless_the_user_set_it(call, corpus, tmp_path):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run", "--no-tune"]
    small = [setting for setting in SHAPE if "vocabulary" not in setting]
    command = ["train", "--model", "tiny", *files, "--set", *small, "training.max_steps=1"]
    result = call(*command)
    assert result.code == 0, result.err
    size = RunFolder(tmp_path / "run").tokenizer().target_size
    assert f"the training text gets a vocabulary of {size:,}: the preset's" in result.err
    assert RunFolder(tmp_path / "run").configuration().data.tokenizer.vocabulary == size
    assert call(*command, "--resume").code == 0  # the same command succeeds again
    result = call(*command, "data.tokenizer.vocabulary=5000", "--overwrite")
    assert result.code == 2 and "larger than the training text supports" in result.err
    assert RunFolder(tmp_path / "run").tokenizer().target_size == size
    settings = tmp_path / "mine.yaml"
    settings.write_text("data: {tokenizer: {vocabulary: 5000}}")
    assert call("train", settings, *files, "--overwrite", "--set", *small).code == 2
