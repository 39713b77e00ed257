"""Attention maps as data for every kind of model: rows, layers and heads, rollout and JSON."""

from itertools import starmap

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.data.placeholders import Masked
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.maps import cross_attention, forced_pass, rollout
from translucid.ground.errors import UserError
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.inspected import Inspected, viewer_record
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

KINDS = {
    "transformer": TransformerOptions(width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=2),
    "attention-only": AttentionOnlyOptions(width=16, encoder_layers=1, decoder_layers=2),
    "bahdanau": RecurrentOptions(width=16, attention="bahdanau"),
    "luong": RecurrentOptions(width=16, attention="luong-dot"),
}
SOURCE = torch.tensor([[5, 6, 7, 3]])


@pytest.fixture(params=KINDS)
def model(request):
    torch.manual_seed(2)
    return build_model(KINDS[request.param], 20, 20).eval()


def test_maps_have_a_row_for_each_target_token(model):
    maps, log_probs, links = forced_pass(model, SOURCE, torch.tensor([[8, 9, 3]]))
    cross = [weights for name, weights in maps.items() if name.endswith(".cross")]
    assert cross
    for weights in cross:
        assert weights.shape[2:] == (3, 4)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert log_probs.shape == (1, 3) and links is None


def test_log_probs_are_those_of_the_model(model):
    target = torch.tensor([[8, 9, 3]])
    expected = model(SOURCE, torch.tensor([[2, 8, 9]])).log_softmax(-1)[0, range(3), target[0]]
    torch.testing.assert_close(forced_pass(model, SOURCE, target).log_probs[0], expected)
    assert forced_pass(model, SOURCE, target, with_attention=False).maps == {}


def test_cross_attention_is_the_mean_of_all_its_maps(model):
    source, target = torch.tensor([[5, 6, 7, 3], [5, 3, 0, 0]]), torch.tensor([[8, 9, 3], [8, 3, 0]])
    pairs = [
        (source_row[source_row != 0].tolist(), target_row[target_row != 0].tolist())
        for source_row, target_row in zip(source, target, strict=True)
    ]
    batched = cross_attention(model, source, target)
    for (source_ids, target_ids), weights in zip(pairs, batched, strict=True):
        maps = forced_pass(model, torch.tensor([source_ids]), torch.tensor([target_ids])).maps
        single = Inspected(
            [""] * len(source_ids), [""] * len(target_ids), {name: map[0] for name, map in maps.items()}, []
        )
        torch.testing.assert_close(weights[: len(target_ids), : len(source_ids)], single.cross())
        assert not weights[:, len(source_ids) :].any()


def test_a_row_is_the_attention_when_its_token_was_predicted(model):
    first, second = (forced_pass(model, SOURCE, torch.tensor([[8, last, 3, 3]])).maps for last in (9, 10))
    name = next(name for name in first if name.endswith(".cross"))
    # The first two rows do not depend on the second token.
    torch.testing.assert_close(first[name][..., :2, :], second[name][..., :2, :])
    assert not torch.allclose(first[name][..., 2:, :], second[name][..., 2:, :])


def inspected(heads=2, layers=2):
    generator = torch.Generator().manual_seed(4)
    maps = {f"decoder.{i}.cross": torch.rand(heads, 3, 4, generator=generator).softmax(-1) for i in range(layers)}
    return Inspected(["▁a", "▁b", "c", "</s>"], ["▁x", "▁y", "</s>"], maps, [-0.5, -1.0, -0.25])


def test_layers_and_heads_are_chosen_or_averaged():
    result = inspected()
    first, second = result.maps["decoder.0.cross"], result.maps["decoder.1.cross"]
    torch.testing.assert_close(result.cross(), torch.cat([first, second]).mean(0))
    torch.testing.assert_close(result.cross(1), second.mean(0))
    torch.testing.assert_close(result.cross(1, 0), second[0])
    torch.testing.assert_close(result.cross(None, 1), (first[1] + second[1]) / 2)
    shifted = result.cross(0, shift=True)
    torch.testing.assert_close(shifted[:2], first.mean(0)[1:])
    torch.testing.assert_close(shifted[2], first.mean(0)[2])
    for layer, head in ((2, None), (None, 2), (0, -1)):
        with pytest.raises(UserError, match="there is no"):
            result.cross(layer, head)


def test_a_model_without_attention_says_so():
    with pytest.raises(UserError, match="no attention"):
        Inspected(["</s>"], ["</s>"], {}, [-1.0]).cross()


def test_attention_is_saved_and_loaded_as_json(tmp_path):
    saved = inspected()
    saved.save(tmp_path / "a.json")
    loaded = Inspected.load(tmp_path / "a.json")
    assert (loaded.source, loaded.target, loaded.log_probs) == (saved.source, saved.target, saved.log_probs)
    for name, weights in saved.maps.items():
        torch.testing.assert_close(loaded.maps[name], weights, rtol=0, atol=1e-5)
    assert saved.to_json()["source_words"] == ["a", "bc", "</s>"]
    assert saved.word_log_probs() == saved.log_probs
    for text in ("{}", "[1]", "no", '{"source": 1, "target": 2, "attention": 3, "log_probs": 4}'):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(UserError, match="no saved attention"):
            Inspected.load(tmp_path / "b.json")


def test_rollout_by_hand():
    """With one layer each, rollout gives half the weight to the residual path and half to the attention."""
    encoder = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])  # both attend to the first position
    decoder = torch.tensor([[[1.0]]])
    cross = torch.tensor([[[0.0, 1.0]]])  # attends to the second position, whose state is half the first
    flow = rollout({"encoder.0.self": encoder, "decoder.0.self": decoder, "decoder.0.cross": cross})
    torch.testing.assert_close(flow, torch.tensor([[0.5, 0.5]]))
    cross_only = rollout({"decoder.0.cross": cross})
    torch.testing.assert_close(cross_only, torch.tensor([[0.0, 1.0]]))


def test_rollout_is_a_product_of_matrices_over_both_sides():
    """Rollout multiplies one matrix per layer over source and target positions, as in Abnar and Zuidema."""
    generator = np.random.default_rng(3)

    def weights(heads, rows, columns, mask=None):
        matrix = generator.random((heads, rows, columns)) * (1 if mask is None else mask)
        return matrix / matrix.sum(-1, keepdims=True)

    sources, targets, layers = 5, 4, 3
    maps = {f"encoder.{i}.self": weights(2, sources, sources) for i in range(layers)}
    for i in range(layers):
        maps[f"decoder.{i}.self"] = weights(2, targets, targets, np.tril(np.ones((targets, targets))))
        maps[f"decoder.{i}.cross"] = weights(2, targets, sources)
    states, first = np.eye(sources + targets), slice(0, sources)
    for i in range(layers):
        step = np.eye(sources + targets)
        step[first, first] = (np.eye(sources) + maps[f"encoder.{i}.self"].mean(0)) / 2
        states = step @ states
    for i in range(layers):
        step = np.eye(sources + targets)
        step[sources:, sources:] = (np.eye(targets) + maps[f"decoder.{i}.self"].mean(0)) / 2
        states = step @ states
        step = np.eye(sources + targets)
        step[sources:, sources:] /= 2
        step[sources:, first] = maps[f"decoder.{i}.cross"].mean(0) / 2
        states = step @ states
    flow = states[sources:, first]
    result = rollout({name: torch.tensor(matrix) for name, matrix in maps.items()})
    np.testing.assert_allclose(result, flow / flow.sum(-1, keepdims=True), atol=1e-6)


def test_rollout_rows_sum_to_one(model):
    maps = {name: weights[0] for name, weights in forced_pass(model, SOURCE, torch.tensor([[8, 9, 3]])).maps.items()}
    torch.testing.assert_close(rollout(maps).sum(-1), torch.ones(3))


def test_forced_decoding_in_batches_equals_single_pairs(model):
    pairs = [Pair("ab ba", "x y"), Pair("a b a b a b", "y"), Pair("b", "x y x y x")]
    tokenizer = Tokenizer.learn(pairs * 10, TokenizerOptions(vocabulary=12), seed=1)
    ids = [([5, 6, 3], [7, 3]), ([5] * 7 + [3], [8, 3]), ([9, 3], [5, 6, 7, 8, 3])]
    encoded = list(starmap(EncodedPair, ids))
    batched = forced_decoding(model, tokenizer, encoded, batch_tokens=1000)
    for result, pair in zip(batched, encoded, strict=True):
        (single,) = forced_decoding(model, tokenizer, [pair])
        assert result.source == single.source
        assert len(result.target) == len(pair.target) == len(result.log_probs)
        assert result.maps.keys() == single.maps.keys()
        for name, weights in result.maps.items():
            torch.testing.assert_close(weights, single.maps[name], rtol=0, atol=1e-5)


def test_characters_that_the_model_does_not_know_are_shown_as_they_are():
    pairs = [Pair("she reads a book", "ella lee un libro")] * 20
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=40), seed=1)
    text = "she reads 足球 a Б"
    ids = [*tokenizer.encode_source([text])[0], 3]
    model = build_model(KINDS["transformer"], tokenizer.source_size, tokenizer.target_size).eval()
    (result,) = forced_decoding(model, tokenizer, [EncodedPair(ids, [5, 3], Masked(text, {}))])
    words = result.words().source
    assert words == ["she", "reads", "足球", "a", "Б", "</s>"]
    assert [words[i] for i in result.unknown_words] == ["足球", "Б"]
    assert Inspected.from_json(result.to_json()).unknown == result.unknown
    assert viewer_record(result)["unknown"] == [2, 4]
    (unmasked,) = forced_decoding(model, tokenizer, [EncodedPair(ids, [5, 3])])
    assert unmasked.words().source[2] == "<unk>"
    # not what the ids encode
    (mismatched,) = forced_decoding(model, tokenizer, [EncodedPair(ids, [5, 3], Masked("another text", {}))])
    assert mismatched.source == unmasked.source
