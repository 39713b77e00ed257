"""Standard input as a corpus, wherever corpora are read."""

import gzip
import json

import pytest

from tests.conftest import SHAPE
from translucid.data.readers import standard_input
from translucid.runs.run_folder import RunFolder

PAIRS = "".join(f"I like soccer {i}.\tMe gusta el fútbol {i}.\n" for i in range(40)).encode()
OBJECTS = "".join(
    json.dumps({"source": source, "target": target}) + "\n"
    for source, target in (line.split("\t") for line in PAIRS.decode().splitlines())
).encode()


@pytest.fixture(autouse=True)
def _read_anew():
    """What was read is kept as long as the process, which runs one command elsewhere."""
    standard_input.standard_input.cache_clear()
    yield
    standard_input.standard_input.cache_clear()


@pytest.mark.parametrize("content", [PAIRS, OBJECTS, gzip.compress(PAIRS), b"\xef\xbb\xbf" + PAIRS])
def test_statistics(call, content):
    done = call("data", "stats", "--train", "-", "--json", stdin=content)
    assert done.code == 0, done.err
    assert json.loads(done.out)["train"]["pairs"] == 40


def test_cleaning_reads_it_twice(call, tmp_path):
    done = call("data", "clean", "-", "--out", tmp_path / "out.tsv", stdin=PAIRS)
    assert done.code == 0, done.err
    assert (tmp_path / "out.tsv").read_bytes() == PAIRS


def test_evaluation(call, small_run):
    done = call("evaluate", small_run, "--test", "-", "--json", "--beam", 1, stdin=PAIRS)
    assert done.code == 0, done.err
    assert json.loads(done.out)["sentences"] == 40


def test_training_keeps_it_for_a_later_time(call, corpus, tmp_path):
    limits = ["data.tokenizer.vocabulary=100", "training.max_steps=1"]
    out = tmp_path / "run"
    settings = ["--no-tune", "--set", *SHAPE, *limits]
    done = call("train", "--train", "-", "--valid", corpus / "test.tsv", "--out", out, *settings, stdin=PAIRS)
    assert done.code == 0, done.err
    kept = tmp_path / "run.input.tsv"
    assert kept.read_bytes() == PAIRS and str(kept) in done.err
    assert RunFolder(out).configuration().data.train == [str(kept)]
    done = call("train", "--resume", "--out", out, "--no-tune", "--set", "training.max_steps=2")
    assert done.code == 0, done.err
    assert "resumed at step 1" in done.err


def test_a_line_that_is_no_pair_is_named(call):
    done = call("data", "stats", "--train", "-", stdin=b"one column\n")
    assert done.code == 2
    assert done.err == "error: standard input:1: there is one column only. Each line is source TAB target.\n"


def test_it_is_one_corpus_and_not_two(call):
    done = call("data", "stats", "--train", "-", "--test", "-", stdin=PAIRS)
    assert done.code == 2 and "standard input: can be one corpus and not several" in done.err


def test_nothing_is_said_to_be_empty(call):
    done = call("data", "stats", "--train", "-", stdin=b"")
    assert done.code == 2 and "standard input: is empty" in done.err


TABLE, DATABASE = "a table of columns", "a database"


@pytest.mark.parametrize(("name", "what"), [("a.arrow", TABLE), ("a.sqlite", DATABASE)])
def test_tables_of_other_programs_are_named(call, tmp_path, name, what):
    (tmp_path / name).write_bytes(b"PAR1")
    done = call("train", "--train", tmp_path / name, "--out", tmp_path / "run")
    assert done.code == 2
    assert f"{name}: is {what} by its ending" in done.err and "partner" not in done.err
    assert "source and target" in done.err or "source TAB target" in done.err
