"""Files that tuning writes into a run folder: they load unchanged, but only for their model and languages."""

import json
import shutil

import pytest
import torch

from tests.engines.test_engines import run_at
from translucid.decoding.maps import AlignmentLayer
from translucid.engines.noisy_channel import WEIGHTS as WEIGHTS_OF_RANKING
from translucid.engines.noisy_channel import ChannelWeights
from translucid.engines.run_files import (
    confidence_note,
    load_alignment_layer,
    load_channel_weights,
    load_confidence,
    load_validation_scores,
    save_alignment_layer,
    save_channel_weights,
    save_confidence,
    save_validation_scores,
)
from translucid.engines.tuned import Tuned, listed_sources, load_tuned, save_tuned
from translucid.evaluation.confidence import KINDS, Estimator, Weight
from translucid.evaluation.out_of_domain import SentenceMeasures, ValidationScores, WordSet
from translucid.ground.errors import UserError

ENGLISH, FRENCH = ("en", "es"), ("fr", "es")
SCORES = ValidationScores.of(
    [SentenceMeasures(-1.0, 0.5, 0.0, []), SentenceMeasures(-2.0, 1.5, 1.0, ["x"])], WordSet.of(["a house", "a tree"])
)
KIND = next(iter(KINDS))
WEIGHTS = {feature: Weight(mean=0.5, deviation=2, weight=0.1 * i) for i, feature in enumerate(KINDS[KIND])}
ESTIMATOR = Estimator(threshold=50, pairs=9, bad=3, kind=KIND, weights=WEIGHTS, offset=0.25, slope=1.5, shift=-0.5)
NAMES = (
    *("confidence.json", "validation-scores.json", "ranking.json"),
    *("alignment.safetensors", "tuned.json", "shortlist.tsv"),
)


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    return run_at(tmp_path_factory.mktemp("files") / "run")


@pytest.fixture
def run(plain_run):
    yield plain_run
    for name in NAMES:
        (plain_run.path / name).unlink(missing_ok=True)
    shutil.rmtree(plain_run.path / "directions", ignore_errors=True)


def as_earlier(run, name):
    """Move a file for English to its location in earlier versions; return the new path."""
    return (run.path / "directions" / "en-es" / name).rename(run.path / name)


@pytest.fixture(scope="module")
def tokenizer(plain_run):
    return plain_run.tokenizer()


class Retrained:
    """A run whose model has changed."""

    def __init__(self, run):
        self.path, self.tokenizer = run.path, run.tokenizer

    def model_digest(self):
        return "other"


class OtherTokenizer:
    fingerprint = "other"


def test_an_estimator_is_for_its_model_its_tokenizer_and_its_languages(run, tokenizer):
    assert load_confidence(run, tokenizer, ENGLISH) == (None, "") and confidence_note(run, ENGLISH) == ""
    save_confidence(run, tokenizer, None, ESTIMATOR)
    assert load_confidence(run, tokenizer, FRENCH) == (ESTIMATOR, "")
    save_confidence(run, tokenizer, ENGLISH, ESTIMATOR)
    file = as_earlier(run, "confidence.json")
    assert file.read_text().endswith("}\n") and json.loads(file.read_text())["languages"] == ["en", "es"]
    assert load_confidence(run, tokenizer, ENGLISH) == (ESTIMATOR, "") and confidence_note(run, ENGLISH) == ""
    advice = "and is ignored; run `fit_confidence` again"
    languages_message = f"{file} was fitted to translations from en to es {advice}"
    assert load_confidence(run, tokenizer, FRENCH) == (None, languages_message)
    assert confidence_note(run, FRENCH) == languages_message
    model_message = f"{file} was fitted to another model {advice}"
    assert load_confidence(Retrained(run), tokenizer, ENGLISH) == (None, model_message)
    assert load_confidence(run, OtherTokenizer(), ENGLISH) == (None, model_message)


def test_each_direction_has_its_files(run, tokenizer):
    french_estimator = ESTIMATOR.model_copy(update={"threshold": 30.0})
    save_confidence(run, tokenizer, ENGLISH, ESTIMATOR)
    save_confidence(run, tokenizer, FRENCH, french_estimator)
    assert load_confidence(run, tokenizer, ENGLISH) == (ESTIMATOR, "")
    assert load_confidence(run, tokenizer, FRENCH) == (french_estimator, "")
    assert load_confidence(run, tokenizer, (None, "es")) == (None, "")
    run.save_model(run.load_sequence_model(run.configuration(), tokenizer), tokenizer, {})
    assert load_confidence(run, tokenizer, ENGLISH) == load_confidence(run, tokenizer, FRENCH) == (None, "")


def test_weights_of_a_ranking_are_for_their_models_and_their_languages(run, tokenizer):
    other = Retrained(run)
    assert load_channel_weights(run, ENGLISH, run) == WEIGHTS_OF_RANKING
    save_channel_weights(run, tokenizer, ENGLISH, run, ChannelWeights(0.5, 1))
    save_channel_weights(run, tokenizer, ENGLISH, other, ChannelWeights(2, -1))
    assert load_channel_weights(run, ENGLISH, run) == (0.5, 1) and load_channel_weights(run, ENGLISH, other) == (2, -1)
    assert load_channel_weights(run, FRENCH, run) == load_channel_weights(other, ENGLISH, run) == WEIGHTS_OF_RANKING
    with pytest.raises(UserError, match="reverse"):
        save_channel_weights(run, tokenizer, ENGLISH, run, ChannelWeights(float("nan"), 1))


def test_validation_scores_are_for_their_model_their_tokenizer_and_their_languages(run, tokenizer):
    assert load_validation_scores(run, tokenizer, ENGLISH) is None
    save_validation_scores(run, tokenizer, None, SCORES)
    assert load_validation_scores(run, tokenizer, FRENCH) == SCORES
    save_validation_scores(run, tokenizer, ENGLISH, SCORES)
    assert as_earlier(run, "validation-scores.json").read_text().endswith("}\n")
    assert load_validation_scores(run, tokenizer, ENGLISH) == SCORES
    assert load_validation_scores(run, tokenizer, FRENCH) is None
    assert load_validation_scores(Retrained(run), tokenizer, ENGLISH) is None
    assert load_validation_scores(run, OtherTokenizer(), ENGLISH) is None


@pytest.mark.parametrize(
    ("name", "load", "fix"),
    [
        ("confidence.json", lambda run, t: load_confidence(run, t, ENGLISH), "`fit_confidence`"),
        ("validation-scores.json", lambda run, t: load_validation_scores(run, t, ENGLISH), "translucid tune speed"),
        ("ranking.json", lambda run, t: load_channel_weights(run, ENGLISH, run), "`fit_ranking`"),
        ("tuned.json", lambda run, t: load_tuned(run.path), "translucid tune speed"),
    ],
)
def test_a_damaged_file_is_reported_with_the_command_that_writes_it(run, tokenizer, name, load, fix):
    save_confidence(run, tokenizer, None, ESTIMATOR)
    save_validation_scores(run, tokenizer, None, SCORES)
    save_channel_weights(run, tokenizer, None, run, ChannelWeights(0.5, 1))
    save_tuned(run.path, Tuned(), None)
    file = run.path / name
    record = json.loads(file.read_text())
    message = f"^{file}: can't be read. Delete it, or run {fix} again.$"
    for content in ("", "{", json.dumps(record | {"unknown": 1})):
        file.write_text(content)
        with pytest.raises(UserError, match=message):
            load(run, tokenizer)
    if name == "confidence.json":  # removes the weight of a feature
        record["estimator"]["weights"].popitem()
    elif name == "validation-scores.json":  # its length is no multiple of four bytes
        record["scores"]["words"] = "AAA="
    elif name == "ranking.json":
        next(iter(record["weights"].values()))["reverse"] = -1
    else:
        record["quantization"] = "int4"
    file.write_text(json.dumps(record))
    with pytest.raises(UserError, match=message):
        load(run, tokenizer)
    file.unlink()
    file.mkdir()
    with pytest.raises(UserError, match=message):
        load(run, tokenizer)
    file.rmdir()


@pytest.mark.parametrize(
    ("name", "limit", "load"),
    [
        ("confidence.json", 1 << 16, lambda run, t: load_confidence(run, t, ENGLISH)),
        ("validation-scores.json", 1 << 24, lambda run, t: load_validation_scores(run, t, ENGLISH)),
        ("ranking.json", 1 << 16, lambda run, t: load_channel_weights(run, ENGLISH, run)),
        ("tuned.json", 1 << 16, lambda run, t: load_tuned(run.path)),
    ],
)
def test_a_file_may_have_so_many_bytes_and_none_more(run, tokenizer, name, limit, load):
    save_confidence(run, tokenizer, None, ESTIMATOR)
    save_validation_scores(run, tokenizer, None, SCORES)
    save_channel_weights(run, tokenizer, None, run, ChannelWeights(0.5, 1))
    save_tuned(run.path, Tuned(), None)
    file = run.path / name
    file.write_text(file.read_text().ljust(limit))
    assert load(run, tokenizer)
    file.write_text(file.read_text() + " ")
    with pytest.raises(UserError, match=f"has more than {limit:,} bytes"):
        load(run, tokenizer)


def test_an_alignment_layer_is_for_its_model_and_its_languages(run, tokenizer):
    model = run.load_sequence_model(run.configuration(), tokenizer)
    assert load_alignment_layer(run, ENGLISH, model) is None
    torch.manual_seed(1)
    layer = AlignmentLayer(16, 16)
    save_alignment_layer(run, layer, None)
    loaded = load_alignment_layer(run, FRENCH, model)
    assert not loaded.training and not any(parameter.requires_grad for parameter in loaded.parameters())
    for name, tensor in layer.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    save_alignment_layer(run, layer, ENGLISH)
    as_earlier(run, "alignment.safetensors")
    assert load_alignment_layer(run, ENGLISH, model) and load_alignment_layer(run, FRENCH, model) is None
    fix = "Delete it, or run `fit_alignment` again."
    with pytest.raises(UserError, match=f"alignment.safetensors: belongs to another model. {fix}"):
        load_alignment_layer(Retrained(run), ENGLISH, model)
    for damaged in (AlignmentLayer(8, 16), AlignmentLayer(16, 8), torch.nn.Linear(2, 2)):
        save_alignment_layer(run, damaged, None)
        with pytest.raises(UserError, match=f"alignment.safetensors: does not fit the model. {fix}"):
            load_alignment_layer(run, ENGLISH, model)


def test_the_fastest_way_is_saved_with_its_shortlist_or_without_one(run):
    tuned = Tuned(engine="torch", considered="seen pieces", languages=ENGLISH, difference=0.5)
    save_tuned(run.path, tuned, "\t.\n")
    assert load_tuned(run.path) == tuned and tuned.shortlist(run.path).read_text() == "\t.\n"
    assert (run.path / "tuned.json").read_text().endswith("}\n")
    save_tuned(run.path, Tuned(), None)
    assert load_tuned(run.path) == Tuned() and not (run.path / "shortlist.tsv").exists()
    assert Tuned().shortlist(run.path) is None and str(tuned) == "torch, float32, seen pieces"


def test_sources_of_a_shortlist_are_those_with_another_piece_than_themselves(tmp_path, tokenizer):
    first, second, third, *_ = tokenizer.source_pieces(range(10, tokenizer.source_size))
    file = tmp_path / "shortlist.tsv"
    file.write_text(f"\t.\n{first}\t{first}\n{second}\t{second} {third}\n{third}\t{first}\nstrange\t.\n")
    assert listed_sources(file, tokenizer) == {11, 12}
    file.write_text(f"\t.\n{first}\t{first}\n")
    assert listed_sources(file, tokenizer) == set(range(tokenizer.source_size))
