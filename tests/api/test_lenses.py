"""Logit lens and decoder lens of a translator's own and of given translations, and their record for pages."""

import pytest

from translucid import Translator
from translucid.ground.errors import UserError

TEXT = "I like soccer"


@pytest.fixture(scope="module")
def translator(small_run):
    return Translator.load(small_run)


def test_the_last_layer_has_the_probabilities_of_the_translation(translator):
    translation = translator.translate(TEXT)
    (lens,) = translator.inspector.lens(TEXT)
    *words, end = lens.words
    for word, (text, probability) in zip(words, translation.word_probabilities, strict=True):
        assert word.word == text
        assert word.probabilities[-1] == pytest.approx(probability, abs=1e-5)
    assert end.word == "</s>"


def test_a_given_translation_is_forced(translator, monkeypatch):
    (lens,) = translator.inspector.lens(TEXT, "Me gusta el fútbol")
    (inspected,) = translator.inspector.inspect([(TEXT, "Me gusta el fútbol")])
    assert lens.target == inspected.target
    assert lens.log_probs[-1].tolist() == pytest.approx(inspected.log_probs, abs=1e-5)
    with pytest.raises(UserError, match=r"no tuned lens. Train one with `fit_lens`"):
        translator.inspector.lens(TEXT, tuned=True)
    monkeypatch.setattr(translator.model, "max_length", 3)
    with pytest.raises(UserError, match="the model takes 3"):
        translator.inspector.lens(TEXT, "Me gusta el fútbol")


def test_each_sentence_has_its_own_lens(translator):
    assert len(translator.inspector.lens("I like soccer. I like tea.")) == 2
    assert translator.inspector.lens("12") == []


def test_the_last_translation_of_the_decoder_lens_is_the_ordinary_one(translator):
    torch_only = Translator.load(translator.run, engine="torch")
    lens = translator.inspector.decoder_lens("I like soccer. I like tea.", beam=2)
    assert lens.layers == ["input", "0"]
    assert lens.translations[-1] == torch_only.translate("I like soccer. I like tea.", beam=2).text
    assert lens.translations[0] != lens.translations[1]


def test_the_record_for_pages(translator):
    record = translator.inspector.layers_details(TEXT, "Me gusta el fútbol")
    assert [word["word"] for word in record["words"]] == ["Me", "gusta", "el", "fútbol", "</s>"]
    assert all(len(word["layers"]) == 2 for word in record["words"])
    assert record["encoder"] == translator.inspector.decoder_lens(TEXT).to_json()
