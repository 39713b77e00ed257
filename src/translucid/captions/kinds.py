"""The record of image captioners in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Served, Task

PACKAGES = {"lime": ("scikit-image", "skimage")}
"""A further package that a method of explanation needs for images."""
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
    commands={
        "caption": ("Translate", "translucid.captions.commands:caption"),
        "data scenes": ("", "translucid.captions.commands:scenes"),
    },
    views={
        "demo": "translucid.captions.demonstration:show_demo",
        "evaluate": "translucid.captions.views:evaluate_captions",
        "look": "translucid.captions.views:look_at_image",
        "explain": "translucid.captions.views:explain_image",
        "draw attention": "translucid.captions.views:heads_of_image",
        "draw mask": "translucid.captions.views:mask_of_images",
        "draw beam": "translucid.captions.views:beam_of_image",
    },
    served=Served(
        model="translucid.captions.captioner:Captioner",
        reads="images",
        shows="images",
        does="writes about images",
        routes={
            "POST /caption": (
                "translucid.captions.routes:CaptionRoutes.caption",
                "translucid.captions.fields:CaptionFields",
            ),
            "POST /caption/picture": (
                "translucid.captions.routes:CaptionRoutes.picture",
                "translucid.captions.fields:CaptionPictureFields",
            ),
        },
        explanations=("imageExplanations", PACKAGES),
    ),
    settings={
        "data.mirror": _OF_PIXELS,
        "data.shift": _OF_PIXELS,
        "data.images": "data.images is for captioners: choose a model that reads images, such as caption-soft",
        "training.self_critical": "training.self_critical is for models that write about images, such as caption-soft",
    },
)
