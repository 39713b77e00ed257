"""Memory limits, image network shapes and decoder states."""

import pytest
import torch

from translucid.captions.image_encoder import EfficientNetLite0, SmallNetwork
from translucid.ground.errors import UserError
from translucid.language.options import BiLSTMLanguageOptions, LSTMLanguageOptions, TransformerLanguageOptions
from translucid.models import build
from translucid.models.build import build_model, meta_model, refuse_too_large
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

SMALL = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)


def test_a_model_may_fill_the_memory_and_not_more(monkeypatch):
    model = meta_model(SMALL, 10, 10)
    size = 4 * sum(weight.numel() for weight in model.parameters())
    for memory in (size, 0):  # 0 is unknown
        monkeypatch.setattr(build, "physical_memory", lambda memory=memory: memory)
        refuse_too_large(model)
    monkeypatch.setattr(build, "physical_memory", lambda: size - 1)
    with pytest.raises(UserError, match="the model has 0 million weights, which take 0 GiB; this machine has 0 GiB"):
        refuse_too_large(model)
    large = meta_model(SMALL.model_copy(update={"width": 1024}), 2**20, 2**20)
    monkeypatch.setattr(build, "physical_memory", lambda: 2**31)
    with pytest.raises(UserError, match=r"1,087 million weights, which take 4 GiB; this machine has 2 GiB"):
        refuse_too_large(large)


def test_efficientnet_lite0_has_the_convolutions_of_its_table():
    """Blocks of (expansion, kernel, stride, channels): its paper's table 1, without squeeze-and-excitation."""
    blocks = [(1, 3, 1, 16)]
    for count, kernel, stride, channels in (
        (2, 3, 2, 24),
        (2, 5, 2, 40),
        (3, 3, 2, 80),
        (3, 5, 1, 112),
        (4, 5, 2, 192),
    ):
        blocks += [(6, kernel, stride, channels), *[(6, kernel, 1, channels)] * (count - 1)]
    blocks.append((6, 3, 1, 320))
    shapes, strides, width = [(32, 3, 3, 3)], [2], 32
    for expansion, kernel, stride, channels in blocks:
        inner = expansion * width
        if expansion > 1:
            shapes.append((inner, width, 1, 1))
            strides.append(1)
        shapes += [(inner, 1, kernel, kernel), (channels, inner, 1, 1)]
        strides += [stride, 1]
        width = channels
    shapes.append((1280, 320, 1, 1))
    strides.append(1)
    convolutions = [module for module in EfficientNetLite0(32).modules() if isinstance(module, torch.nn.Conv2d)]
    assert [tuple(convolution.weight.shape) for convolution in convolutions] == shapes
    assert [convolution.stride for convolution in convolutions] == [(stride, stride) for stride in strides]


@pytest.mark.parametrize("stride", [8, 16, 32])
def test_the_small_network_has_cells_of_its_stride(stride):
    network = SmallNetwork(4, stride)
    grid = network(torch.zeros(1, 3, 64, 96, dtype=torch.uint8))
    assert grid.shape == (1, network.width, 64 // stride, 96 // stride) and network.width == 32


@pytest.mark.parametrize(
    "options",
    [
        SMALL,
        AttentionOnlyOptions(width=8),
        RecurrentOptions(width=8, attention="none"),
        RecurrentOptions(width=8, attention="bahdanau"),
        RecurrentOptions(width=8, attention="luong-general", input_feeding=True),
    ],
    ids=lambda options: f"{options.kind} {getattr(options, 'attention', '')}",
)
def test_a_state_counts_its_tokens_and_selects_rows(options):
    model = build_model(options, 10, 10).eval()
    source = torch.tensor([[4, 5, 3], [6, 3, 0], [7, 8, 3]])
    state = model.start(model.encode(source))
    assert state.length == 0
    for count in (1, 2):
        _, state = model.advance(torch.tensor([2, 4, 5]), state)
        assert state.length == count
    selected = state.select(torch.tensor([2, 0, 0]))
    assert selected.length == 2
    expected, _ = model.advance(torch.tensor([2, 4, 5]), state)
    features, after = model.advance(torch.tensor([2]), selected.select(torch.tensor([1])))
    torch.testing.assert_close(features, expected[:1])
    assert after.length == 3


@pytest.mark.parametrize(
    "options",
    [
        LSTMLanguageOptions(width=8, hidden=6, layers=3),
        BiLSTMLanguageOptions(width=8, hidden=6, layers=2),
        TransformerLanguageOptions(width=8, heads=2, feed_forward=8, layers=3),
    ],
    ids=lambda options: options.kind,
)
def test_the_state_of_a_language_model_is_restored_from_its_tensors(options):
    model = build_model(options, 10, 10).eval()
    _, state = model.read_on(torch.tensor([[2, 4], [2, 5]]), model.begin(2, torch.device("cpu")))
    rebuilt = state.of(state.tensors())
    assert len(rebuilt.tensors()) == {"language-lstm": 6, "language-bilstm": 8, "language-transformer": 7}[options.kind]
    for original, restored in zip(state.tensors(), rebuilt.tensors(), strict=True):
        assert torch.equal(original, restored) and not restored.requires_grad
    ids = torch.tensor([[6, 7], [8, 9]])
    expected, features = (model.read_on(ids, start)[0].features for start in (state, rebuilt))
    torch.testing.assert_close(features, expected)
