"""The attention maps that a model's options declare without building it."""

import pytest
import torch

from translucid.decoding.maps import forced_pass
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets

CASES = [(name, []) for name in all_presets() if name != "classifier"]  # a classifier has no decoder
CASES += [("tiny", ["model.decoder=ssru"]), ("caption-transformer", ["model.decoder=ssru"])]


@pytest.mark.parametrize(("preset", "settings"), CASES)
def test_the_maps_that_a_model_gives_are_those_that_it_promises(preset, settings):
    options = resolve(preset=preset, assignments=settings).model
    options = options.model_copy(update={"width": 24, **({"feed_forward": 16} if hasattr(options, "heads") else {})})
    source = end = torch.tensor([[3]])
    if options.reads == "images":
        source = torch.zeros(1, options.image_encoder.size, options.image_encoder.size, 3, dtype=torch.uint8)
    maps = forced_pass(build_model(options, 20, 20).eval(), source, end).maps
    assert list(options.maps.items()) == [(name, weights.size(1)) for name, weights in maps.items()]
    assert options.has_cross_attention == any(name.endswith(".cross") for name in maps)
