"""The outputs of a sentence do not depend on its batch and are returned in input order."""

import random
from collections.abc import Sequence

import pytest
import torch

from translucid.data.batching import batches
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.search import TorchEngine, search
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

EOS = 3
EVERY_SEARCH = [{"beam": 1}, {"beam": 3, "nbest": 2}]


def random_sentence(rng: random.Random, words: Sequence[int]) -> list[int]:
    return [rng.choice(words) for _ in range(rng.randint(0, 9))] + [EOS]


def random_sentences(count: int, words: Sequence[int]) -> list[list[int]]:
    rng = random.Random(0)
    return [random_sentence(rng, words) for _ in range(count)]


@pytest.fixture
def many_sentences() -> list[list[int]]:
    return random_sentences(12, [4, 5, 6])


@pytest.mark.parametrize("options", EVERY_SEARCH)
def test_results_depend_neither_on_order_nor_on_batches(options, table_model, many_sentences, monkeypatch):
    model, options = table_model(8, eos=-1), DecodingOptions(**options, max_length_extra=5)
    engine = TorchEngine(model)
    expected = engine.decode(SearchRequest(many_sentences, options))
    for batch_tokens in (1, 30, 100, 10_000):
        monkeypatch.setattr("translucid.decoding.search.BATCH", batch_tokens)
        assert engine.decode(SearchRequest(many_sentences, options)) == expected
    assert [engine.decode(SearchRequest([sentence], options))[0] for sentence in many_sentences] == expected
    for order in (sorted(range(12), key=lambda i: len(many_sentences[i])), random.Random(1).sample(range(12), 12)):
        assert engine.decode(SearchRequest([many_sentences[i] for i in order], options)) == [expected[i] for i in order]


@pytest.mark.parametrize("options", EVERY_SEARCH)
def test_an_empty_source_has_an_empty_output_with_probability_1(table_model, options):
    for best, *_ in TorchEngine(table_model(8)).decode(
        SearchRequest([[EOS], [4, EOS], [EOS]], DecodingOptions(**options))
    )[::2]:
        assert best == Hypothesis(tokens=[], log_probability=0, score=0, token_log_probabilities=[0])


def test_samples_do_not_depend_on_the_batch_size(table_model, many_sentences, monkeypatch):
    model, options = table_model(8), DecodingOptions(sample=True, nbest=3)
    engine = TorchEngine(model)
    expected = engine.decode(SearchRequest(many_sentences, options))
    for batch_tokens in (1, 30, 100):
        monkeypatch.setattr("translucid.decoding.search.BATCH", batch_tokens)
        assert engine.decode(SearchRequest(many_sentences, options)) == expected


@pytest.mark.parametrize("options", [*EVERY_SEARCH, {"sample": True, "nbest": 2}])
def test_a_transformer_translates_alike_alone_and_in_a_batch(options, monkeypatch):
    torch.manual_seed(0)
    shape = TransformerOptions(width=16, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=2)
    model = Transformer(50, 50, shape)
    sentences = random_sentences(8, range(4, 50))
    settings = DecodingOptions(max_length_ratio=1, max_length_extra=3, **options)
    expected = TorchEngine(model).decode(SearchRequest(sentences, settings))
    for batch_tokens in (1, 60):
        monkeypatch.setattr("translucid.decoding.search.BATCH", batch_tokens)
        results = TorchEngine(model).decode(SearchRequest(sentences, settings))
        for nbest, expected_nbest in zip(results, expected, strict=True):
            assert [h.tokens for h in nbest] == [h.tokens for h in expected_nbest]
            assert [h.score for h in nbest] == pytest.approx([h.score for h in expected_nbest], abs=1e-4)
    assert model.training  # the training mode is restored


def test_a_model_can_be_trained_after_a_search():
    model = Transformer(9, 9, TransformerOptions(width=4, heads=1, feed_forward=4, encoder_layers=1, decoder_layers=1))
    TorchEngine(model).decode(SearchRequest([[4, 5, EOS]], DecodingOptions(min_length=260, max_length_extra=260)))
    model(torch.tensor([[4, 5, EOS]]), torch.tensor([[2] + [4] * 260])).sum().backward()


def test_the_batch_reports_and_dropout_is_off(table_model, many_sentences, monkeypatch):
    model, options = table_model(8), DecodingOptions(beam=2)
    progress: list[int] = []
    modes = []
    encode = model.encode

    def recorded(source, **keywords):
        modes.append(model.training)
        return encode(source, **keywords)

    model.encode = recorded
    monkeypatch.setattr("translucid.decoding.search.BATCH", 20)
    TorchEngine(model).decode(SearchRequest(many_sentences, options, on_batch=progress.append))
    assert sum(progress) == len(many_sentences) and len(progress) > 3
    assert modes and not any(modes)


def test_an_empty_source_gives_the_empty_output_unasked(table_model):
    model = table_model()
    (first,), (second,) = TorchEngine(model).decode(SearchRequest([[EOS], [EOS]], DecodingOptions()))
    assert first.tokens == second.tokens == []
    assert model.rows_seen == []


def test_the_engine_and_the_search_agree(table_model, source_batch, sentences):
    model, options = table_model(8), DecodingOptions()
    assert TorchEngine(model).decode(SearchRequest(sentences, options)) == search(
        model, source_batch(sentences), options
    )


def test_batches_are_filled_by_tokens():
    lengths = [9, 2, 3, 3, 2, 2]
    assert list(batches([0, 2, 3, 1, 4, 5], lengths, 6)) == [[0], [2, 3], [1, 4, 5]]


def test_a_source_without_end_token_is_refused(table_model):
    with pytest.raises(ValueError, match="sentence 1 does not end in the end token 3"):
        TorchEngine(table_model()).decode(SearchRequest([[4, EOS], [4, 5]], DecodingOptions()))


@pytest.mark.parametrize(("weights", "expected"), [("meta", "meta"), (None, "cpu")])
def test_sentences_go_to_the_device_of_the_model(monkeypatch, table_model, weights, expected):
    model, devices = table_model(8), []
    if weights:
        model.weight = torch.nn.Parameter(torch.zeros(1, device=weights))

    def searched(model, source, *arguments, **options):
        devices.append(source.device.type)
        return [[]] * len(source)

    monkeypatch.setattr("translucid.decoding.search.search", searched)
    TorchEngine(model).decode(SearchRequest([[4, EOS], [5, 6, EOS]], DecodingOptions()))
    assert devices == [expected]
