"""The Transformer language model: against PyTorch's encoder, token by token and beyond its context window."""

import pytest
import torch
from torch import nn

from translucid.data.batching import Batch
from translucid.data.stores.store import EncodedTexts, Size
from translucid.ground.errors import UserError
from translucid.kernels import reference_mode
from translucid.language.options import TransformerLanguageOptions
from translucid.language.running_text import StreamLoss
from translucid.language.scores import Stream, empty_source, readings, score_texts, stride
from translucid.models.build import build_model
from translucid.runs.configuration import resolve

V = 17
SHAPE = {"width": 24, "heads": 3, "feed_forward": 40, "layers": 2, "context": 8}


def model_of(**options):
    torch.manual_seed(1)
    model = build_model(TransformerLanguageOptions(**{**SHAPE, **options}), V, V).eval()
    for parameter in model.parameters():  # also biases and norms, which are initialized to zeros and ones
        parameter.data += torch.randn_like(parameter) * 0.1
    return model


@pytest.fixture
def model():
    return model_of()


@pytest.fixture
def ids():
    return torch.randint(4, V, (2, 8), generator=torch.Generator().manual_seed(2))


def logits_of(model, ids):
    return model.output(model.read_on(ids, model.begin(len(ids), ids.device))[0].features)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_the_model_is_the_encoder_of_pytorch_with_a_causal_mask(norm, ids):
    model = model_of(norm=norm)
    layer = nn.TransformerEncoderLayer(24, 3, 40, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    reference = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    for reference_layer, block in zip(reference.layers, model.decoder, strict=True):
        attention = block.self_attention
        reference_layer.self_attn.in_proj_weight.copy_(torch.cat([attention.query.weight, attention.key_value.weight]))
        reference_layer.self_attn.in_proj_bias.copy_(torch.cat([attention.query.bias, attention.key_value.bias]))
        reference_layer.self_attn.out_proj.load_state_dict(attention.output.state_dict())
        reference_layer.linear1.load_state_dict(block.feed_forward.inner.state_dict())
        reference_layer.linear2.load_state_dict(block.feed_forward.outer.state_dict())
        for i, residual in enumerate(block.residuals, 1):
            getattr(reference_layer, f"norm{i}").load_state_dict(residual.norm.state_dict())
    future = nn.Transformer.generate_square_subsequent_mask(8)
    expected = model.output(model.decoder_norm(reference(model.embedding(ids), mask=future, is_causal=True)))
    torch.testing.assert_close(logits_of(model, ids), expected, rtol=0, atol=1e-5)
    with reference_mode():
        torch.testing.assert_close(logits_of(model, ids), expected, rtol=0, atol=1e-5)


def test_changing_a_later_token_changes_nothing_earlier(model, ids):
    for position in range(1, 8):
        changed = ids.clone()
        changed[:, position] = (changed[:, position] - 3) % 13 + 4
        before, after = logits_of(model, ids), logits_of(model, changed)
        torch.testing.assert_close(before[:, :position], after[:, :position], rtol=0, atol=1e-6)
        assert (before[:, position] - after[:, position]).abs().max() > 1e-3


@pytest.mark.parametrize("cuts", [[1] * 8, [8], [3, 5], [1, 6, 1], [2, 2, 2, 2]])
def test_reading_in_pieces_equals_one_pass(model, ids, cuts):
    state, logits = model.begin(2, ids.device), []
    for piece in ids.split(cuts, 1):
        reading, state = model.read_on(piece, state)
        logits.append(model.output(reading.features))
    torch.testing.assert_close(torch.cat(logits, 1), logits_of(model, ids), rtol=0, atol=1e-5)


def test_beyond_its_window_the_model_keeps_the_last_half(model):
    ids = torch.randint(4, V, (2, 19), generator=torch.Generator().manual_seed(3))
    state, logits = model.begin(2, ids.device), []
    for token in ids.unbind(1):
        features, state = model.advance(token, state)
        assert state.ids.size(1) <= 8
        logits.append(model.output(features))
    for position, start in [(7, 0), (8, 4), (11, 4), (12, 8), (15, 8), (16, 12), (18, 12)]:
        expected = logits_of(model, ids[:, start : position + 1])[:, -1]
        torch.testing.assert_close(logits[position], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("context", [8, 2, 64])
def test_the_evaluation_window_slides_by_half_its_length(context):
    """Each token is predicted once, with the same context as in step-by-step generation."""
    model = model_of(context=context)
    ids = torch.randint(4, V, (1, 30), generator=torch.Generator().manual_seed(4))
    assert stride(model, 999) == context // 2
    pairs = zip(ids[:, :-1].split(context // 2, 1), ids[:, 1:].split(context // 2, 1), strict=True)
    windows = [Batch(empty_source(1), *pair) for pair in pairs]
    window_features = [features for features, _ in readings(model, windows)]
    state, step_features = model.begin(1, ids.device), []
    for token in ids[:, :-1].unbind(1):
        features, state = model.advance(token, state)
        step_features.append(features)
    torch.testing.assert_close(torch.cat(window_features, 1)[0], torch.cat(step_features), rtol=0, atol=1e-5)


@torch.no_grad()
def test_rows_of_a_long_text_are_measured_token_by_token(model):
    text = torch.randint(4, V, (700,), generator=torch.Generator().manual_seed(5)).numpy()
    encoded = EncodedTexts(text, Size(1, 1, 1))
    (result,) = score_texts(model, encoded, 999, torch.device("cpu"))
    expected_nats, token_count, correct = 0.0, 0, 0
    stream = Stream(encoded, 32, 10_000)
    (batch,) = [stream.batch(stream.equal_windows(), 0)]
    state = model.begin(32, torch.device("cpu"))
    for token, label in zip(batch.targets_in.unbind(1), batch.labels.unbind(1), strict=True):
        features, state = model.advance(token, state)
        logits = model.output(features)
        log_probs = logits.log_softmax(-1).gather(1, label[:, None])[:, 0]
        expected_nats -= float(log_probs[label != 0].sum())
        correct += int((logits.argmax(-1) == label)[label != 0].sum())
        token_count += int((label != 0).sum())
    assert (result.tokens, token_count) == (700, 700)
    assert result.correct == correct
    assert result.nats == pytest.approx(expected_nats, rel=1e-5)


def test_nothing_is_carried_while_training(model, ids):
    loss_of = StreamLoss(model.train())
    window = Batch(empty_source(2), ids[:, :-1], ids[:, 1:])
    model.eval()
    losses = [loss_of(window).cross_entropy for _ in range(2)]
    assert losses[0] == losses[1] and loss_of.state_tensors() == {}


def test_invalid_sizes_are_refused():
    with pytest.raises(UserError, match=r"model\.context=300 is more than training\.window=128"):
        resolve(preset="lm-transformer", assignments=["model.context=300"])
    with pytest.raises(UserError, match="heads=5 do not divide"):
        resolve(preset="lm-transformer", assignments=["model.heads=5"])
