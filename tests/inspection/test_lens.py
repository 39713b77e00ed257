"""Lenses against the model's distribution, against NumPy, and as the decoder's memory."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from translucid.attention.points import recording
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.ground.errors import UserError
from translucid.inspection.lens import (
    Lens,
    deciding_layer,
    decoder_states,
    divergences,
    final_norm,
    learn_tuned_lens,
    lens_log_probs,
    lens_pass,
    new_tuned_lens,
    reading_layer,
    state_points,
)
from translucid.language.options import TransformerLanguageOptions
from translucid.models.build import build_model
from translucid.models.ensemble import Ensemble
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.protocol import Memory

V, D = 30, 16
SHAPE = {"width": D, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2}
KINDS = {
    "pre-norm": TransformerOptions(**SHAPE),
    "post-norm": TransformerOptions(**SHAPE, norm="post"),
    "ssru": TransformerOptions(**SHAPE, decoder="ssru"),
    "attention-only": AttentionOnlyOptions(width=D, encoder_layers=2, decoder_layers=2),
}
LANGUAGE = TransformerLanguageOptions(width=D, heads=2, feed_forward=24, layers=2)
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET = torch.tensor([[11, 12, 13, 3], [14, 15, 16, 3]])
INPUTS = torch.tensor([[2, 11, 12, 13], [2, 14, 15, 16]])


def build(options):
    torch.manual_seed(1)
    model = build_model(options, V, V).double().eval()
    for parameter in model.parameters():  # also biases and norms, which are initialized to zeros and ones
        parameter.data.normal_(std=0.4)
    return model


@pytest.fixture(params=KINDS)
def model(request):
    return build(KINDS[request.param])


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


class NumpyTransformer:
    """A Transformer for one sentence, by the equations of its paper."""

    def __init__(self, model):
        self.w = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
        self.pre = model.options.norm == "pre"

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name, x):
        centered = x - x.mean(-1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def attention(self, name, x, memory, mask):
        key, value = np.split(self.linear(f"{name}.key_value", memory), 2, -1)
        parts = [np.split(projected, 2, -1) for projected in (self.linear(f"{name}.query", x), key, value)]  # two heads
        heads = []
        for query, key, value in zip(*parts, strict=True):
            scores = np.where(mask, query @ key.T / np.sqrt(D / 2), -np.inf)
            heads.append(softmax(scores) @ value)
        return self.linear(f"{name}.output", np.concatenate(heads, -1))

    def feed_forward(self, name, x):
        return self.linear(f"{name}.outer", np.maximum(self.linear(f"{name}.inner", x), 0))

    def residual(self, name, x, sublayer):
        return x + sublayer(self.norm(name, x)) if self.pre else self.norm(name, x + sublayer(x))

    def final(self, side, x):
        return self.norm(f"{side}_norm", x) if self.pre else x

    def encode(self, x):
        for i in range(2):
            block, everywhere = f"encoder.{i}", np.ones((len(x), len(x)), bool)
            x = self.residual(
                f"{block}.residuals.0.norm",
                x,
                lambda x, b=block, m=everywhere: self.attention(f"{b}.self_attention", x, x, m),
            )
            x = self.residual(
                f"{block}.residuals.1.norm", x, lambda x, b=block: self.feed_forward(f"{b}.feed_forward", x)
            )
        return self.final("encoder", x)

    def lens(self, memory, x):
        """Return the distributions of the input and of both layers."""
        causal, everywhere = np.tri(len(x), dtype=bool), np.ones((len(x), len(memory)), bool)
        states = [x]
        for i in range(2):
            block = f"decoder.{i}"
            x = self.residual(
                f"{block}.residuals.0.norm",
                x,
                lambda x, b=block: self.attention(f"{b}.self_attention", x, x, causal),
            )
            x = self.residual(
                f"{block}.residuals.1.norm",
                x,
                lambda x, b=block: self.attention(f"{b}.cross_attention", x, memory, everywhere),
            )
            x = self.residual(
                f"{block}.residuals.2.norm", x, lambda x, b=block: self.feed_forward(f"{b}.feed_forward", x)
            )
            states.append(x)
        return [softmax(self.linear("output", self.final("decoder", state))) for state in states]


@pytest.mark.parametrize("norm", ["pre-norm", "post-norm"])
def test_the_equation_in_float64(norm):
    model = build(KINDS[norm])
    if model.output.weight is model.target_embedding.tokens.weight:
        model.output.weight = torch.nn.Parameter(model.output.weight.detach().clone())  # named under `output`
    numpy_model = NumpyTransformer(model)
    with torch.no_grad():
        source, target = model.source_embedding(SOURCE[:1])[0], model.target_embedding(INPUTS[:1])[0]
    expected = numpy_model.lens(numpy_model.encode(source.numpy()), target.numpy())
    result = lens_pass(model, SOURCE[:1], TARGET[:1])
    for layer, distribution in enumerate(expected):
        order = np.argsort(-distribution)  # [T, V]
        np.testing.assert_array_equal(result.top[layer, 0], order[:, :5])
        best = np.take_along_axis(distribution, order[:, :5], -1)
        np.testing.assert_allclose(result.top_log_probs[layer, 0].exp(), best, atol=1e-9)
        for position, token in enumerate(TARGET[0].tolist()):
            assert result.log_probs[layer, 0, position].exp().item() == pytest.approx(
                distribution[position, token], abs=1e-9
            )
            assert order[position, result.ranks[layer, 0, position] - 1] == token


def test_the_last_layer_has_the_distribution_of_the_model(model):
    result = lens_pass(model, SOURCE, TARGET)
    expected = model(SOURCE, INPUTS).log_softmax(-1)
    assert result.log_probs.shape == (3, 2, 4)
    assert_close(result.log_probs[-1], expected.gather(-1, TARGET[..., None])[..., 0], rtol=0, atol=1e-6)
    assert_close(result.top_log_probs[-1], expected.topk(5).values, rtol=0, atol=1e-6)
    assert not torch.allclose(result.log_probs[-2], result.log_probs[-1], atol=1e-3)


def test_a_language_model_has_a_lens():
    model = build(LANGUAGE)
    result = lens_pass(model, torch.tensor([[3], [3]]), TARGET)
    expected = model(torch.tensor([[3], [3]]), INPUTS).log_softmax(-1)
    assert_close(result.log_probs[-1], expected.gather(-1, TARGET[..., None])[..., 0], rtol=0, atol=1e-6)
    assert result.ranks.shape == (3, 2, 4)


def test_a_new_tuned_lens_is_the_logit_lens(model):
    lens = new_tuned_lens(model)
    plain, tuned = lens_pass(model, SOURCE, TARGET), lens_pass(model, SOURCE, TARGET, lens)
    for expected, actual in zip(plain, tuned, strict=True):
        assert_close(expected, actual, rtol=0, atol=1e-9)
    lens.maps[1].bias.data.normal_()
    changed = lens_pass(model, SOURCE, TARGET, lens)
    assert not torch.allclose(changed.log_probs[1], plain.log_probs[1], atol=1e-3)
    for layer in (0, 2):
        assert torch.equal(changed.log_probs[layer], tuned.log_probs[layer])


def test_a_tuned_lens_comes_closer_to_the_last_layer(monkeypatch):
    monkeypatch.setattr("translucid.inspection.lens.UPDATES", 60)
    monkeypatch.setattr("translucid.inspection.lens.RATE", 0.01)
    model = build(KINDS["pre-norm"])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    generator, updates = np.random.default_rng(1), []
    pairs = []
    for _ in range(60):
        source, target = (generator.integers(4, V, generator.integers(2, 6)).tolist() for _ in range(2))
        pairs.append(([*source, 3], [*target, 3]))
    lens = learn_tuned_lens(model, pairs[:50], on_update=updates.append)
    assert len(updates) == 60
    plain, tuned = divergences(model, pairs[50:]), divergences(model, pairs[50:], lens)
    assert len(plain) == 2
    for first, second in zip(plain, tuned, strict=True):
        assert second < 0.7 * first
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    relearned = learn_tuned_lens(model, pairs[:50])
    for first, second in zip(lens.parameters(), relearned.parameters(), strict=True):
        assert torch.equal(first, second)


def test_the_divergence_of_the_logit_lens_by_hand():
    model = build(KINDS["pre-norm"])
    pairs = [([5, 6, 7, 8, 3], [11, 12, 13, 3]), ([9, 10, 3], [14, 3])]
    sums = np.zeros(2)
    for source, target in pairs:
        states = decoder_states(model, torch.tensor([source]), torch.tensor([target]))
        first, second, last = (lens_log_probs(model, state[0], i).detach().numpy() for i, state in enumerate(states))
        for layer, log_probs in enumerate((first, second)):
            sums[layer] += (np.exp(last) * (last - log_probs)).sum()
    np.testing.assert_allclose(divergences(model, pairs), sums / 6, rtol=1e-9)


def test_the_decoder_reads_each_layer_of_the_encoder(model):
    points = state_points(model, "encoder")
    assert list(points) == ["input", "0", "1"]
    with recording(model, list(points.values())) as record:
        memory = model.encode(SOURCE)
    ordinary = model.decode(memory, INPUTS)
    for layer, point in points.items():
        by_hand = model.decode(Memory(final_norm(model, "encoder")(record[point]), memory.mask), INPUTS)
        with reading_layer(model, layer):
            assert_close(model(SOURCE, INPUTS), by_hand)
        assert torch.allclose(by_hand, ordinary, atol=1e-6) == (layer == "1")
    assert torch.equal(model(SOURCE, INPUTS), ordinary)


def test_a_search_can_read_each_encoder_layer(model):
    sentences, options = [[5, 6, 7, 8, 3], [9, 10, 3]], DecodingOptions(beam=3, max_length_extra=3)
    ordinary = TorchEngine(model).decode(SearchRequest(sentences, options))
    scores = {}
    for layer in ("0", "1"):
        with reading_layer(model, layer):
            hypotheses = TorchEngine(model).decode(SearchRequest(sentences, options))
            (best, *_), _ = hypotheses
            ids = torch.tensor([best.with_end])
            forced = lens_pass(model, SOURCE[:1], ids).log_probs[-1].sum().item()
        scores[layer] = [(nbest[0].tokens, nbest[0].log_probability) for nbest in hypotheses]
        assert best.log_probability == pytest.approx(forced, abs=1e-3)
    assert scores["1"] == [(nbest[0].tokens, nbest[0].log_probability) for nbest in ordinary]
    assert scores["0"] != scores["1"]


def test_words_of_several_pieces():
    best = [["▁com", "er", "▁a"], ["▁beb", "ió", "</s>"], ["▁beb", "er", "</s>"]]
    top = [[[piece, "other"] for piece in pieces] for pieces in best]
    probabilities = torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.25, 0.5], [0.5, 0.8, 0.9]])
    ranks = torch.tensor([[4, 2, 3], [1, 2, 1], [1, 1, 1]])
    log_probs = probabilities.log()
    top_log_probs = torch.stack([log_probs, log_probs - 9], -1)
    lens = Lens(["input", "0", "1"], ["▁beb", "er", "</s>"], top, top_log_probs, log_probs, ranks)
    word, end = lens.words
    assert (word.word, word.top, word.ranks, word.decided) == ("beber", ["com·er", "beb·ió", "beber"], [4, 2, 1], 2)
    assert word.probabilities == pytest.approx([0.02, 0.125, 0.4])
    assert (end.word, end.decided) == ("</s>", 1)
    record = lens.to_json()
    assert record["words"][0]["layers"][2] == {"top": "beber", "top_probability": 0.4, "probability": 0.4, "rank": 1}
    layer = record["pieces"][1]["layers"][1]
    assert (layer["top"][0], layer["probability"], layer["rank"]) == (["ió", 0.25], 0.25, 2)
    assert [piece["decided"] for piece in record["pieces"]] == [1, 2, 1]


def test_a_word_that_the_model_would_not_write_is_not_decided():
    assert deciding_layer([1, 1, 2]) is None
    assert deciding_layer([1, 1]) == 0


def test_models_without_such_layers_are_refused():
    recurrent = build_model(RecurrentOptions(width=D), V, V).eval()
    with pytest.raises(UserError, match="a lens is for Transformers"):
        lens_pass(recurrent, SOURCE, TARGET)
    model = build(KINDS["pre-norm"])
    with pytest.raises(UserError, match="not an average of several"):
        lens_pass(Ensemble([model, model]), SOURCE, TARGET)
    with pytest.raises(UserError, match="no encoder"), reading_layer(build(LANGUAGE), "0"):
        pass
    with pytest.raises(UserError, match=r"no layer '2'. It has input, 0, 1"), reading_layer(model, "2"):
        pass
