"""`translate --rerank-with` and `--mbr`."""

import json

import pytest

from tests.conftest import SHAPE
from translucid.cli.main import run


@pytest.fixture(scope="module")
def reverse_run(corpus, tmp_path_factory):
    """A run of the other direction that has learned next to nothing."""
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
    plain = records(call("translate", *options, "--length-penalty", 0).out)
    ranked = ["--rerank-with", reverse_run, "--length-penalty", 0]
    same = records(call("translate", *options, *ranked, "--reverse-weight", 0, "--length-weight", 0).out)
    assert [one["alternatives"] for one in same] == [one["alternatives"] for one in plain]
    other = records(call("translate", *options, *ranked, "--reverse-weight", 5, "--length-weight", 0).out)
    assert [one["alternatives"] for one in other] != [one["alternatives"] for one in plain]
    assert [sorted(one["alternatives"]) for one in other] == [sorted(one["alternatives"]) for one in plain]
    for one in other:
        assert one["scores"] == sorted(one["scores"], reverse=True)


def test_tuning_says_what_it_brings_and_is_not_below_the_best_of_its_grid(
    call, small_run, reverse_run, corpus, monkeypatch
):
    command = ["translate", small_run, "I sing", "--rerank-with", reverse_run, "--tune-on", corpus / "test.tsv"]
    done = call(*command)
    assert done.code == 2 and "is too low to choose weights by" in done.err  # they have learned next to nothing
    monkeypatch.setattr("translucid.evaluation.metrics.TELLS", {"BLEU": 0.0, "chrF": 0.0})
    done = call(*command)
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert "--reverse-weight" in done.err
    assert "on 20 pairs" in done.err


def test_a_run_of_the_other_direction_scores_its_own_targets(call, reverse_run, corpus):
    row = json.loads(call("score", reverse_run, corpus / "test.tsv", "--format", "jsonl").out.splitlines()[0])
    assert [row["target"], row["source"]] == (corpus / "test.tsv").read_text(encoding="utf-8").split("\n")[0].split(
        "\t"
    )


@pytest.mark.parametrize("more", [[], ["--sample"]], ids=["best", "drawn"])
def test_of_several_the_one_most_like_the_others_is_taken(call, small_run, more):
    texts = ["I like soccer", "She works at the hospital.", "", "Do you like sports?"]
    done = call("translate", small_run, *texts, "--mbr", 7, "--nbest", 7, "--beam", 7, "--format", "jsonl", *more)
    assert done.code == 0
    found = records(done.out)
    assert found[2]["translation"] == ""
    for one in found[:2]:
        assert len(one["alternatives"]) > 1
        assert 0 < one["scores"][-1] <= one["scores"][0] <= 100
    assert call("translate", small_run, *texts, "--mbr", 7, *more).out.count("\n") == 4


def test_what_makes_no_sense_is_refused(call, small_run, reverse_run):
    for wrong, why in (
        (["--reverse-weight", 1], "--reverse-weight is for --rerank-with"),
        (["--tune-on", "x.tsv"], "--tune-on is for --rerank-with"),
        (["--rerank-with", reverse_run, "--mbr", 4], "--rerank-with and --mbr do not go together"),
        (["--rerank-with", reverse_run, "--sample"], "ranks what a beam search finds"),
        (["--rerank-with", reverse_run, "--beam", 1], "--rerank-with and --beam 1 do not go together"),
        (["--rerank-with", small_run / "none"], "no such folder"),
        (["--mbr", 1], "--mbr"),
    ):
        done = call("translate", small_run, "I sing", *wrong)
        assert done.code == 2, wrong
        assert why in done.err


def test_a_run_of_the_same_direction_is_refused_if_it_says_so(call, corpus, tmp_path):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run", "--no-tune"]
    limits = ["training.max_steps=1", "data.source_language=en", "data.target_language=es"]
    assert call("train", *files, "--set", *SHAPE, *limits).code == 0
    done = call("translate", tmp_path / "run", "I sing", "--rerank-with", tmp_path / "run")
    assert done.code == 2
    assert "translates from en to es itself" in done.err
