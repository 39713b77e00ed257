"""Selection at the end of a training: the better weights on all validation sentences are kept."""

import io

import pytest
import torch

from bitext.pair import Pair
from tests.training.test_trainer import weights
from translucid.corpora.phrasebook import generate
from translucid.decoding.decoding_options import DecodingOptions
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.validation import DirectionsValidator, GuardedValidator, TextValidator, Validation

PAIRS = [Pair(p.source, p.target) for p in generate(9, split="test", max_words=8)]
TWICE = ["training.max_steps=14", "training.averaging=0.5"]
"""Two validations of 4 sentences, after 7 and 14 updates."""


@pytest.fixture
def scored(monkeypatch, corpora):
    """Give validations these scores in turn: scored([30, 20], [10, 40]); the data has 9 validation pairs."""
    measure = TextValidator.measure

    def scoring(subset_scores: list[float], all_scores: list[float]) -> Corpora:
        scores = {4: iter(subset_scores), len(PAIRS): iter(all_scores)}

        def measured(self, *arguments):
            score = next(scores[len(self.sources)])
            return measure(self, *arguments)._replace(score=score, measures={"bleu": score})

        monkeypatch.setattr(TextValidator, "measure", measured)
        return Corpora(corpora.train, PAIRS, corpora.digest)

    return scoring


@pytest.mark.parametrize(("all_scores", "setting"), [([10, 40], "quantized_weights=true"), ([10, 10], "patience=9")])
def test_the_last_weights_are_kept_if_they_are_better_on_all_sentences(train, scored, tmp_path, all_scores, setting):
    """If the scores are equal, those with the lower loss are better."""
    data, output = scored([30, 20], all_scores), io.StringIO()
    end = train(tmp_path / "run", *TWICE, f"training.{setting}", data=data, output=output)
    # A resumed training is compared with the score of a validation, not with that on all sentences.
    assert (end.best_step, end.best_score, end.kept, end.stale) == (14, 20, {"bleu": 20}, 1)
    best, facts = load_tensors(tmp_path / "run" / "model.safetensors")
    assert (facts["step"], facts["bleu"]) == (14, 20)
    average = weights(tmp_path / "run", "averaged.")
    assert all(torch.equal(best[name], average[name]) for name in average)
    line = f"on 9 validation sentences, step 7: BLEU 10.0, step 14: BLEU {all_scores[1]:.1f}; kept step 14"
    assert line in output.getvalue()
    row = RunFolder(tmp_path / "run").metrics()[-1]
    assert (row["kind"], row["step"], row["kept_step"], row["best_step"]) == ("selection", 14, 14, 7)
    assert (row["sentences"], row["best_score"], row["last_score"]) == (9, 10, all_scores[1])
    assert row["last_loss"] < row["best_loss"]


def test_the_best_weights_stay_if_they_are_better_on_all_sentences(train, scored, tmp_path):
    """A resumed training compares again at its end."""
    data = scored([30, 20, 25], [41, 40, 41, 42])
    folder = tmp_path / "run"
    assert train(folder, *TWICE, data=data).best_step == 7
    assert load_tensors(folder / "model.safetensors")[1]["step"] == 7
    end = train(folder, *TWICE, "training.max_steps=21", data=data, resume=True)
    assert (end.best_step, end.best_score) == (21, 25)
    rows = [row for row in RunFolder(folder).metrics() if row["kind"] == "selection"]
    assert [(row["step"], row["kept_step"]) for row in rows] == [(14, 7), (21, 21)]


def test_nothing_is_compared_if_the_last_validation_is_the_best(train, scored, tmp_path):
    """Scoring all sentences would exhaust the prepared scores."""
    assert train(tmp_path / "run", *TWICE, data=scored([20, 30], [])).best_step == 14


def validator(tokenizer, sentences, pairs=PAIRS):
    limits = {"max_tokens": 64, "batch_tokens": 500, "sentences": sentences}
    return TextValidator(pairs, tokenizer, decoding=DecodingOptions(), **limits)


def test_more_sources_are_measured_as_if_they_had_been_chosen_at_first(small_run):
    run = RunFolder(small_run)
    tokenizer = run.tokenizer()
    model = run.load_model(run.configuration(), tokenizer)
    few = validator(tokenizer, 3)
    extended = few.with_more_sources(100)
    assert extended.measure(model, torch.device("cpu")) == validator(tokenizer, 100).measure(model, torch.device("cpu"))
    assert few.measure(model, torch.device("cpu")).samples != extended.measure(model, torch.device("cpu")).samples
    assert len(few.with_more_sources(5).sources) == 5
    assert extended.with_more_sources(100) is None and few.with_more_sources(3) is None


def test_directions_share_the_number_of_sources(small_run):
    tokenizer = RunFolder(small_run).tokenizer()
    validators = {("en", "es"): validator(tokenizer, 2), ("es", "en"): validator(tokenizer, 6, PAIRS[:6])}
    extended = DirectionsValidator(validators, "mean").with_more_sources(14)
    assert [len(direction.sources) for direction in extended.validators.values()] == [7, 6]
    assert extended.with_more_sources(14) is None


def test_weights_beyond_the_regression_guard_are_never_kept(small_run, monkeypatch):
    tokenizer = RunFolder(small_run).tokenizer()
    guarded = GuardedValidator(validator(tokenizer, 3), {("en", "es"): validator(tokenizer, 4)}, max_regression=1)
    guarded.initial_measures = {"general_bleu": 50.0}
    extended = guarded.with_more_sources(100)
    scores = {9: 90.0, 4: 48.5}
    monkeypatch.setattr(
        TextValidator, "measure", lambda self, *arguments: Validation(1, 1, 1, {}, scores[len(self.sources)], [])
    )
    assert extended.measure(None, None).score == -0.5
    assert not extended.is_better(extended.measure(None, None), score=3.0, loss=1.0)
    scores[4] = 49.5
    assert extended.measure(None, None).score == 90


def test_sentences_are_spread_over_a_sorted_file(small_run):
    tokenizer = RunFolder(small_run).tokenizer()
    pairs = [Pair(f"source {number}", f"target {number}") for number in range(10)]
    assert validator(tokenizer, 4, pairs).sources == ["source 0", "source 2", "source 5", "source 7"]
    assert len(validator(tokenizer, 40, pairs).sources) == 10
