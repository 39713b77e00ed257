"""`translate --rerank-with`: noisy channel and minimum Bayes risk."""

import json
import shutil

import pytest

from tests.conftest import SHAPE
from translucid.cli.main import run
from translucid.engines.run_files import load_channel_weights
from translucid.runs.run_folder import RunFolder


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


def test_weights_decide(call, small_run, reverse_run, tmp_path):
    small_run = shutil.copytree(small_run, tmp_path / "run")
    tuning = ["tune", "ranking", small_run, "--reverse", reverse_run, "--length-weight", 0, "--reverse-weight"]
    texts = ["I like soccer", "She works at the hospital.", "Do you like sports?"]
    options = [small_run, *texts, "--beam", 6, "--nbest", 6, "--format", "jsonl", "--engine", "torch"]
    baseline = records(call("translate", *options, "--length-penalty", 0).out)
    ranked = ["--rerank-with", reverse_run, "--length-penalty", 0]
    default = records(call("translate", *options, *ranked).out)
    assert call(*tuning, 0).out == "--reverse-weight 0 --length-weight 0\n"
    unchanged = records(call("translate", *options, *ranked).out)
    assert [record["alternatives"] for record in unchanged] == [record["alternatives"] for record in baseline]
    assert call(*tuning, 5).code == 0
    reranked = records(call("translate", *options, *ranked).out)
    assert [record["alternatives"] for record in reranked] != [record["alternatives"] for record in baseline]
    assert [sorted(record["alternatives"]) for record in reranked] == [
        sorted(record["alternatives"]) for record in baseline
    ]
    for record in reranked:
        assert record["scores"] == sorted(record["scores"], reverse=True)
    # Weights are for one reverse run: another one ranks with the defaults.
    other = shutil.copytree(reverse_run, tmp_path / "other")
    folder, tokenizer = RunFolder(other), RunFolder(other).tokenizer()
    folder.save_model(folder.load_sequence_model(folder.configuration(), tokenizer), tokenizer, {"step": 1})
    assert records(call("translate", *options, "--rerank-with", other, "--length-penalty", 0).out) == default
    assert load_channel_weights(RunFolder(small_run), (None, None), RunFolder(reverse_run)) == (5, 0)
    (small_run / "ranking.json").write_text("{")
    damaged = call("translate", *options, *ranked)
    assert damaged.code == 2 and "ranking.json: can't be read. Delete it, or run translucid tune ranking" in damaged.err


def test_tuning_says_what_it_brings_and_is_not_below_the_best_of_its_grid(
    call, small_run, reverse_run, corpus, monkeypatch, tmp_path
):
    small_run = shutil.copytree(small_run, tmp_path / "run")
    command = ["tune", "ranking", small_run, "--reverse", reverse_run, "--pairs", corpus / "test.tsv"]
    result = call(*command)
    assert result.code == 2 and "is too low to choose weights by" in result.err  # the runs are barely trained
    monkeypatch.setattr("translucid.evaluation.metrics.MEANINGFUL", {"BLEU": 0.0, "chrF": 0.0})
    result = call(*command)
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert "--reverse-weight" in result.out
    assert "on 20 pairs" in result.out
    assert (small_run / "ranking.json").exists()
    # A weight that is set is not varied.
    assert "--length-weight 3:" in call(*command, "--length-weight", 3).out


def test_a_run_of_the_other_direction_scores_its_own_targets(call, reverse_run, corpus):
    row = json.loads(call("score", reverse_run, corpus / "test.tsv", "--format", "jsonl").out.splitlines()[0])
    assert [row["target"], row["source"]] == (corpus / "test.tsv").read_text(encoding="utf-8").split("\n")[0].split(
        "\t"
    )


@pytest.mark.parametrize("options", [[], ["--temperature", 1]], ids=["best", "drawn"])
def test_of_several_the_one_most_like_the_others_is_taken(call, small_run, options):
    texts = ["I like soccer", "She works at the hospital.", "", "Do you like sports?"]
    risk = ["--rerank-with", "mbr:7", *options]
    result = call("translate", small_run, *texts, *risk, "--nbest", 7, "--beam", 7, "--format", "jsonl")
    assert result.code == 0
    translations = records(result.out)
    assert translations[2]["translation"] == ""
    for record in translations[:2]:
        assert len(record["alternatives"]) > 1
        assert 0 < record["scores"][-1] <= record["scores"][0] <= 100
    assert call("translate", small_run, *texts, *risk).out.count("\n") == 4


def test_invalid_options_are_refused(call, small_run, reverse_run):
    for options, message in (
        (["--reverse-weight", 1], "is now translucid tune ranking RUN --reverse RUN --reverse-weight WEIGHT"),
        (["--tune-on", "x.tsv"], "is now translucid tune ranking RUN --reverse RUN --pairs FILES"),
        (["--rerank-with", reverse_run, "--temperature", 1], "ranks what a beam search finds"),
        (["--rerank-with", reverse_run, "--beam", 1], "--rerank-with and --beam 1 do not go together"),
        (["--rerank-with", small_run / "none"], "no such folder"),
        (["--rerank-with", "mbr:1"], "--rerank-with mbr:1 chooses among too few or too many. Give mbr:2 to mbr:1000"),
        (["--mbr", 7], "The option --mbr is now --rerank-with mbr:N"),
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
    result = call("tune", "ranking", tmp_path / "run", "--reverse", tmp_path / "run", "--length-weight", 1)
    assert result.code == 2 and "translates from en to es itself" in result.err
    assert (
        "nothing to choose the weights by"
        in call("tune", "ranking", tmp_path / "run", "--reverse", tmp_path / "run").err
    )
