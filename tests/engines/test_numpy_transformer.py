"""The NumPy transformer computes the same attention and states as PyTorch."""

import numpy as np
import pytest
import torch

from translucid.decoding.maps import AlignmentLayer, forced_features, forced_pass
from translucid.engines.ctranslate2.convert import weights_of
from translucid.engines.numpy_transformer import NumPyTransformer
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.inspection.forced_decoding import inspecting_pass
from translucid.inspection.inspected import Inspected
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

SOURCE, TARGET = [5, 9, 4, 17, 3], [8, 6, 6, 12, 19, 3]


def model_of(**changes):
    torch.manual_seed(2)
    shape = {"width": 12, "heads": 3, "feed_forward": 20, "encoder_layers": 2, "decoder_layers": 2}
    model = build_model(TransformerOptions(**shape | changes), 20, 20).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post", "nonlinearity": "gelu", "positions": "sinusoidal-halves", "zero_start": True},
        {"nonlinearity": "swish", "positions": "learned", "max_length": 9, "scale_embeddings": False},
        {
            "tie_output": False,
            "share_embeddings": False,
            "positions": "none",
            "norm": "post-final",
            "source_end": False,
        },
    ],
    ids=str,
)
def test_attention_and_alignment_layer_are_those_of_pytorch(changes):
    model, layer = model_of(**changes), AlignmentLayer(12, 12)
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    with torch.no_grad():
        expected = forced_pass(model, source, target, layer=layer)
        memory = model.encode(source)
        features = forced_features(model, memory, target)[0]
    transformer = NumPyTransformer(weights_of(model))
    pair = transformer.forced(SOURCE, TARGET)
    for number, weights in enumerate(pair.cross):
        np.testing.assert_allclose(weights, expected.maps[f"decoder.{number}.cross"][0], atol=1e-5)
    read = memory.mask[0].sum()  # without the end token, if the model reads none
    np.testing.assert_allclose(pair.states[:read], memory.states[0, :read], atol=1e-4)
    np.testing.assert_allclose(pair.features, features, atol=1e-4)
    norms = inspecting_pass(model, source, target, with_contributions=True)[1].of_sentence(0, slice(5), 6)
    first, second = "decoder.0.cross", "decoder.1.cross"
    for names, number, head in [([first, second], None, None), ([first], 0, None), ([second], 1, 2)]:
        expected_norms = norms.cross(names, number, head, "norms")
        head_weights = transformer.weights(pair, AlignmentOptions(layer=number, head=head, method="norms"))
        np.testing.assert_allclose(head_weights, expected_norms, atol=1e-5)
    arrays = {name: weight.numpy() for name, weight in layer.state_dict().items()}
    np.testing.assert_allclose(transformer.aligned(pair, TARGET, arrays), expected.links[0], atol=1e-5)


def test_the_options_choose_a_layer_and_a_head():
    model = model_of()
    transformer = NumPyTransformer(weights_of(model))
    pair = transformer.forced(SOURCE, TARGET)
    maps = {f"decoder.{layer}.cross": torch.tensor(weights) for layer, weights in enumerate(pair.cross)}
    inspected = Inspected([""] * 5, [""] * 6, maps, [])
    for layer, head, shift in [(None, None, False), (1, None, True), (0, 2, False), (None, 1, False)]:
        weights = transformer.weights(pair, AlignmentOptions(layer=layer, head=head, shift=shift))
        np.testing.assert_allclose(weights, inspected.cross(layer, head, shift=shift), atol=1e-6)
    with pytest.raises(UserError, match="no layer 2"):
        transformer.weights(pair, AlignmentOptions(layer=2))
