"""Validation data: pairs that are too long, and data that has changed since the run began."""

import io
import os
import shutil
import signal

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.trainer import Trainer
from translucid.training.validation import TextValidator

LONG = Pair("dog " * 300, "perro " * 300)
SHORT = "training.max_steps=7"


@pytest.fixture(scope="module")
def partial_run(train, tmp_path_factory):
    """Train for 7 updates; tests copy the run."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    train(folder, SHORT)
    return folder


def test_validation_translates_with_the_length_limits_of_the_run(train, tmp_path, monkeypatch):
    lengths = []

    def recording_greedy(self, model, *rest):
        hypotheses = greedy(self, model, *rest)
        lengths.extend(map(len, hypotheses))
        return hypotheses

    greedy = TextValidator.greedy
    monkeypatch.setattr(TextValidator, "greedy", recording_greedy)
    train(tmp_path / "run", SHORT, "decoding.max_length_ratio=0", "decoding.max_length_extra=3")
    assert max(lengths) == 3


def validated_with(corpora, *pairs):
    return Corpora(corpora.train, pairs, corpora.digest)


def test_pairs_that_are_too_long_for_the_loss_are_counted(train, corpora, tmp_path):
    output = io.StringIO()
    train(tmp_path / "run", SHORT, data=validated_with(corpora, *corpora.valid, LONG), output=output)
    assert "the held-out part: 1 of 5 validation pairs have more than 256 tokens" in output.getvalue()


def test_a_training_is_refused_if_all_validation_pairs_are_too_long(train, corpora, tmp_path):
    with pytest.raises(UserError, match="all 1 validation pairs have more than 256 tokens"):
        train(tmp_path / "run", SHORT, data=validated_with(corpora, LONG))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", ["pairs", "lengths"])
def test_scores_on_other_pairs_are_not_compared(train, partial_run, corpora, tmp_path, change):
    run = RunFolder(shutil.copytree(partial_run, tmp_path / "run"))
    tensors, facts = run.load_state()
    facts["place"] |= {"best_score": 99.0, "stale": 9}
    run.save_state(tensors, facts)
    other_pairs = [Pair(p.source, p.target) for p in generate(20, split="test", max_words=8)]
    data, settings = validated_with(corpora, *other_pairs), []
    if change == "lengths":
        data, settings = corpora, ["decoding.max_length_extra=2"]
    output = io.StringIO()
    train(run.path, "training.max_steps=14", *settings, data=data, resume=True, output=output)
    assert "the validation data has changed: scores are not compared with earlier ones" in output.getvalue()
    place = run.load_state()[1]["place"]
    assert place["best_step"] == 14 and place["best_score"] < 99
    assert load_tensors(run.model_file)[1]["step"] == 14


def test_scores_on_the_same_pairs_are_compared(train, partial_run, corpora, tmp_path):
    run = RunFolder(shutil.copytree(partial_run, tmp_path / "run"))
    tensors, facts = run.load_state()
    facts["place"] |= {"best_score": 99.0}
    run.save_state(tensors, facts)
    output = io.StringIO()
    train(run.path, "training.max_steps=14", resume=True, output=output)
    assert "has changed" not in output.getvalue()
    assert run.load_state()[1]["place"]["best_score"] == 99


def test_the_best_weights_stay_until_others_are_measured(train, partial_run, corpora, tmp_path, monkeypatch):
    run = RunFolder(shutil.copytree(partial_run, tmp_path / "run"))
    best = load_tensors(run.model_file)[1]["step"]
    update = Trainer._update

    def interrupted(self, *arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return update(self, *arguments)

    monkeypatch.setattr(Trainer, "_update", interrupted)
    with pytest.raises(Interrupted) as error:
        train(run.path, "training.max_steps=14", data=validated_with(corpora, *corpora.valid[:2]), resume=True)
    assert error.value.exit_code == 143
    assert run.load_state()[1]["place"]["step"] == 8 and load_tensors(run.model_file)[1]["step"] == best
