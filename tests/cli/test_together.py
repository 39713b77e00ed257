"""Ensembles of runs, by `--ensemble`."""

import json

import pytest

from tests.conftest import SHAPE
from translucid import Translator, UserError


@pytest.fixture(scope="module")
def sister(small_run, corpus, tmp_path_factory):
    """Train a run with the vocabulary of `small_run` from another initialization: sister(*settings)."""
    runs = {}

    def train_run(*settings):
        if settings not in runs:
            from translucid.cli.main import run

            folder = tmp_path_factory.mktemp("runs") / "sister"
            files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder, "--no-tune"]
            limits = ["training.max_steps=20", "training.validate_every=10", "training.seed=1"]
            assert run([str(a) for a in ["train", *files, "--set", *SHAPE, *limits, *settings]]) == 0
            runs[settings] = folder
        return runs[settings]

    return train_run


def test_a_run_with_itself_writes_what_it_writes_alone(call, small_run):
    alone = call("translate", small_run, "I like soccer", "She works.", "--engine", "torch", "--nbest", 3)
    ensemble = call("translate", small_run, "I like soccer", "She works.", "--nbest", 3, "--ensemble", small_run)
    assert ensemble.code == 0
    assert ensemble.out == alone.out


def test_two_runs_write_what_neither_writes_alone(call, small_run, sister, corpus):
    other = sister("model.dropout=0.3")
    test = "--test", corpus / "test.tsv", "--json", "--engine", "torch"
    ensemble = json.loads(call("evaluate", small_run, *test, "--ensemble", other).out)
    reports = [json.loads(call("evaluate", run, *test).out) for run in (small_run, other)]
    assert ensemble["perplexity"] not in [report["perplexity"] for report in reports]
    # The mean of probabilities is never below their geometric mean, so the ensemble is never worse than both.
    assert ensemble["perplexity"] < max(report["perplexity"] for report in reports)
    texts = ["I like soccer", "She works at the hospital."]
    in_python = Translator.load(small_run, others=[other]).translate(texts)
    printed = call("translate", small_run, *texts, "--ensemble", other).out.splitlines()
    assert [translation.text for translation in in_python] == printed
    swapped = Translator.load(other, others=[small_run]).translate(texts)
    assert [translation.score for translation in swapped] == pytest.approx(
        [translation.score for translation in in_python], abs=1e-4
    )


def test_a_text_that_is_a_path_stays_a_text(call, small_run):
    assert call("translate", small_run, f"{small_run}/missing").out.count("\n") == 1


def test_incompatible_runs_are_refused(call, small_run, sister, tmp_path):
    reverse_run = sister("data.reverse=true")
    for other_run, message in (
        (sister("data.tokenizer.vocabulary=190"), "has another vocabulary"),
        (reverse_run, "another vocabulary" if not same_vocabulary(small_run, reverse_run) else "the other way round"),
        (tmp_path, "neither a run folder"),
    ):
        result = call("translate", small_run, "I like soccer", "--ensemble", other_run)
        assert result.code == 2, other_run
        assert message in result.err
    result = call("translate", small_run, "I like soccer", "--ensemble", small_run, "--engine", "ctranslate2")
    assert result.code == 2
    assert "--engine ctranslate2 and --ensemble do not go together" in result.err
    with pytest.raises(UserError, match="neither a run folder"):
        Translator.load(small_run, others=[tmp_path])


def same_vocabulary(run, other):
    return Translator.load(run).tokenizer.fingerprint == Translator.load(other).tokenizer.fingerprint


def test_a_job_with_other_runs_does_not_resume(small_run, sister):
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.jobs.job import TranslationJob

    jobs = [
        TranslationJob(small_run, DecodingOptions(), others=others)
        for others in ((), (small_run,), (sister("model.dropout=0.3"),))
    ]
    assert len({json.dumps(job.identity("cpu")) for job in jobs}) == 3
