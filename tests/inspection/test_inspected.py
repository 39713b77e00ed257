"""Maps as data: which row is which, layers and heads, rollout, JSON; for every kind of model."""

import numpy as np
import pytest
import torch

from translucid.data.placeholders import Masked
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.decoding.maps import cross_attention, forced_pass, rollout
from translucid.ground.errors import UserError
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.html import viewer_record
from translucid.inspection.inspected import Inspected
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
    assert forced_pass(model, SOURCE, target, look=False).maps == {}


def test_cross_attention_is_the_mean_of_all_its_maps(model):
    source, target = torch.tensor([[5, 6, 7, 3], [5, 3, 0, 0]]), torch.tensor([[8, 9, 3], [8, 3, 0]])
    pairs = [(row[row != 0].tolist(), other[other != 0].tolist()) for row, other in zip(source, target, strict=True)]
    seen = cross_attention(model, source, target)
    for (ids, written), weights in zip(pairs, seen, strict=True):
        maps = forced_pass(model, torch.tensor([ids]), torch.tensor([written])).maps
        one = Inspected([""] * len(ids), [""] * len(written), {name: map[0] for name, map in maps.items()}, [])
        torch.testing.assert_close(weights[: len(written), : len(ids)], one.cross())
        assert not weights[:, len(ids) :].any()


def test_a_row_is_where_the_model_looked_when_it_predicted_the_token(model):
    one, other = (forced_pass(model, SOURCE, torch.tensor([[8, last, 3, 3]])).maps for last in (9, 10))
    name = next(name for name in one if name.endswith(".cross"))
    torch.testing.assert_close(one[name][..., :2, :], other[name][..., :2, :])  # the second token was not yet known
    assert not torch.allclose(one[name][..., 2:, :], other[name][..., 2:, :])


def inspected(heads=2, layers=2):
    generator = torch.Generator().manual_seed(4)
    maps = {f"decoder.{i}.cross": torch.rand(heads, 3, 4, generator=generator).softmax(-1) for i in range(layers)}
    return Inspected(["▁a", "▁b", "c", "</s>"], ["▁x", "▁y", "</s>"], maps, [-0.5, -1.0, -0.25])


def test_layers_and_heads_are_chosen_or_averaged():
    one = inspected()
    first, second = one.maps["decoder.0.cross"], one.maps["decoder.1.cross"]
    torch.testing.assert_close(one.cross(), torch.cat([first, second]).mean(0))
    torch.testing.assert_close(one.cross(1), second.mean(0))
    torch.testing.assert_close(one.cross(1, 0), second[0])
    torch.testing.assert_close(one.cross(None, 1), (first[1] + second[1]) / 2)
    shifted = one.cross(0, shift=True)
    torch.testing.assert_close(shifted[:2], first.mean(0)[1:])
    torch.testing.assert_close(shifted[2], first.mean(0)[2])
    for layer, head in ((2, None), (None, 2), (0, -1)):
        with pytest.raises(UserError, match="there is no"):
            one.cross(layer, head)


def test_a_model_without_attention_says_so():
    with pytest.raises(UserError, match="no attention"):
        Inspected(["</s>"], ["</s>"], {}, [-1.0]).cross()


def test_json_there_and_back(tmp_path):
    one = inspected()
    one.save(tmp_path / "a.json")
    again = Inspected.load(tmp_path / "a.json")
    assert (again.source, again.target, again.log_probs) == (one.source, one.target, one.log_probs)
    for name, weights in one.maps.items():
        torch.testing.assert_close(again.maps[name], weights, rtol=0, atol=1e-5)
    assert one.to_json()["source_words"] == ["a", "bc", "</s>"]
    assert one.word_log_probs() == one.log_probs
    for text in ("{}", "[1]", "no", '{"source": 1, "target": 2, "attention": 3, "log_probs": 4}'):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(UserError, match="no saved attention"):
            Inspected.load(tmp_path / "b.json")


def test_rollout_by_pencil():
    """One layer each: half of the way stays, half goes where it looked."""
    encoder = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])  # both look at the first
    before = torch.tensor([[[1.0]]])
    cross = torch.tensor([[[0.0, 1.0]]])  # looks at the second, which is half the first
    flow = rollout({"encoder.0.self": encoder, "decoder.0.self": before, "decoder.0.cross": cross})
    torch.testing.assert_close(flow, torch.tensor([[0.5, 0.5]]))
    only = rollout({"decoder.0.cross": cross})
    torch.testing.assert_close(only, torch.tensor([[0.0, 1.0]]))


def test_rollout_is_a_product_of_matrices_over_both_sides():
    """Source and target positions as one line of states, each layer one matrix of it, as Abnar and Zuidema write it."""
    generator = np.random.default_rng(3)

    def weights(heads, rows, columns, mask=None):
        found = generator.random((heads, rows, columns)) * (1 if mask is None else mask)
        return found / found.sum(-1, keepdims=True)

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
    found = rollout({name: torch.tensor(one) for name, one in maps.items()})
    np.testing.assert_allclose(found, flow / flow.sum(-1, keepdims=True), atol=1e-6)


def test_rollout_rows_sum_to_one(model):
    maps = {name: weights[0] for name, weights in forced_pass(model, SOURCE, torch.tensor([[8, 9, 3]])).maps.items()}
    torch.testing.assert_close(rollout(maps).sum(-1), torch.ones(3))


def test_watching_in_batches_is_watching_alone(model):
    pairs = [Pair("ab ba", "x y"), Pair("a b a b a b", "y"), Pair("b", "x y x y x")]
    tokenizer = Tokenizer.learn(pairs * 10, TokenizerOptions(vocabulary=12), seed=1)
    ids = [([5, 6, 3], [7, 3]), ([5] * 7 + [3], [8, 3]), ([9, 3], [5, 6, 7, 8, 3])]
    together = forced_decoding(model, tokenizer, ids, batch_tokens=1000)
    for one, pair in zip(together, ids, strict=True):
        (alone,) = forced_decoding(model, tokenizer, [pair])
        assert one.source == alone.source
        assert len(one.target) == len(pair[1]) == len(one.log_probs)
        assert one.maps.keys() == alone.maps.keys()
        for name, weights in one.maps.items():
            torch.testing.assert_close(weights, alone.maps[name], rtol=0, atol=1e-5)


def test_characters_that_the_model_does_not_know_are_shown_as_they_are():
    pairs = [Pair("she reads a book", "ella lee un libro")] * 20
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=40), seed=1)
    text = "she reads 足球 a Б"
    ids = [*tokenizer.encode_source([text])[0], 3]
    model = build_model(KINDS["transformer"], tokenizer.source_size, tokenizer.target_size).eval()
    (seen,) = forced_decoding(model, tokenizer, [(ids, [5, 3])], masked=[Masked(text, {})])
    words = seen.words().source
    assert words == ["she", "reads", "足球", "a", "Б", "</s>"]
    assert [words[i] for i in seen.unknown_words] == ["足球", "Б"]
    assert Inspected.from_json(seen.to_json()).unknown == seen.unknown
    assert viewer_record(seen)["unknown"] == [2, 4]
    (without,) = forced_decoding(model, tokenizer, [(ids, [5, 3])])
    assert without.words().source[2] == "<unk>"
    (other,) = forced_decoding(
        model, tokenizer, [(ids, [5, 3])], masked=[Masked("another text", {})]
    )  # not what the ids encode
    assert other.source == without.source
