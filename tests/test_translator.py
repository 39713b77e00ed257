"""The front door: one text, many texts, long texts, none."""

import time

import pytest
import torch

from translucid import Translator
from translucid.data.corpus import Pair
from translucid.data.phrasebook import generate
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.engine import TorchEngine
from translucid.decoding.options import DecodingOptions
from translucid.models.transformer import Transformer
from translucid.training.configuration import resolve


@pytest.fixture(scope="module")
def translator():
    """An untrained model: what it says is nonsense, but always the same nonsense."""
    torch.manual_seed(1)
    shape = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 2}
    overrides = {"model": shape, "data.max_tokens": 20, "decoding.max_length_ratio": 1, "decoding.max_length_extra": 5}
    configuration = resolve(overrides={**overrides, "data.tokenizer.vocabulary": 200})
    pairs = [Pair(p.source, p.target) for p in generate(300, max_words=8)]
    tokenizer = Tokenizer.learn(pairs, configuration.data.tokenizer, seed=1)
    model = Transformer(tokenizer.source_size, tokenizer.target_size, configuration.model).eval()
    return Translator(tokenizer, configuration, lambda: TorchEngine.of(model, tokenizer, torch.device("cpu")))


TEXTS = ["I like soccer.", "", "She works at the hospital", "Do you like sports?", "  ", "I like soccer."]


def test_one_and_many(translator):
    many = translator.translate(TEXTS)
    assert [found.source for found in many] == TEXTS
    assert many[1].text == many[4].text == ""
    assert many[0].text == many[5].text == translator.translate(TEXTS[0]).text != ""
    assert translator.translate([]) == []


def test_a_translation_does_not_depend_on_its_company(translator):
    texts = [p.source for p in generate(60, split="test", max_words=12)]
    together = {found.source: found for found in translator.translate(texts)}
    alone = [translator.translate(text) for text in texts]
    backwards = translator.translate(texts[::-1])[::-1]
    for found, other in zip(alone, backwards, strict=True):
        assert found.text == other.text == together[found.source].text
        assert found.score == pytest.approx(together[found.source].score, abs=1e-4)


def test_streams_are_read_window_by_window(translator, monkeypatch):
    monkeypatch.setattr("translucid.translator.WINDOW", 4)
    taken = []

    def lines():
        for i in range(10):
            taken.append(i)
            yield f"I like soccer {i}"

    stream = translator.stream(lines(), DecodingOptions(beam=1))
    next(stream)
    assert len(taken) == 4
    assert len(list(stream)) == 9


def test_long_texts_are_translated_in_pieces_that_cover_them(translator):
    text = "She likes soccer. " * 9 + "Werewolves" * 30
    found = translator.translate(text)
    assert "in pieces" in found.warnings[0]
    ids = [token for piece, _ in found.parts for token in piece.ids if token != 3]
    assert translator.tokenizer.decode(ids).split() == text.split()
    assert all(len(piece.ids) <= 20 for piece, _ in found.parts)


def test_cutting_a_text_takes_time_in_proportion_to_it(translator):
    ids = [5, 6, 7, 8] * 100_000
    started = time.process_time()
    chunks = translator._chunks(ids)
    assert time.process_time() - started < 5
    assert [token for chunk in chunks for token in chunk] == ids


def test_sentences_are_translated_one_by_one_when_asked(translator):
    parts = ["I like soccer.", "Do you like sports?"]
    alone = [translator.translate(part).text for part in parts]
    (together,) = translator.stream([" ".join(parts)], sentences=True)
    assert together.text.split() == " ".join(alone).split()


def test_attention_and_alignment_come_with_the_translation(translator):
    found = translator.translate("She likes soccer", DecodingOptions(beam=2, nbest=2))
    assert found.attention["decoder.1.cross"].shape[:2] == (1, 2)
    assert translator.translate("").attention == {}
    in_pieces = translator.translate("She likes soccer. " * 20)
    assert len(in_pieces.attention_by_piece) > 1
    with pytest.raises(ValueError, match="pieces"):
        assert in_pieces.attention
    (words,) = found.words
    assert words.source == ["She", "likes", "soccer", "</s>"]
    assert words.target[:-1] == found.text.split()
    assert [target for _, target in sorted(found.alignment, key=lambda link: link[1])] == list(
        range(len(words.target) - 1)
    )
    assert found.alternatives[0] == found.text
    assert len(found.alternatives) == 2


def test_looking_changes_nothing(translator):
    before = translator.translate("She likes soccer")
    assert before.attention
    assert translator.translate("She likes soccer").text == before.text
