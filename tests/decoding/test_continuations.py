"""Continuations of a prefix: every possible next token, and no other."""

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import continuations
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

SOURCE = torch.tensor([[5, 6, 3]])
OPTIONS = DecodingOptions(beam=2, max_length_extra=2)


def model(vocabulary, longest=None):
    shape = {"width": 8, "heads": 2, "feed_forward": 8, "encoder_layers": 1, "decoder_layers": 1}
    if longest:
        shape |= {"positions": "learned", "max_length": longest}
    return Transformer(vocabulary, vocabulary, TransformerOptions(**shape)).eval()


@pytest.mark.parametrize(("vocabulary", "expected"), [(7, 4), (9, 6), (11, 8), (30, 8)])
def test_a_small_vocabulary_offers_what_it_has_and_no_padding_or_start(vocabulary, expected):
    hypotheses = continuations(model(vocabulary), SOURCE, [5], 8, OPTIONS)
    assert len(hypotheses) == expected
    # Hypotheses lack the end token, which follows the prefix in the shortest one.
    next_tokens = [[*hypothesis.tokens, 3][1] for hypothesis in hypotheses]
    assert len(set(next_tokens)) == expected
    assert not {0, 1, 2} & set(next_tokens)
    log_probs = [hypothesis.token_log_probabilities[1] for hypothesis in hypotheses]
    assert log_probs == sorted(log_probs, reverse=True)
    assert all(value > -100 for value in log_probs)


@pytest.mark.parametrize("prefix", [[3], [5, 0], [1, 5], [2]])
def test_a_prefix_that_no_output_has_is_refused(prefix):
    with pytest.raises(ValueError, match="continues after"):
        continuations(model(9), SOURCE, prefix, 3, OPTIONS)


def test_a_prefix_that_leaves_no_room_is_refused():
    assert continuations(model(9, 6), SOURCE, [5] * 4, 3, OPTIONS)
    with pytest.raises(ValueError, match="leaves no room"):
        continuations(model(9, 6), SOURCE, [5] * 5, 3, OPTIONS)


@pytest.mark.parametrize("source", [torch.empty(1, 0, dtype=torch.long), torch.tensor([[0, 0]]), SOURCE.repeat(2, 1)])
def test_several_sources_are_refused(source):
    with pytest.raises(ValueError, match="one source"):
        continuations(model(9), source, [5], 3, OPTIONS)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_1_is_refused(count):
    with pytest.raises(ValueError, match="at least 1"):
        continuations(model(9), SOURCE, [5], count, OPTIONS)
