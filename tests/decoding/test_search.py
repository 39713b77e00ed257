"""Properties that all search algorithms share."""

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import search
from translucid.decoding.trace import BeamTrace
from translucid.ground.errors import UserError

EVERY_SEARCH = [{"beam": 1}, {"beam": 3, "nbest": 2}, {"sample": True, "nbest": 2}]


@pytest.mark.parametrize("options", EVERY_SEARCH)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("token", [1, 3, 4])
def test_predictions_that_are_not_numbers_are_refused(options, bad, token, table_model, source_batch, sentences):
    model = table_model()
    model.logits[4, 0, 2, token] = bad  # a single entry, used by one of the sentences
    with pytest.raises(UserError, match=r"not numbers.*earlier checkpoint"):
        search(model, source_batch(sentences), DecodingOptions(**options))


@pytest.mark.parametrize("options", EVERY_SEARCH)
def test_a_model_for_which_every_output_is_impossible_is_refused(options, table_model, source_batch, sentences):
    model = table_model()
    model.logits[..., 3:] = -torch.inf  # only padding, start and unknown remain possible
    with pytest.raises(UserError, match="not numbers"):
        search(model, source_batch(sentences), DecodingOptions(**options))


@pytest.mark.parametrize("options", EVERY_SEARCH)
def test_half_precision_logits_are_searched_in_float32(options, table_model, source_batch, sentences):
    model = table_model(3)
    model.logits = model.logits.bfloat16()
    expected = search(model, source_batch(sentences), DecodingOptions(**options))
    model.logits = model.logits.float()
    assert search(model, source_batch(sentences), DecodingOptions(**options)) == expected


def test_no_sentences_give_no_results(table_model):
    assert search(table_model(), torch.zeros(0, 5, dtype=torch.long), DecodingOptions()) == []


def tokens_before_end(trace, end):
    return [trace.nodes[i].token for i in trace.path(end)[:-1]]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_trace_is_of_one_source_and_a_beam_search(table_model, source_batch, sentences, beam):
    for sentence in sentences:
        trace, source = BeamTrace(), source_batch([sentence])
        results = search(table_model(), source, DecodingOptions(beam=beam), trace=trace)
        ends = [i for i, node in enumerate(trace.nodes) if node.fate == "ended"]
        assert results[0][0].tokens in [tokens_before_end(trace, end) for end in ends]
        assert results == search(table_model(), source, DecodingOptions(beam=beam))
    for count, options in ((2, {"beam": 3}), (1, {"sample": True})):
        with pytest.raises(ValueError, match="of one source and a beam search"):
            search(table_model(), source_batch(sentences[:count]), DecodingOptions(**options), trace=BeamTrace())


def test_the_length_penalty_favors_long_outputs(table_model, source_batch, sentences):
    lengths = []
    for alpha in (0.0, 1.0, 4.0):
        options = DecodingOptions(beam=100, length_penalty=alpha, max_length_ratio=0, max_length_extra=4)
        results = search(table_model(), source_batch(sentences), options)
        lengths.append(sum(len(h[0].tokens) for h in results))
    assert lengths[0] < lengths[1] < lengths[2]
