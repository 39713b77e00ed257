"""From a sentence to equation 1 in three lines; the equation is done again in float64 by NumPy."""

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


def exactly(tensor):
    return tensor.double().numpy()


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def translation(small_run):
    return Translator.load(small_run, "cpu").translate(TEXT)


@pytest.mark.parametrize("name", ["decoder.0.cross", "decoder.0.self", "encoder.0.self"])
@pytest.mark.parametrize("head", [0, 1])
def test_equation_1_with_the_numbers_of_the_model(translation, name, head):
    one = translation.equation(name, head)
    query, key, value = map(exactly, (one.query, one.key, one.value))
    assert query.shape[1] == 8  # width 16, two heads
    weights = softmax(query @ key.T / np.sqrt(8), one.mask.numpy())
    close(weights, translation.attention[name][0, head].double().numpy())
    close(weights, exactly(one.weights))
    close(weights @ value, exactly(one.context))
    close(query @ key.T / np.sqrt(8), exactly(one.scores))


def test_without_a_name_it_is_where_the_last_layer_looks_at_the_source(translation):
    assert translation.equation().name == "decoder.0.cross"


def test_the_contexts_are_what_the_model_goes_on_with(translation):
    """The heads side by side are what the output projection of the attention is given."""
    model, (piece, found) = translation._translator.model, translation.parts[0]
    given = []
    hook = model.decoder[0].cross_attention.output.register_forward_pre_hook(lambda _, x: given.append(x[0]))
    with torch.inference_mode():
        model.decode(model.encode(torch.tensor([piece.ids])), torch.tensor([[model.bos, *found.tokens]]))
    hook.remove()
    heads = [translation.equation("decoder.0.cross", head).context for head in (0, 1)]
    close(exactly(torch.cat(heads, -1)), exactly(given[0][0]))


def test_the_pieces_are_named_and_the_past_is_what_was_fed(translation):
    seen = translation.inspected[0]
    cross, own = translation.equation("decoder.0.cross"), translation.equation("decoder.0.self")
    assert (cross.looks, cross.seen) == (seen.target, seen.source)
    assert own.looks == seen.target
    assert own.seen[1:] == seen.target[:-1]
    assert translation.equation("encoder.0.self").looks == seen.source
    assert own.mask.tolist() == np.tri(len(seen.target), dtype=bool).tolist()


def test_nothing_is_kept_on_the_model(translation):
    modules = list(translation._translator.model.modules())
    before = [set(vars(module)) for module in modules]
    translation.equation()
    assert [set(vars(module)) for module in modules] == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    assert not any(parameter.grad is not None for parameter in translation._translator.model.parameters())


def test_what_is_not_there_is_said(translation):
    with pytest.raises(UserError, match=r"no attention 'decoder.9.cross'.*decoder.0.cross"):
        translation.equation("decoder.9.cross")
    with pytest.raises(UserError, match="no head 2"):
        translation.equation(head=2)
    with pytest.raises(UserError, match="no part 1"):
        translation.equation(part=1)


def test_it_shows_itself(translation):
    shown = translation.equation()._repr_html_()
    assert "decoder.0.cross" in shown
    assert "query [" in shown


def built(preset, *more):
    torch.manual_seed(4)
    return build_model(resolve(preset=preset, assignments=[*SHAPE, *more]).model, 20, 20).eval()


def numbers(model, name):
    return exactly(dict(model.named_parameters())[name].detach())


SCORES = {
    "rnn-luong-dot": lambda model, h, y: h @ y.T,
    "rnn-luong-general": lambda model, h, y: h @ numbers(model, "decoder.score.weight.weight") @ y.T,
    "rnn-bahdanau": lambda model, h, y: (
        np.tanh(
            (h @ numbers(model, "decoder.score.query.weight").T + numbers(model, "decoder.score.query.bias"))[:, None]
            + (y @ numbers(model, "decoder.score.key.weight").T)[None]
        )
        @ numbers(model, "decoder.score.v")
    ),
}


@pytest.mark.parametrize("preset", SCORES)
def test_the_scores_of_recurrent_translators(preset):
    """The query is the state h, the values are the encoder's outputs y, and the scores those of the papers."""
    model = built(preset)
    one = equation(model, SOURCE, TARGET, "decoder.0.cross")
    h, y = exactly(one.query), exactly(one.value)
    close(exactly(model.encode(torch.tensor([SOURCE])).states[0].detach()), y)
    weights = softmax(SCORES[preset](model, h, y), True)
    close(weights, exactly(one.weights))
    close(weights @ y, exactly(one.context))
    close(SCORES[preset](model, h, y), exactly(one.scores))


def test_luongs_window(tmp_path):
    one = equation(built("rnn-luong-local", "model.window=1"), SOURCE, TARGET, "decoder.0.cross")
    assert not one.mask.all()
    assert not exactly(one.weights)[~one.mask.numpy()].any()
    close(exactly(one.weights) @ exactly(one.value), exactly(one.context))


@pytest.mark.parametrize("name", ["encoder.1.self", "decoder.5.cross", "decoder.0.self"])
def test_bare_attention_with_its_learned_scale(name):
    model = built("attention-only")
    one = equation(model, SOURCE, TARGET, name)
    side, layer, kind = name.split(".")
    stack = "encoder" if side == "encoder" else f"decoder_{kind}"
    scores = numbers(model, f"{stack}.{layer}.score.scale") * exactly(one.query) @ exactly(one.key).T
    weights = softmax(scores, one.mask.numpy())
    close(weights, exactly(one.weights))
    close(weights @ exactly(one.value), exactly(one.context))
