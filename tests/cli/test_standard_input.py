"""Standard input as a corpus, in all commands that read corpora."""

import gzip
import json

import pytest

from bitext.readers.lines import standard_input
from tests.conftest import SHAPE
from translucid.runs.run_folder import RunFolder

PAIRS = "".join(f"I like soccer {i}.\tMe gusta el fútbol {i}.\n" for i in range(40)).encode()


def json_line(line):
    source, target = line.split("\t")
    return json.dumps({"source": source, "target": target}) + "\n"


OBJECTS = "".join(map(json_line, PAIRS.decode().splitlines())).encode()


@pytest.fixture(autouse=True)
def _clear_cache():
    """Clear the cache of standard input: outside the tests, a process runs one command only."""
    standard_input.cache_clear()
    yield
    standard_input.cache_clear()


@pytest.mark.parametrize("content", [PAIRS, OBJECTS, gzip.compress(PAIRS), b"\xef\xbb\xbf" + PAIRS])
def test_statistics(call, content):
    result = call("data", "stats", "--train", "-", "--json", stdin=content)
    assert result.code == 0, result.err
    assert json.loads(result.out)["train"]["pairs"] == 40


def test_cleaning_reads_it_twice(call, tmp_path):
    result = call("data", "clean", "-", "--out", tmp_path / "out.tsv", stdin=PAIRS)
    assert result.code == 0, result.err
    assert (tmp_path / "out.tsv").read_bytes() == PAIRS


def test_evaluation(call, small_run):
    result = call("evaluate", small_run, "--test", "-", "--json", "--beam", 1, stdin=PAIRS)
    assert result.code == 0, result.err
    assert json.loads(result.out)["sentences"] == 40


def test_training_stores_standard_input_for_resumption(call, corpus, tmp_path):
    limits = ["data.tokenizer.vocabulary=100", "training.max_steps=1"]
    out = tmp_path / "run"
    settings = ["--no-tune", "--set", *SHAPE, *limits]
    result = call("train", "--train", "-", "--valid", corpus / "test.tsv", "--out", out, *settings, stdin=PAIRS)
    assert result.code == 0, result.err
    copy = tmp_path / "run.input.tsv"
    assert copy.read_bytes() == PAIRS and str(copy) in result.err
    assert RunFolder(out).configuration().data.train == [str(copy)]
    result = call("train", "--resume", "--out", out, "--no-tune", "--set", "training.max_steps=2")
    assert result.code == 0, result.err
    assert "resumed at step 1" in result.err


def test_a_line_that_is_no_pair_is_named(call):
    result = call("data", "stats", "--train", "-", stdin=b"one column\n")
    assert result.code == 2
    assert result.err == "error: standard input:1: there is one column only. Each line is source TAB target.\n"


def test_standard_input_can_not_be_two_corpora(call):
    result = call("data", "stats", "--train", "-", "--test", "-", stdin=PAIRS)
    assert result.code == 2 and "standard input: can be one corpus and not several" in result.err


def test_empty_standard_input_is_reported(call):
    result = call("data", "stats", "--train", "-", stdin=b"")
    assert result.code == 2 and "standard input: is empty" in result.err


TABLE, DATABASE = "a table of columns", "a database"


@pytest.mark.parametrize(("name", "kind"), [("a.arrow", TABLE), ("a.sqlite", DATABASE)])
def test_tables_of_other_programs_are_named(call, tmp_path, name, kind):
    (tmp_path / name).write_bytes(b"PAR1")
    result = call("train", "--train", tmp_path / name, "--out", tmp_path / "run")
    assert result.code == 2
    assert f"{name}: is {kind} by its ending" in result.err and "partner" not in result.err
    assert "source and target" in result.err or "source TAB target" in result.err
