"""`translucid train`: from files to a run folder, and every way to get it wrong."""

import gzip
from itertools import product

import pytest
import yaml

from ..conftest import SHAPE

LIMITS = ["training.max_steps=4", "training.validate_every=2"]


def test_the_run_folder_holds_what_the_docs_say(small_run):
    names = {item.name for item in small_run.iterdir()}
    assert {"config.yaml", "model.safetensors", "tokenizer.model", "metrics.jsonl", "state"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    config = yaml.safe_load((small_run / "config.yaml").read_text())
    assert config["model"]["width"] == 16
    assert config["versions"]["translucid"]


def test_a_moses_pair_that_the_shell_has_spread(call, tmp_path):
    for language, text in (("en", "one two\nthree four\n" * 60), ("es", "uno dos\ntres cuatro\n" * 60)):
        with gzip.open(tmp_path / f"c.{language}.gz", "wt") as file:
            file.write(text)
    files = [tmp_path / "c.en.gz", tmp_path / "c.es.gz"]
    shape = [setting for setting in SHAPE if "vocabulary" not in setting] + ["data.tokenizer.vocabulary=20"]
    done = call("train", "--train", *files, "--valid", *files, "--out", tmp_path / "run", "--set", *shape, *LIMITS)
    assert done.code == 0, done.err
    assert "120 pairs" in done.err


@pytest.mark.parametrize("more", [[], ["--no-tune"]])
def test_in_the_end_the_fastest_way_to_translate_is_found(call, tmp_path, more):
    numbers = {"one": "uno", "two": "dos", "three": "tres", "four": "cuatro", "five": "cinco"}
    pairs = [(" ".join(w), " ".join(map(numbers.get, w))) for w in product(numbers, repeat=4)][::6]
    file, run = tmp_path / "numbers.tsv", tmp_path / "run"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    shape = [setting for setting in SHAPE if "vocabulary" not in setting] + ["data.tokenizer.vocabulary=36"]
    limits = [
        "training.learning_rate=0.02",
        "training.warmup=10",
        "training.validate_every=30",
        "training.max_steps=60",
    ]
    done = call("train", "--train", file, "--valid", file, "--out", run, *more, "--set", *shape, *limits)
    assert done.code == 0, done.err
    assert ("from now on translated by" in done.err) == (run / "tuned.json").exists() == (not more)


def test_without_validation_files_some_pairs_are_held_out(call, corpus, tmp_path):
    done = call("train", "--train", corpus / "train.tsv", "--out", tmp_path / "run", "--set", *SHAPE, *LIMITS)
    assert done.code == 0, done.err
    assert "held out" in done.err


def test_a_run_is_not_lost(call, corpus, small_run):
    before = (small_run / "model.safetensors").read_bytes()
    done = call("train", "--train", corpus / "train.tsv", "--out", small_run)
    assert done.code == 2
    assert "--resume" in done.err
    assert "--overwrite" in done.err
    assert (small_run / "model.safetensors").read_bytes() == before


def test_a_foreign_folder_is_left_alone(call, corpus, tmp_path):
    (tmp_path / "thesis.txt").write_text("chapter one")
    done = call("train", "--train", corpus / "train.tsv", "--out", tmp_path, "--overwrite")
    assert done.code == 2
    assert (tmp_path / "thesis.txt").read_text() == "chapter one"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"a\tb\n\0\x01\x02", ":2:"),
        (b"a\tb\nca\xf1a\tc\n", ":2:"),
        (b"a\tb\njust one column\n", ":2:"),
    ],
)
def test_bad_files_are_one_clear_line(call, tmp_path, content, said):
    file = tmp_path / "pairs.tsv"
    if content is not None:
        file.write_bytes(content)
    done = call("train", "--train", file, "--out", tmp_path / "run")
    assert done.code == 2
    assert said in done.err
    assert "pairs.tsv" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "model.widht=3"], "model.width"),
        (["--set", "modle.width=3"], "model"),
        (["--set", "model.width=17"], "heads"),
        (["--set", "model.width"], "--set key=value"),
        (["--set", "training.batch_tokens=many"], "training.batch_tokens"),
        (["--set", "data.tokenizer.vocabulary=90000"], "data.tokenizer.vocabulary="),
        (["--set", "data.tokenizer.joint=false"], "share_embeddings"),
        (["--model", "tinny"], "'tiny'"),
        (["nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_settings_are_one_clear_line(call, corpus, tmp_path, arguments, said):
    positional = [a for a in arguments if a.endswith(".yaml")]
    options = [a for a in arguments if a not in positional]
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    done = call("train", *positional, *files, "--out", tmp_path / "run", *options)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_missing_arguments(call, corpus, tmp_path):
    assert "--out" in call("train", "--train", corpus / "train.tsv").err
    assert "--train" in call("train", "--out", tmp_path / "run").err


def test_a_resumed_run_keeps_its_shape(call, small_run):
    done = call("train", "--resume", "--out", small_run, "--set", "model.width=32")
    assert done.code == 2
    assert "resumed" in done.err
