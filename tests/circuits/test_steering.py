"""Changed features, against handlers of points and the equation."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from translucid import Translator, UserError
from translucid.attention.points import recording
from translucid.circuits.steering import Change, Steering, steering
from translucid.decoding.maps import forced_features
from translucid.inspection.ablation import Ablation

HEAD = "decoder.0.cross.head.1"
TEXT = "I like soccer."


@pytest.fixture
def translator(run):
    return Translator.load(run, "cpu", "torch")


def active_feature(translator, dictionary, sublayer="decoder.0"):
    """Return the name of the feature that writes most over a pair."""
    ids = next(iter(translator.pipeline.pairs([(TEXT, "Me gusta")]))).ids
    with recording(translator.model, [f"{sublayer}.feed_forward_input"]) as record:
        forced_features(translator.model, translator.model.encode(torch.tensor([ids[0]])), torch.tensor([ids[1]]))
    values = dictionary.transcoders[sublayer].features(record[f"{sublayer}.feed_forward_input"])
    return f"{sublayer}.feature.{int(values.sum((0, 1)).argmax())}"


@pytest.mark.parametrize("text", ["0", "2.5", "3x"])
def test_the_output_of_the_sublayer_is_that_of_the_equation(translator, dictionary, text):
    name = active_feature(translator, dictionary)
    number = int(name.rpartition(".")[2])
    steered = steering(translator.loaded.folder.path, [f"{name}={text}"]).applied(translator.model)
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[8, 9, 3]])
    points = ["decoder.0.feed_forward_input", "decoder.0.feed_forward"]
    with recording(translator.model, points) as before:
        forced_features(translator.model, translator.model.encode(source), target)
    with recording(steered, points) as after:
        forced_features(steered, steered.encode(source), target)
    transcoder, x = dictionary.transcoders["decoder.0"], before[points[0]]
    assert torch.equal(after[points[0]], x)
    f = transcoder.features(x)[..., number]
    changed = {"0": 0 * f, "2.5": 0 * f + 2.5, "3x": 3 * f}[text]
    expected = before[points[1]] + (changed - f)[..., None] * transcoder.decoder_weight[number]
    assert f.any()
    assert_close(after[points[1]], expected, rtol=1e-5, atol=1e-5)


def test_a_steered_translator_translates_in_another_way_and_the_original_does_not_change(translator, dictionary):
    before = translator.translate(TEXT)
    changes = [f"{active_feature(translator, dictionary)}=0"]
    steered = translator.with_interventions(steering(translator.loaded.folder.path, changes))
    after = steered.translate(TEXT)
    assert after.score != pytest.approx(before.score, abs=1e-4)
    assert translator.translate(TEXT) == before == steered.with_interventions().translate(TEXT)
    same = translator.with_interventions(steering(translator.loaded.folder.path, [changes[0].replace("=0", "=1x")]))
    assert same.translate(TEXT).score == pytest.approx(before.score, abs=1e-5)
    with ThreadPoolExecutor(2) as pool:
        assert [translation.score for translation in pool.map(steered.translate, [TEXT] * 4)] == [after.score] * 4


def test_a_model_in_half_precision_leaves_the_dictionary_as_it_is(translator, dictionary):
    change = Steering(dictionary, {active_feature(translator, dictionary): Change(value=0)})
    steered = change.applied(deepcopy(translator.model).bfloat16())
    assert steered.get_submodule("decoder.0.feed_forward").transcoder.decoder_weight.dtype == torch.bfloat16
    assert dictionary.transcoders["decoder.0"].decoder_weight.dtype == torch.float32


def test_heads_and_features_change_together(translator, dictionary):
    change = Steering(dictionary, {active_feature(translator, dictionary): Change(value=0)})
    both = translator.with_interventions(change).ablated(HEAD)
    assert both.loaded.interventions == (change, Ablation((HEAD,)))
    assert both.ablated().loaded.interventions == (change,)
    other_order = translator.with_interventions(Ablation((HEAD,)), change)
    score = both.translate(TEXT).score
    assert score == other_order.translate(TEXT).score
    assert score not in (translator.ablated(HEAD).translate(TEXT).score, both.ablated().translate(TEXT).score)
    assert not both.loaded.as_trained


def test_the_identity_of_a_steering_is_that_of_its_changes_and_its_dictionary(run, dictionary):
    first, second = "decoder.0.feature.3=0", "encoder.0.feature.7=2x"
    assert steering(run, [first, second]).identity == steering(run, [second, first]).identity
    assert steering(run, [first]).identity != steering(run, [first.replace("=0", "=2")]).identity
    identity = steering(run, [first]).identity
    dictionary.transcoders["encoder.0"].encoder_bias += 1
    dictionary.save(run)
    assert steering(run, [first]).identity != identity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("decoder.0.feature.3", "does not say how"),
        ("decoder.0.feature.3=", "is no change"),
        ("decoder.0.feature.3=x", "is no change"),
        ("decoder.0.feature.3=-1", "is no change"),
        ("decoder.0.feature.3=1e9", "is no change"),
        ("decoder.0.feature.3=9999999", "is no change"),
        ("decoder.0.feature.99=0", "Choose a number from 0 to 63"),
        ("decoder.7.feature.9=0", "Did you mean 'decoder.0.feature.9'"),
    ],
)
def test_invalid_changes(run, change, message):
    with pytest.raises(UserError, match=message):
        steering(run, [change])


def test_a_feature_that_is_changed_twice(run):
    with pytest.raises(UserError, match="changed twice"):
        steering(run, ["decoder.0.feature.3=0", "decoder.0.feature.03=2x"])


def test_fast_engines_and_ensembles_are_rejected(run, dictionary):
    change = Steering(dictionary, {"decoder.0.feature.3": Change(value=0)})
    with pytest.raises(UserError, match=r"`interventions` and `engine=\"ctranslate2\"` do not go together"):
        Translator.load(run, "cpu", "ctranslate2").with_interventions(change)
    with pytest.raises(UserError, match="`interventions` and `others` do not go together"):
        Translator.load(run, "cpu", others=[run]).with_interventions(change)
