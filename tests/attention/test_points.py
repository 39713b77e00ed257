"""Reading and replacing named quantities of a model while it runs."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

from translucid.attention.points import at_positions, handling, points_of, recording, recording_weights
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.ground.errors import UserError
from translucid.models.attention_only import AttentionOnly
from translucid.models.ensemble import Ensemble
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer

V = 30
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGETS = torch.tensor([[2, 11, 12, 13], [2, 14, 15, 16]])
KINDS = {
    "pre-norm": (
        Transformer,
        TransformerOptions(width=16, heads=4, feed_forward=24, encoder_layers=2, decoder_layers=2),
    ),
    "post-norm": (Transformer, TransformerOptions(width=16, heads=2, encoder_layers=1, decoder_layers=2, norm="post")),
    "ssru": (Transformer, TransformerOptions(width=16, heads=2, encoder_layers=1, decoder_layers=2, decoder="ssru")),
    "attention-only": (AttentionOnly, AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=2)),
    "bahdanau": (RecurrentModel, RecurrentOptions(width=16, attention="bahdanau")),
    "luong": (RecurrentModel, RecurrentOptions(width=16, attention="luong-general")),
    "input feeding": (RecurrentModel, RecurrentOptions(width=16, attention="luong-dot", input_feeding=True)),
    "no attention": (RecurrentModel, RecurrentOptions(width=16, attention="none")),
}


@pytest.fixture(params=KINDS)
def model(request):
    torch.manual_seed(1)
    kind, options = KINDS[request.param]
    model = kind(V, V, options).eval()
    for parameter in model.parameters():  # biases too, which start at zero
        parameter.data.normal_(std=0.4)
    return model


@pytest.fixture
def transformer():
    torch.manual_seed(1)
    kind, options = KINDS["pre-norm"]
    return kind(V, V, options).eval()


def step_by_step(model, source, targets):
    """Return the logits of all positions, one position at a time."""
    state, logits = model.start(model.encode(source)), []
    for tokens in targets.unbind(1):
        step, state = model.step(tokens, state)
        logits.append(step)
    return torch.stack(logits, 1)


def test_reading_changes_nothing_and_all_points_are_reached(model):
    with recording(model, list(points_of(model))) as record:
        logits = model(SOURCE, TARGETS)
    assert_close(logits, model(SOURCE, TARGETS), rtol=1e-4, atol=1e-4)
    assert set(record) == set(points_of(model))
    for name, x in record.items():
        side, _, _ = name.partition(".")
        positions = SOURCE.size(1) if side == "encoder" else TARGETS.size(1)
        keys = name.endswith((".keys", ".values"))
        if keys and ".cross." in name:
            positions = SOURCE.size(1)
        assert (x.size(0), x.size(-2)) == (2, positions), name
    assert torch.equal(model.output(record["decoder.output"]), logits)
    assert_close(record["encoder.output"], model.encode(SOURCE).states, rtol=1e-4, atol=1e-5)


def test_quantities_step_by_step_are_those_of_teacher_forcing(model):
    names = [name for name in points_of(model) if name.startswith("decoder.")]
    names = [name for name in names if not name.endswith((".keys", ".values"))]  # these hold all positions at each step
    with recording(model, names) as teacher_forced:
        model(SOURCE, TARGETS)
    with recording(model, names) as steps:
        step_by_step(model, SOURCE, TARGETS)
    for name in names:
        assert_close(steps[name], teacher_forced[name], rtol=1e-4, atol=1e-5)


def test_a_replaced_position_is_the_same_in_both_kinds_of_decoding(model):
    for name in points_of(model):
        # Keys and values come from other positions; rows of weights are longer in teacher-forced decoding.
        if name.endswith((".keys", ".values", ".self.weights")) or not name.startswith("decoder."):
            continue
        handlers = {name: at_positions([1, 2], lambda x, first: x.roll(1, -1))}
        with handling(model, handlers):
            teacher_forced, steps = model(SOURCE, TARGETS), step_by_step(model, SOURCE, TARGETS)
        assert_close(teacher_forced, steps, rtol=1e-4, atol=1e-4)
        plain = model(SOURCE, TARGETS)
        assert_close(teacher_forced[:, 0], plain[:, 0], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(teacher_forced[:, 1], plain[:, 1], atol=1e-4), name


def test_half_of_the_weights_is_half_of_the_context(model):
    names = [name for name in points_of(model) if name.endswith("cross.weights")]
    for name in names:
        context = name.replace("weights", "heads")
        if context not in points_of(model):
            continue
        with recording(model, [context]) as record:
            model(SOURCE, TARGETS)
        with handling(model, {name: lambda x, first: x / 2}), recording(model, [context]) as halved:
            model(SOURCE, TARGETS)
        assert_close(halved[context], record[context] / 2, rtol=1e-4, atol=1e-5)


def test_a_head_without_output_is_one_without_its_columns(transformer):
    layer = transformer.decoder[1].cross_attention
    with handling(transformer, {"decoder.1.cross.head.2": lambda x, first: 0 * x}):
        without_output = transformer(SOURCE, TARGETS)
        steps = step_by_step(transformer, SOURCE, TARGETS)
    with handling(transformer, {"decoder.1.cross.head.2": lambda x, first: 1 * x}):
        assert torch.equal(transformer(SOURCE, TARGETS), unchanged := transformer(SOURCE, TARGETS))
    assert torch.equal(unchanged, transformer(SOURCE, TARGETS))
    layer.output.weight.data[:, 8:12] = 0
    assert_close(without_output, transformer(SOURCE, TARGETS), rtol=1e-5, atol=1e-5)
    assert_close(steps, without_output, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(without_output, unchanged, atol=1e-3)


def test_beam_search_uses_replaced_states(transformer):
    sentences = [[5, 6, 7, 8, 3], [9, 10, 3]]
    options = DecodingOptions(beam=3)
    plain = TorchEngine(transformer).decode(SearchRequest(sentences, options))

    def flip(x, first):
        return x.flip(-1)

    with handling(transformer, {"decoder.0.output": flip}):
        changed = TorchEngine(transformer).decode(SearchRequest(sentences, options))
        ids = [pair[0].tokens for pair in changed]
        with torch.inference_mode():
            logits = transformer(torch.tensor(sentences[:1]), torch.tensor([[2, *ids[0]]]))
    total = logits[0].log_softmax(-1)[range(len(ids[0]) + 1), [*ids[0], 3]].sum().item()
    assert changed[0][0].log_probability == pytest.approx(total, abs=1e-3)
    assert [pair[0].tokens for pair in plain] != ids


def test_several_handlers_apply_from_outside_to_inside(transformer):
    name = "encoder.0.output"
    with (
        handling(transformer, {name: lambda x, first: x + 1}),
        recording(transformer, [name]) as record,
        handling(transformer, {name: lambda x, first: 2 * x}),
        recording(transformer, [name]) as doubled,
    ):
        transformer.encode(SOURCE)
    with recording(transformer, [name]) as plain:
        transformer.encode(SOURCE)
    assert_close(record[name], plain[name] + 1)
    assert_close(doubled[name], 2 * (plain[name] + 1))


def test_gradients_reach_what_replaces(transformer):
    gate = torch.ones(4, requires_grad=True)
    with handling(transformer, {"encoder.1.self.heads": lambda x, first: x * gate[:, None, None]}):
        transformer(SOURCE, TARGETS).square().sum().backward()
    numerical = []
    for head in range(4):
        sums = []
        for step in (-1e-2, 1e-2):
            factors = torch.ones(4)
            factors[head] += step
            with handling(transformer, {"encoder.1.self.heads": lambda x, first, f=factors: x * f[:, None, None]}):
                sums.append(transformer(SOURCE, TARGETS).square().sum().item())
        numerical.append((sums[1] - sums[0]) / 2e-2)
    assert_close(gate.grad, torch.tensor(numerical), rtol=5e-2, atol=5e-2)


def test_names_that_do_not_exist_are_refused(transformer):
    unknown = recording(transformer, ["encoder.0.ouput"])
    with pytest.raises(UserError, match=r"no point 'encoder.0.ouput'. Did you mean 'encoder.0.output'"), unknown:
        pass
    fifth = handling(transformer, {"encoder.0.self.head.4": lambda x, first: x})
    with pytest.raises(UserError, match=r"no head 'encoder.0.self.head.4'. Choose one of 0 to 3"), fifth:
        transformer.encode(SOURCE)


def test_handlers_apply_only_within_the_context(transformer):
    with pytest.raises(ZeroDivisionError), handling(transformer, {"encoder.0.output": lambda x, first: x * 0}):
        raise ZeroDivisionError
    assert transformer.encode(SOURCE).states.any()


def test_the_points_of_an_ensemble_are_those_of_the_first_model(transformer):
    torch.manual_seed(2)
    kind, options = KINDS["pre-norm"]
    second = kind(V, V, options).eval()
    with recording_weights(Ensemble([transformer, second])) as maps:
        Ensemble([transformer, second])(SOURCE, TARGETS)
    with recording_weights(transformer) as first:
        transformer(SOURCE, TARGETS)
    for name, weights in first.items():
        assert torch.equal(maps[name], weights)


def test_another_thread_reads_and_replaces_nothing(transformer):
    plain = transformer.encode(SOURCE).states
    with handling(transformer, {"encoder.output": lambda x, first: 0 * x}), ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(lambda: transformer.encode(SOURCE).states).result()
        here = transformer.encode(SOURCE).states
    assert torch.equal(elsewhere, plain)
    assert not here.any()
