"""Dictionaries on disk, and the names of features."""

import json

import pytest
import torch
from torch.testing import assert_close

from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.attention.points import recording
from translucid.circuits.dictionary import Dictionary, FeatureName, sublayers_of
from translucid.decoding.maps import forced_features
from translucid.models.ensemble import Ensemble
from translucid.runs.run_folder import RunFolder


def test_a_dictionary_is_read_as_it_was_written(run, dictionary):
    assert dictionary.sublayers == ["encoder.0", "decoder.0"] and dictionary.width == 64
    changed = dictionary.with_quality({"bleu": 97.5})
    changed.save(run)
    loaded = Dictionary.load(RunFolder(run))
    assert loaded.quality == {"bleu": 97.5} and loaded.configuration == dictionary.configuration
    assert loaded.digest == dictionary.digest
    for name, transcoder in dictionary.transcoders.items():
        for ours, theirs in zip(transcoder.parameters(), loaded.transcoders[name].parameters(), strict=True):
            assert torch.equal(ours, theirs)
    loaded.transcoders["decoder.0"].encoder_bias[3] += 1
    loaded.__dict__.pop("digest")
    assert loaded.digest != dictionary.digest


def test_the_points_of_a_sublayer_are_its_input_and_output(run, dictionary):
    model = Translator.load(run, "cpu", "torch").model
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[8, 9, 3]])
    points = [f"{name}.{point}" for name in dictionary.sublayers for point in ("feed_forward_input", "feed_forward")]
    with recording(model, points) as record:
        forced_features(model, model.encode(source), target)
    for name, sublayer in sublayers_of(model).items():
        x, output = record[f"{name}.feed_forward_input"], record[f"{name}.feed_forward"]
        assert_close(sublayer(x), output)
        assert x.shape == (1, 4 if name == "encoder.0" else 3, 16)


def test_names_of_features(dictionary):
    assert dictionary.parse_feature("decoder.0.feature.63") == FeatureName("decoder.0", 63)
    assert str(FeatureName("decoder.0", 63)) == "decoder.0.feature.63"
    with pytest.raises(UserError, match="Choose a number from 0 to 63"):
        dictionary.parse_feature("decoder.0.feature.64")
    with pytest.raises(UserError, match=r"no feature 'decoder.1.feature.5'. Did you mean 'decoder.0.feature.5'"):
        dictionary.parse_feature("decoder.1.feature.5")
    for name in ("", "decoder.0", "decoder.0.feature.-1", "decoder.0.feature.٣", "x" * 1000):
        with pytest.raises(UserError, match="there is no feature"):
            dictionary.parse_feature(name)


def test_a_missing_dictionary_and_one_of_other_weights(run, untrained):  # noqa: F811
    with pytest.raises(UserError, match="has no dictionary of features"):
        Dictionary.load(untrained("transformer"))
    folder = RunFolder(run)
    translator = Translator.load(run, "cpu", "torch")
    translator.model.output.bias.data += 1
    folder.save_model(translator.model, translator.tokenizer, {})
    with pytest.raises(UserError, match="learned from other weights"):
        Dictionary.load(run)


@pytest.mark.parametrize("damage", ["cut", "foreign", "configuration"])
def test_a_damaged_dictionary(run, damage):
    file = run / "circuits" / "dictionary.safetensors"
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-10])
    elif damage == "foreign":
        file.write_bytes(json.dumps({}).encode())
    else:
        dictionary = Dictionary.load(run)
        from translucid.runs.tensor_file import save_tensors

        save_tensors(file, dict(dictionary.transcoders["encoder.0"].named_parameters()), {"sublayers": ["encoder.0"]})
    with pytest.raises(UserError, match="damaged"):
        Dictionary.load(run)


def test_models_without_feed_forward_sublayers_and_ensembles(untrained):  # noqa: F811
    recurrent = Translator.load(untrained("bahdanau"), "cpu", "torch").model
    with pytest.raises(UserError, match="no feed-forward sublayers"):
        sublayers_of(recurrent)
    model = Translator.load(untrained("transformer"), "cpu", "torch").model
    with pytest.raises(UserError, match="Load a single run"):
        sublayers_of(Ensemble([model, model]))
