"""Figures of language models by hand: perplexity per word, bits per character, and comparable vocabularies."""

import math

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.stores.store import EncodedTexts, Size
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.language.options import LSTMLanguageOptions
from translucid.language.running_text import StreamValidator
from translucid.models.build import build_model

SENTENCES = [p.target for p in generate(160, max_words=8)]


class Uniform(torch.nn.Module):
    """An output projection that makes all tokens equally likely."""

    def __init__(self, vocabulary):
        super().__init__()
        self.weight, self.bias = torch.zeros(vocabulary, 8), torch.zeros(vocabulary)

    def forward(self, x):
        return x.new_zeros(*x.shape[:-1], len(self.bias))


def test_perplexity_a_word_and_bits_a_character_by_hand():
    """A uniform model has figures that can be computed by hand.

    With V equally likely pieces, a text of n pieces and an end token costs (n + 1) log V nats.
    """
    lines = ["uno dos", "tres"]
    tokenizer = Tokenizer.learn([Pair("", line) for line in SENTENCES], TokenizerOptions(vocabulary=120), seed=1)
    encoded = EncodedTexts.encode(lines, tokenizer)
    model = build_model(LSTMLanguageOptions(width=8, hidden=8), tokenizer.target_size, tokenizer.target_size).eval()
    model.output = Uniform(tokenizer.target_size)
    validation = StreamValidator(encoded, tokenizer, window=4).measure(model, torch.device("cpu"))
    pieces = len(encoded.ids) - 2  # the labels: all pieces but the start tokens
    nats = pieces * math.log(tokenizer.target_size)
    words, characters = 2 + 1 + 1 + 1, len("uno dos") + 1 + len("tres") + 1
    assert validation.perplexity == pytest.approx(tokenizer.target_size, rel=1e-5)
    assert validation.measures["perplexity_word"] == pytest.approx(math.exp(nats / words), rel=1e-5)
    assert validation.measures["bits_per_character"] == pytest.approx(nats / math.log(2) / characters, rel=1e-5)
    assert validation.score == -validation.measures["perplexity_word"]
    assert StreamValidator(encoded, tokenizer, window=4).describe(-12.5) == "perplexity 12.50 a word"


def test_figures_of_two_vocabularies_are_comparable():
    """With equally likely characters, a word costs the same as one piece or as three."""
    bits = 5.0
    line = "abc"

    def measured(ids, cost):
        """Measure a model for which a piece of n characters costs n times 5 bits."""
        encoded = EncodedTexts(np.array([2, *ids, 3], np.int32), Size(1, 2, len(line) + 1))
        model = build_model(LSTMLanguageOptions(width=8, hidden=8, tie_output=False), 64, 64).eval()
        with torch.no_grad():
            model.output.weight.zero_()
            model.output.bias.fill_(-torch.inf)
            for id, characters in cost.items():
                model.output.bias[id] = -characters * bits * math.log(2)
            rest = 1 - model.output.bias.exp().sum()
            model.output.bias[1] = rest.log()
        return StreamValidator(encoded, None, window=70).measure(model, torch.device("cpu"))

    characters = measured([10, 11, 12], {10: 1, 11: 1, 12: 1, 3: 1})
    word = measured([20], {20: 3, 3: 1})
    assert characters.measures["bits_per_character"] == pytest.approx(bits, rel=1e-5)
    for name, value in characters.measures.items():
        assert word.measures[name] == pytest.approx(value, rel=1e-4), name
    assert word.perplexity != pytest.approx(characters.perplexity, rel=0.1)
