"""Invariants of every model of every kind."""

import pytest
import torch

from translucid.attention.points import recording_weights
from translucid.captions.options import CaptionerOptions, CaptioningTransformerOptions, ImageEncoderOptions
from translucid.decoding.search import RestrictedVocabulary
from translucid.ground.special import SPECIAL
from translucid.kernels.dropout import Dropout
from translucid.language.options import BiLSTMLanguageOptions, LSTMLanguageOptions, TransformerLanguageOptions
from translucid.layers.recurrent import Recurrence
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

V = 23


TRANSFORMER = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 3, "max_length": 64}
OPTIONS = {
    f"transformer {norm} {positions}": TransformerOptions(**TRANSFORMER, norm=norm, positions=positions)
    for norm, positions in (("pre", "sinusoidal"), ("post", "learned"), ("pre", "none"))
}
OPTIONS["transformer ssru"] = TransformerOptions(**TRANSFORMER, decoder="ssru")
OPTIONS |= {
    f"recurrent {attention} {overrides}": RecurrentOptions(width=16, attention=attention, **overrides)
    for attention, overrides in [
        ("none", {}),
        ("none", {"layers": 3, "cell": "gru", "bidirectional": False, "first_state": "last"}),
        ("bahdanau", {"cell": "gru"}),
        ("bahdanau", {"layers": 2}),
        ("luong-dot", {}),
        ("luong-scaled-dot", {"layers": 2, "bidirectional": False}),
        ("luong-general", {"cell": "gru", "first_state": "mean", "combine_bias": True}),
        ("luong-concat", {}),
        ("luong-general", {"window": 2}),
        ("luong-general", {"input_feeding": True, "layers": 2}),
        ("luong-dot", {"input_feeding": True, "window": 1, "cell": "gru"}),
    ]
}
ELMO = BiLSTMLanguageOptions(width=6, hidden=9, layers=2)
OPTIONS["transformer told by elmo"] = TransformerOptions(**TRANSFORMER, elmo=ELMO)
OPTIONS["recurrent told by elmo"] = RecurrentOptions(width=16, elmo=ELMO, elmo_tuned=True)
OPTIONS["attention-only"] = AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=3)
IMAGE_ENCODER = ImageEncoderOptions(size=32, stride=16, channels=4)
OPTIONS |= {
    f"captioner {attention} {overrides}": CaptionerOptions(
        width=16, image_encoder=IMAGE_ENCODER, attention=attention, **overrides
    )
    for attention, overrides in [
        ("soft", {}),
        ("soft", {"gate": False, "positions": "learned", "tie_output": True}),
        ("soft", {"doubly_stochastic": 0.0, "positions": "none"}),
        ("soft", {"order": "read-first", "hidden": 5}),
        ("hard", {}),
        ("hard", {"order": "read-first"}),
        ("none", {}),
    ]
}
OPTIONS |= {
    f"captioning-transformer {norm}": CaptioningTransformerOptions(
        width=16,
        heads=2,
        feed_forward=24,
        encoder_layers=layers,
        decoder_layers=3,
        norm=norm,
        image_encoder=IMAGE_ENCODER,
    )
    for norm, layers in (("pre", 2), ("post", 2))
}
OPTIONS["captioning-transformer ssru"] = OPTIONS["captioning-transformer pre"].model_copy(update={"decoder": "ssru"})
OPTIONS |= {
    f"language-lstm {overrides}": LSTMLanguageOptions(width=16, hidden=12, **overrides)
    for overrides in ({}, {"layers": 3, "tie_output": False}, {"layers": 1})
}
OPTIONS |= {
    f"language-transformer {norm}": TransformerLanguageOptions(width=16, heads=2, feed_forward=24, layers=3, norm=norm)
    for norm in ("pre", "post")
}


DROPPING = [
    *("transformer pre sinusoidal", "transformer post learned", "transformer ssru", "recurrent told by elmo"),
    *(
        "recurrent bahdanau {'layers': 2}",
        "captioner soft {}",
        "captioning-transformer post",
        "language-transformer pre",
    ),
]
"""One model for each place of a dropout."""


@pytest.fixture(params=OPTIONS)
def options(request):
    return OPTIONS[request.param]


@pytest.fixture
def model(options):
    torch.manual_seed(5)
    return build_model(options, V, V).eval()


@pytest.fixture
def source(options):
    if options.reads == "images":
        return torch.randint(256, (3, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(6))
    return torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0], [11, 3, 0, 0, 0]])


@pytest.fixture
def targets():
    return torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10], [2, 11, 12, 13]])


def test_special_tokens_are_those_of_the_tokenizer(model):
    assert (model.pad, model.bos, model.eos) == (SPECIAL.pad, SPECIAL.start, SPECIAL.end)


def test_step_by_step_gives_the_logits_of_all_at_once(model, source, targets):
    memory = model.encode(source)
    expected = model.decode(memory, targets)
    assert expected.shape == (3, 4, V)
    state = model.start(memory)
    for t in range(4):
        logits, state = model.step(targets[:, t], state)
        torch.testing.assert_close(logits, expected[:, t], rtol=0, atol=1e-5)


def test_a_prefix_at_once_gives_the_state_of_its_steps(model, source, targets):
    memory = model.encode(source)
    features, state = model.resume(memory, targets[:, :3])
    torch.testing.assert_close(features, model.features(memory, targets[:, :3]), rtol=0, atol=1e-5)
    logits, _ = model.step(targets[:, 3], state)
    torch.testing.assert_close(logits, model.decode(memory, targets)[:, 3], rtol=0, atol=1e-5)


def test_some_pieces_have_the_logits_that_they_have_among_all(model, source, targets):
    pieces = torch.tensor([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20])
    full, narrowed = model.decode(model.encode(source), targets), RestrictedVocabulary(model, pieces)
    narrowed_targets = torch.searchsorted(pieces, targets)
    memory = narrowed.encode(source)
    assert torch.equal(narrowed.decode(memory, narrowed_targets), full[..., pieces])
    state = narrowed.start(memory)
    for t in range(4):
        logits, state = narrowed.step(narrowed_targets[:, t], state)
        torch.testing.assert_close(logits, full[:, t, pieces], rtol=0, atol=1e-5)


def test_a_state_is_a_value(model, source, targets):
    _, state = model.step(targets[:, 0], model.start(model.encode(source)))
    first, _ = model.step(targets[:, 1], state)
    model.step(targets[:, 2], state)
    second, _ = model.step(targets[:, 1], state)
    assert torch.equal(first, second)


def test_rows_can_be_repeated_reordered_and_dropped(model, source, targets):
    rows = torch.tensor([2, 0, 0])
    _, state = model.step(targets[:, 0], model.start(model.encode(source)))
    full, _ = model.step(targets[:, 1], state)
    selected, _ = model.step(targets[rows, 1], state.select(rows))
    torch.testing.assert_close(selected, full[rows], rtol=0, atol=1e-5)
    memory = model.encode(source)
    torch.testing.assert_close(
        model.decode(memory.select(rows), targets[rows]), model.decode(memory, targets)[rows], rtol=0, atol=1e-5
    )


def single_source(model, source, row):
    """Return one source of a batch without its padding."""
    single = source[row : row + 1]
    return single if model.options.reads == "images" else single[:, single[0] != 0]


def test_a_source_is_read_the_same_alone_and_in_a_batch(model, source):
    batched = model.encode(source)
    for row in range(3):
        alone = model.encode(single_source(model, source, row))
        length = alone.states.size(1)
        atol = 1e-5 if model.options.reads == "images" else 1e-6  # convolutions sum in another order in a batch
        torch.testing.assert_close(batched.states[row, :length], alone.states[0], rtol=0, atol=atol)


def test_padding_changes_nothing(model, source, targets):
    batched = model(source, targets)
    for row in range(3):
        alone = single_source(model, source, row)
        torch.testing.assert_close(model(alone, targets[row : row + 1])[0], batched[row], rtol=0, atol=1e-5)


def test_the_past_does_not_see_the_future(model, source, targets):
    changed = targets.clone()
    changed[:, 2:] = 20
    before, after = model(source, targets), model(source, changed)
    torch.testing.assert_close(before[:, :2], after[:, :2], rtol=0, atol=1e-6)
    assert not torch.allclose(before[:, 2:], after[:, 2:])


def test_maps_are_weights_and_asking_for_them_changes_nothing(model, source, targets):
    with recording_weights(model) as maps:
        logits = model.decode(model.encode(source), targets)
    torch.testing.assert_close(logits, model(source, targets), rtol=0, atol=1e-5)
    windowed = bool(getattr(model.options, "window", None))
    source_length = model.source_mask(source).size(1)
    assert source_length == (4 if model.options.reads == "images" else 5)
    for name, weights in maps.items():
        side, _, kind = name.split(".")
        rows = source_length if side == "encoder" else 4
        assert weights.shape[0] == 3
        assert weights.shape[2:] == (rows, source_length if kind == "cross" or side == "encoder" else 4), name
        if windowed:
            assert ((weights.sum(-1) > 0) & (weights.sum(-1) < 1 + 1e-6)).all()
        else:
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        if side == "encoder" or kind == "cross":
            padding = ~model.source_mask(source)[1]
            assert not weights[1][..., padding].any(), "padding is looked at"
        else:
            assert torch.equal(weights.triu(1), torch.zeros_like(weights)), "the future is looked at"
    layers = 1 if model.options.kind in ("recurrent", "captioner") else 3
    no_source_attention = getattr(model.options, "attention", "") == "none" or model.options.reads == "running text"
    expected = 0 if no_source_attention else layers
    assert sum(name.endswith(".cross") for name in maps) == expected


def test_gradients_are_finite_and_reach_every_weight(model, source, targets):
    model.train()
    model(source, targets).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def dropouts(model):
    """Return the probability of each dropout, by the names of the modules."""
    rates = {name: part.p for name, part in model.named_modules() if isinstance(part, Dropout)}
    recurrences = {name: part for name, part in model.named_modules() if isinstance(part, Recurrence)}
    assert all(part.rnn.dropout == part.dropout for part in recurrences.values())
    return rates | {name: part.dropout for name, part in recurrences.items() if part.dropout}


def promised_dropouts(options):
    """Return what the docstrings of `dropout` in `models/model_options.py` say, by the names of the modules."""
    if options.kind == "language-transformer":
        names = [f"decoder.{i}.residuals.{part}.dropout" for i in range(3) for part in range(2)]
        return dict.fromkeys(["embedding.dropout", *names], options.dropout)
    source = "source_embedding.embedding" if getattr(options, "elmo", None) else "source_embedding"
    names = [f"{source}.dropout", "target_embedding.dropout"]
    if options.kind.endswith("transformer"):
        names += [f"encoder.{i}.residuals.{part}.dropout" for i in range(2) for part in range(2)]
        names += [f"decoder.{i}.residuals.{part}.dropout" for i in range(3) for part in range(3)]
    if options.kind == "captioner":
        names.append("dropout")
    if options.kind == "recurrent":
        names += ["dropout", *(["encoder.recurrence", "decoder.recurrence"] if options.layers > 1 else [])]
    return dict.fromkeys(names, options.dropout)


def test_dropout_is_where_the_options_say(options):
    if options.kind == "language-lstm":
        pytest.skip("its dropouts are functions, whose masks tests/language/test_lstm.py samples")
    changed = options.model_copy(update={"dropout": 0.3})
    assert dropouts(build_model(changed, V, V)) == promised_dropouts(changed)
    assert not any(dropouts(build_model(options.model_copy(update={"dropout": 0.0}), V, V)).values())


def drop_in(model, names):
    """Let the modules with these names drop half, and all others nothing."""
    for name, part in model.named_modules():
        rate = 0.5 if name in names else 0.0
        if isinstance(part, Dropout):
            part.p = rate
        if isinstance(part, Recurrence):
            part.dropout = part.rnn.dropout = rate


@pytest.mark.parametrize("options", [OPTIONS[name] for name in DROPPING], ids=DROPPING)
def test_every_dropout_drops_while_training_and_only_then(model, source, targets):
    """Each one alone changes the logits with each call, all at once and step by step."""

    def all_at_once():
        return model(source, targets)

    def step_by_step():
        state = model.start(model.encode(source))
        for t in range(2):
            logits, state = model.step(targets[:, t], state)
        return logits

    model.train()
    for dropout_name in promised_dropouts(model.options):
        drop_in(model, {dropout_name})
        for logits in (all_at_once, step_by_step):
            assert not torch.equal(logits(), logits()), f"{dropout_name} drops nothing"
    drop_in(model, {name for name, _ in model.named_modules()})
    model.eval()
    for logits in (all_at_once, step_by_step):
        assert torch.equal(logits(), logits()), "something is dropped while translating"
