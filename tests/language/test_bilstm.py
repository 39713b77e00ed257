"""The bidirectional language model, its stream and its training loss."""

from collections import Counter

import numpy as np
import pytest
import torch

from translucid.data.stores.store import EncodedTexts, Size
from translucid.ground.special import SPECIAL
from translucid.kernels.lstm import reference_lstm
from translucid.language.lstm import BidirectionalLSTM
from translucid.language.options import BiLSTMLanguageOptions
from translucid.language.running_text import StreamLoss
from translucid.language.scores import BidirectionalStream, Stream, readings
from translucid.models.build import build_model

V = 23
PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"▁{chr(97 + i)}" for i in range(V - 4))]
SMALL = {"width": 8, "hidden": 12, "filters": [3, 4]}
OPTIONS = {
    "embeddings": BiLSTMLanguageOptions(**SMALL),
    "untied, three layers": BiLSTMLanguageOptions(**SMALL, tie_output=False, layers=3),
    "characters": BiLSTMLanguageOptions(**SMALL, characters=True),
}


@pytest.fixture(params=OPTIONS)
def model(request):
    return build_model(OPTIONS[request.param], V, V, PIECES).eval()


@pytest.fixture
def texts():
    generator = np.random.default_rng(1)
    rows = [[SPECIAL.start, *generator.integers(4, V, length), SPECIAL.end] for length in (5, 9, 3, 12, 7, 6)]
    return EncodedTexts(np.concatenate(rows), Size(6, 48, 96))


def read_all(model, stream):
    """Return the inputs, labels and logits of all windows, [B, 2, columns, ..]."""
    windows = stream.equal_windows()
    batches = [stream.batch(windows, number) for number in range(len(windows.ends))]
    logits = torch.cat([model.output(features) for features, _ in readings(model, batches)], 2)
    return (
        torch.cat([batch.targets_in for batch in batches], 2),
        torch.cat([batch.labels for batch in batches], 2),
        logits,
    )


def test_the_text_is_read_from_both_ends(texts):
    windows = (stream := BidirectionalStream(texts, 3, 4)).equal_windows()
    batches = [stream.batch(windows, number) for number in range(len(windows.ends))]
    backward = torch.cat([batch.targets_in for batch in batches], 2)[:, 1].flatten().tolist()
    reversed_ids = texts.ids[::-1].tolist()
    swapped = [{2: 3, 3: 2}.get(token, token) for token in reversed_ids]
    assert backward[: len(swapped)] == swapped
    assert swapped[:4] == [2, *texts.ids[-2:-5:-1]]
    forward = torch.cat([batch.targets_in for batch in batches], 2)[:, 0].flatten().tolist()
    assert forward[: len(swapped)] == texts.ids.tolist()
    for batch in batches:
        labels, next_inputs = batch.labels[:, :, :-1], batch.targets_in[:, :, 1:]
        assert labels[labels != 0].equal(next_inputs[labels != 0])


def test_each_direction_is_asked_for_all_tokens_but_the_beginnings(texts):
    stream = BidirectionalStream(texts, 3, 4)
    for windows in (stream.equal_windows(), stream.random_windows(1, 0)):
        for direction in range(2):
            labels = [stream.batch(windows, number).labels[:, direction] for number in range(len(windows.ends))]
            label_ids = Counter(torch.cat([window_labels.flatten() for window_labels in labels]).tolist())
            del label_ids[SPECIAL.pad]
            expected = Counter(texts.ids[texts.ids != SPECIAL.start].tolist())
            assert label_ids <= expected
            assert (expected - label_ids).total() <= 3


@torch.no_grad()
@pytest.mark.parametrize("position", [1, 4, 20, 33, 47])
def test_no_direction_sees_the_word_that_it_predicts(model, texts, position):
    """Changing a label changes no logit up to its own prediction, but it changes later ones."""
    count = len(texts.ids)
    assert texts.ids[position] > SPECIAL.end
    changed = texts.ids.copy()
    changed[position] = 4 + (changed[position] - 3) % (V - 4)
    stream = BidirectionalStream(texts, 2, 5)
    _, labels, before = read_all(model, stream)
    _, changed_labels, after = read_all(model, BidirectionalStream(EncodedTexts(changed, texts.size), 2, 5))
    columns = before.size(2)
    differ = ((before - after).abs() > 1e-6).any(-1)  # [B, 2, columns]; rounding depends on the batch
    for direction, index in ((0, position), (1, count - 1 - position)):
        row, column = divmod(index - 1, columns)
        assert labels[row, direction, column] == texts.ids[position]
        assert changed_labels[row, direction, column] == changed[position]
        assert not differ[row, direction, : column + 1].any(), "a word is seen before it is predicted"
        if column + 1 < columns:
            assert differ[row, direction, column + 1], "a word is not seen after it"
        assert not differ[:row, direction].any()


@torch.no_grad()
def test_each_half_is_a_language_model_of_plain_lstms():
    """In float64, with embeddings E sqrt(D), the residual connection and tied output weights."""
    model = build_model(OPTIONS["embeddings"], V, V).double().eval()
    assert isinstance(model, BidirectionalLSTM)
    ids = torch.randint(4, V, (2, 2, 6))
    zeros = torch.zeros(2, 12, dtype=torch.float64)
    start = type(model.begin(2, ids.device))((zeros,) * 8)
    reading, after = model.read_on(ids, start)
    for direction in range(2):
        lstm = model.directions[direction]
        x = model.output.weight[ids[:, direction]] * 8**0.5
        torch.testing.assert_close(reading.layers[0][:, direction], x)
        first, cells = reference_lstm(x, (zeros, zeros), lstm.layers[0].w, lstm.layers[0].u, lstm.layers[0].b)
        h = first @ lstm.projections[0].weight.t()
        torch.testing.assert_close(reading.layers[1][:, direction], h)
        second, _ = reference_lstm(h, (zeros, zeros), lstm.layers[1].w, lstm.layers[1].u, lstm.layers[1].b)
        last = h + second @ lstm.projections[1].weight.t()
        torch.testing.assert_close(reading.features[:, direction], last)
        torch.testing.assert_close(after.cells[4 * direction], cells[0])
        logits = last @ model.output.weight.t() + model.output.bias
        torch.testing.assert_close(model.output(reading.features)[:, direction], logits)


@torch.no_grad()
def test_windows_with_a_carried_state_are_one_long_pass(model, texts):
    whole, pieces = BidirectionalStream(texts, 2, 1000), BidirectionalStream(texts, 2, 5)
    assert len(whole.equal_windows().ends) == 1
    assert len(pieces.equal_windows().ends) > 3
    for expected, actual in zip(read_all(model, whole), read_all(model, pieces), strict=True):
        torch.testing.assert_close(expected, actual, rtol=0, atol=1e-5)


@torch.no_grad()
def test_generation_uses_the_forward_half_only(model):
    targets = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])
    memory = model.encode(torch.full((2, 1), SPECIAL.end))
    expected = model.decode(memory, targets)
    features = model.read_on(torch.stack([targets, targets.flip(1)], 1), model.start(memory))[0].features
    torch.testing.assert_close(model.output(features[:, 0]), expected, rtol=0, atol=1e-5)
    state = model.start(memory)
    for t in range(4):
        logits, state = model.step(targets[:, t], state)
        torch.testing.assert_close(logits, expected[:, t], rtol=0, atol=1e-5)
    assert len(state.cells) == len(model.begin(2, targets.device).cells)
    assert not any(cells.any() for cells in state.cells[len(state.cells) // 2 :]), "the backward half has read"
    selected = state.select(torch.tensor([1, 1]))
    first, second = model.step(torch.tensor([4, 4]), selected)[0]
    assert torch.equal(first, second)


def test_gradients_reach_every_weight_and_dropout_drops_while_training_only(model, texts):
    window = BidirectionalStream(texts, 2, 9).batch(BidirectionalStream(texts, 2, 9).equal_windows(), 0)
    losses = [StreamLoss(model)(window).smoothed for _ in range(2)]
    assert torch.equal(*losses)
    model.train()
    loss = StreamLoss(model)(window)
    assert not torch.equal(loss.smoothed, StreamLoss(model)(window).smoothed)
    assert loss.tokens == int(window.labels.ne(0).sum())
    loss.smoothed.backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


def test_characters_need_to_know_how_words_are_written():
    with pytest.raises(ValueError, match="23 is read by its characters, but 0 are given"):
        build_model(OPTIONS["characters"], V, V)


def test_one_direction_is_read_as_before(texts):
    forward = Stream(texts, 2, 5)
    bidirectional = BidirectionalStream(texts, 2, 5)
    windows = forward.random_windows(3, 1)
    for number in range(len(windows.ends)):
        assert torch.equal(
            forward.batch(windows, number).targets_in, bidirectional.batch(windows, number).targets_in[:, 0]
        )


def test_both_ways_sees_each_token_from_its_side(model):
    """f_k depends on tokens up to k, g_k on those from k on, and padding changes nothing."""
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(4, V, (1, 8), generator=generator)
    ids[0, 0], ids[0, -1] = SPECIAL.start, SPECIAL.end

    def states(ids):
        return model.read_both_directions(model.embedding(ids), ids != SPECIAL.pad)

    width, layers = model.options.width, states(ids)
    assert [tuple(layer.shape) for layer in layers] == [(1, 8, 2 * width)] * (1 + model.options.layers)
    positions = torch.arange(8)
    for position in range(1, 7):
        changed = ids.clone()
        changed[0, position] = 4 + (changed[0, position] - 3) % (V - 4)
        for index, (before, after) in enumerate(zip(layers, states(changed), strict=True)):
            is_changed = (before - after)[0].unflatten(-1, (2, width)).abs().amax(-1) > 1e-5
            if not index:
                assert torch.equal(is_changed, (positions == position)[:, None].expand(8, 2))
                continue
            assert torch.equal(is_changed[:, 0], positions >= position)
            # Also when it is read backwards, a text begins with the start token and ends with the end token.
            assert torch.equal(is_changed[:7, 1], (positions <= position)[:7])
            assert not is_changed[7, 1]
    for before, after in zip(layers, states(torch.nn.functional.pad(ids, (0, 3))), strict=True):
        assert torch.allclose(before, after[:, :8], atol=1e-6)


def test_both_ways_is_what_the_stream_taught(model):
    """The states are those that each direction predicts from: f on the text, g on the reversed text."""
    ids = torch.tensor([[SPECIAL.start, 5, 9, 7, SPECIAL.end]])
    reversed_ids = torch.tensor([[SPECIAL.start, 7, 9, 5, SPECIAL.end]])
    reading, _ = model.read_on(torch.stack([ids, reversed_ids], 1), model.begin(1, torch.device("cpu")))
    states = model.read_both_directions(model.embedding(ids), ids != SPECIAL.pad)[-1][0].unflatten(-1, (2, -1))
    assert torch.allclose(states[:, 0], reading.layers[-1][0, 0], atol=1e-6)
    assert torch.allclose(states[1:4, 1], reading.layers[-1][0, 1, 1:4].flip(0), atol=1e-6)


def test_every_weight_is_in_one_layer(model):
    groups = model.layer_groups()
    assert len(groups) == 1 + model.options.layers
    assert sorted(id(parameter) for group in groups for parameter in group) == sorted(map(id, model.parameters()))
