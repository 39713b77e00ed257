"""The attention equation of a translation, computed again in float64 by NumPy."""

import numpy as np
import pytest
import torch

from translucid import Translator, UserError
from translucid.inspection.equation import equation
from translucid.models.build import build_model
from translucid.runs.configuration import resolve

TEXT = "I like soccer"
SHAPE = ["model.width=12", "model.dropout=0.0"]
SOURCE, TARGET = [7, 9, 8, 3], [5, 6, 11, 10, 3]


def softmax(scores, mask):
    scores = np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def to_float64(tensor):
    return tensor.double().numpy()


def assert_near(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def translation(small_run):
    return Translator.load(small_run, "cpu").translate(TEXT)


@pytest.mark.parametrize("name", ["decoder.0.cross", "decoder.0.self", "encoder.0.self"])
@pytest.mark.parametrize("head", [0, 1])
def test_equation_1_with_the_numbers_of_the_model(translation, name, head):
    result = translation.equation(name, head)
    query, key, value = map(to_float64, (result.query, result.key, result.value))
    assert query.shape[1] == 8  # width 16, two heads
    weights = softmax(query @ key.T / np.sqrt(8), result.mask.numpy())
    assert_near(weights, translation.attention[name][0, head].double().numpy())
    assert_near(weights, to_float64(result.weights))
    assert_near(weights @ value, to_float64(result.context))
    assert_near(query @ key.T / np.sqrt(8), to_float64(result.scores))


def test_the_default_is_the_cross_attention_of_the_last_layer(translation):
    assert translation.equation().name == "decoder.0.cross"


def test_the_contexts_are_the_input_of_the_output_projection(translation):
    """The concatenated heads are the input of the attention's output projection."""
    model, (piece, hypothesis) = translation._translator.model, translation.parts[0]
    inputs = []
    hook = model.decoder[0].cross_attention.output.register_forward_pre_hook(lambda _, x: inputs.append(x[0]))
    with torch.inference_mode():
        model.decode(model.encode(torch.tensor([piece.ids])), torch.tensor([[model.bos, *hypothesis.tokens]]))
    hook.remove()
    heads = [translation.equation("decoder.0.cross", head).context for head in (0, 1)]
    assert_near(to_float64(torch.cat(heads, -1)), to_float64(inputs[0][0]))
    assert_near(to_float64(translation.equation("decoder.0.cross").context), to_float64(heads[0]))


def test_queries_and_keys_have_the_names_of_their_pieces(translation):
    inspected = translation.inspected[0]
    cross, self_attention = translation.equation("decoder.0.cross"), translation.equation("decoder.0.self")
    assert (cross.query_pieces, cross.key_pieces) == (inspected.target, inspected.source)
    assert self_attention.query_pieces == inspected.target
    assert self_attention.key_pieces[1:] == inspected.target[:-1]
    assert translation.equation("encoder.0.self").query_pieces == inspected.source
    assert self_attention.mask.tolist() == np.tri(len(inspected.target), dtype=bool).tolist()


def test_nothing_is_kept_on_the_model(translation):
    modules = list(translation._translator.model.modules())
    before = [set(vars(module)) for module in modules]
    translation.equation()
    assert [set(vars(module)) for module in modules] == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    assert not any(parameter.grad is not None for parameter in translation._translator.model.parameters())


def test_missing_attention_heads_and_parts_are_reported(translation):
    with pytest.raises(UserError, match=r"no attention 'decoder.9.cross'.*decoder.0.cross"):
        translation.equation("decoder.9.cross")
    with pytest.raises(UserError, match="no head 2"):
        translation.equation(head=2)
    with pytest.raises(UserError, match="no part 1"):
        translation.equation(part=1)


def test_an_equation_has_a_short_text_and_small_heat_maps(translation):
    terms = translation.equation()
    queries, keys = terms.scores.shape
    assert len(repr(terms)) < 250 and repr(terms).startswith("Equation('decoder.0.cross', head 0: query [")
    html = terms._repr_html_()
    assert "decoder.0.cross" in html and html.count("<table") == 6 and f"weights {[queries, keys]}" in html
    assert f"title='{terms.weights[0, 0]:.3f}'" in html and f"title='{terms.value[0, 0]:.3f}'" in html
    cells = sum(tensor.numel() for tensor in terms._tensors().values())
    assert html.count("<td style=") == cells


def build(preset, *assignments):
    torch.manual_seed(4)
    return build_model(resolve(preset=preset, assignments=[*SHAPE, *assignments]).model, 20, 20).eval()


def parameter_values(model, name):
    return to_float64(dict(model.named_parameters())[name].detach())


SCORES = {
    "rnn-luong-dot": lambda model, h, y: h @ y.T,
    "rnn-luong-general": lambda model, h, y: h @ parameter_values(model, "decoder.score.weight.weight") @ y.T,
    "rnn-bahdanau": lambda model, h, y: (
        np.tanh(
            (
                h @ parameter_values(model, "decoder.score.query.weight").T
                + parameter_values(model, "decoder.score.query.bias")
            )[:, None]
            + (y @ parameter_values(model, "decoder.score.key.weight").T)[None]
        )
        @ parameter_values(model, "decoder.score.v")
    ),
}


@pytest.mark.parametrize("preset", SCORES)
def test_the_scores_of_recurrent_translators(preset):
    """The query is the state h, the values are the encoder's outputs y, and the scores are those of the papers."""
    model = build(preset)
    result = equation(model, SOURCE, TARGET, "decoder.0.cross")
    h, y = to_float64(result.query), to_float64(result.value)
    assert_near(to_float64(model.encode(torch.tensor([SOURCE])).states[0].detach()), y)
    weights = softmax(SCORES[preset](model, h, y), True)
    assert_near(weights, to_float64(result.weights))
    assert_near(weights @ y, to_float64(result.context))
    assert_near(SCORES[preset](model, h, y), to_float64(result.scores))


def test_luongs_window():
    result = equation(build("rnn-luong-local", "model.window=1"), SOURCE, TARGET, "decoder.0.cross")
    assert not result.mask.all()
    assert not to_float64(result.weights)[~result.mask.numpy()].any()
    assert_near(to_float64(result.weights) @ to_float64(result.value), to_float64(result.context))


@pytest.mark.parametrize("name", ["encoder.1.self", "decoder.5.cross", "decoder.0.self"])
def test_bare_attention_with_its_learned_scale(name):
    model = build("attention-only")
    result = equation(model, SOURCE, TARGET, name)
    side, layer, kind = name.split(".")
    stack = "encoder" if side == "encoder" else f"decoder_{kind}"
    scores = (
        parameter_values(model, f"{stack}.{layer}.score.scale") * to_float64(result.query) @ to_float64(result.key).T
    )
    weights = softmax(scores, result.mask.numpy())
    assert_near(weights, to_float64(result.weights))
    assert_near(weights @ to_float64(result.value), to_float64(result.context))
