"""Dictionaries of imported models, and models that have none."""

import pytest
import torch

from tests.probes.foreign import SHORT, many_languages_folder, marian_folder
from translucid import Translator, UserError
from translucid.circuits.dictionary import Dictionary, sublayers_of
from translucid.circuits.features import features_of
from translucid.circuits.steering import Change, Steering
from translucid.circuits.training import FeatureOptions, learn_features
from translucid.ground.console import Console
from translucid.interop.importing import import_model
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions

TEXT = "I like soccer."
PAIRS = [(TEXT, "Me gusta el fútbol."), ("She reads a book.", "Ella lee un libro.")]


@pytest.mark.parametrize("write", [marian_folder, many_languages_folder])
def test_an_imported_model_has_features_that_can_be_changed(tmp_path, write):
    write(tmp_path / "published", end=1.0)
    import_model(tmp_path / "published", tmp_path / "run")
    languages = {"source": "en", "target": "es"} if write is many_languages_folder else {}
    translator = Translator.load(tmp_path / "run", "cpu", "torch", **languages)
    options = FeatureOptions(expansion=4, active=4, updates=3, batch_tokens=60)
    learn_features(translator, PAIRS, options, console=Console(stderr=True))
    dictionary = Dictionary.load(tmp_path / "run")
    assert dictionary.sublayers == [*sublayers_of(translator.model)]
    shown = features_of(translator, TEXT, PAIRS[0][1])
    name, value = next(token for token in shown.tokens if token.side == "target").strongest["decoder.0"][0]
    steered = translator.with_interventions(Steering(dictionary, {str(name): Change(factor=3)}))
    assert value > 0
    assert steered.translate(TEXT, **SHORT).score != translator.translate(TEXT, **SHORT).score


def test_attention_only_models_have_no_sublayers():
    torch.manual_seed(1)
    model = AttentionOnly(30, 30, AttentionOnlyOptions(width=16, encoder_layers=1, decoder_layers=1))
    with pytest.raises(UserError, match="no feed-forward sublayers"):
        sublayers_of(model)
