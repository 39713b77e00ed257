"""`translate --rerank-with` and `--mbr`."""

import json

import pytest

from tests.conftest import SHAPE
from translucid.cli.main import run


@pytest.fixture(scope="module")
def reverse_run(corpus, tmp_path_factory):
    """A run of the other direction that is barely trained."""
    folder = tmp_path_factory.mktemp("runs") / "reverse"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder, "--no-tune"]
    limits = ["training.max_steps=20", "training.validate_every=10", "data.reverse=true"]
    assert run([str(a) for a in ["train", *files, "--set", *SHAPE, *limits]]) == 0
    return folder


def records(out):
    return [json.loads(line) for line in out.splitlines()]


def test_weights_decide(call, small_run, reverse_run):
    texts = ["I like soccer", "She works at the hospital.", "Do you like sports?"]
    options = [small_run, *texts, "--beam", 6, "--nbest", 6, "--format", "jsonl", "--engine", "torch"]
    baseline = records(call("translate", *options, "--length-penalty", 0).out)
    ranked = ["--rerank-with", reverse_run, "--length-penalty", 0]
    unchanged = records(call("translate", *options, *ranked, "--reverse-weight", 0, "--length-weight", 0).out)
    assert [record["alternatives"] for record in unchanged] == [record["alternatives"] for record in baseline]
    reranked = records(call("translate", *options, *ranked, "--reverse-weight", 5, "--length-weight", 0).out)
    assert [record["alternatives"] for record in reranked] != [record["alternatives"] for record in baseline]
    assert [sorted(record["alternatives"]) for record in reranked] == [
        sorted(record["alternatives"]) for record in baseline
    ]
    for record in reranked:
        assert record["scores"] == sorted(record["scores"], reverse=True)


def test_tuning_says_what_it_brings_and_is_not_below_the_best_of_its_grid(
    call, small_run, reverse_run, corpus, monkeypatch
):
    command = ["translate", small_run, "I sing", "--rerank-with", reverse_run, "--tune-on", corpus / "test.tsv"]
    result = call(*command)
    assert result.code == 2 and "is too low to choose weights by" in result.err  # the runs are barely trained
    monkeypatch.setattr("translucid.evaluation.metrics.MEANINGFUL", {"BLEU": 0.0, "chrF": 0.0})
    result = call(*command)
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert "--reverse-weight" in result.err
    assert "on 20 pairs" in result.err


def test_a_run_of_the_other_direction_scores_its_own_targets(call, reverse_run, corpus):
    row = json.loads(call("score", reverse_run, corpus / "test.tsv", "--format", "jsonl").out.splitlines()[0])
    assert [row["target"], row["source"]] == (corpus / "test.tsv").read_text(encoding="utf-8").split("\n")[0].split(
        "\t"
    )


@pytest.mark.parametrize("options", [[], ["--sample"]], ids=["best", "drawn"])
def test_of_several_the_one_most_like_the_others_is_taken(call, small_run, options):
    texts = ["I like soccer", "She works at the hospital.", "", "Do you like sports?"]
    result = call("translate", small_run, *texts, "--mbr", 7, "--nbest", 7, "--beam", 7, "--format", "jsonl", *options)
    assert result.code == 0
    translations = records(result.out)
    assert translations[2]["translation"] == ""
    for record in translations[:2]:
        assert len(record["alternatives"]) > 1
        assert 0 < record["scores"][-1] <= record["scores"][0] <= 100
    assert call("translate", small_run, *texts, "--mbr", 7, *options).out.count("\n") == 4


def test_invalid_options_are_refused(call, small_run, reverse_run):
    for options, message in (
        (["--reverse-weight", 1], "--reverse-weight is for --rerank-with"),
        (["--tune-on", "x.tsv"], "--tune-on is for --rerank-with"),
        (["--rerank-with", reverse_run, "--mbr", 4], "--rerank-with and --mbr do not go together"),
        (["--rerank-with", reverse_run, "--sample"], "ranks what a beam search finds"),
        (["--rerank-with", reverse_run, "--beam", 1], "--rerank-with and --beam 1 do not go together"),
        (["--rerank-with", small_run / "none"], "no such folder"),
        (["--mbr", 1], "--mbr"),
    ):
        result = call("translate", small_run, "I sing", *options)
        assert result.code == 2, options
        assert message in result.err


def test_a_run_of_the_same_direction_is_refused_if_it_says_so(call, corpus, tmp_path):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run", "--no-tune"]
    limits = ["training.max_steps=1", "data.source_language=en", "data.target_language=es"]
    assert call("train", *files, "--set", *SHAPE, *limits).code == 0
    result = call("translate", tmp_path / "run", "I sing", "--rerank-with", tmp_path / "run")
    assert result.code == 2
    assert "translates from en to es itself" in result.err
