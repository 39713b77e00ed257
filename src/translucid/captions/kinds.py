"""The record of image captioners in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Task

_OF_PIXELS = "data.mirror and data.shift are for images"

CAPTIONING = Task(
    reads="images",
    does="writes about images",
    command="caption",
    kinds={
        "captioner": "translucid.captions.options:CaptionerOptions",
        "captioning-transformer": "translucid.captions.options:CaptioningTransformerOptions",
    },
    dataset="translucid.captions.dataset:ImageDataset",
    presets="translucid.captions.presets:PRESETS",
    problems="translucid.captions.options:problems",
    settings={
        "data.mirror": _OF_PIXELS,
        "data.shift": _OF_PIXELS,
        "data.images": "data.images is for captioners: choose a model that reads images, such as caption-soft",
        "training.self_critical": "training.self_critical is for models that write about images, such as caption-soft",
    },
)
