"""The presets of image captioners."""

from __future__ import annotations

from typing import Any

from translucid.runs.presets import Preset


def _captioning(purpose: str, **model: Any) -> Preset:
    """Return a preset for a captioner whose image encoder is trained from scratch."""
    settings = {
        "model": model,
        "data": {
            "tokenizer": {"vocabulary": 4000, "normalization": "nmt_nfkc_cf"},
            "filter": {"ratio_slack": 1_000_000},  # the name of an image says nothing about its caption's length
        },
        "training": {"learning_rate": 0.002, "warmup": 400, "batch_tokens": 4096, "max_steps": 20000},
        "decoding": {"max_length_ratio": 0, "max_length_extra": 60},
    }
    return Preset(purpose, settings)


PRESETS = {
    "caption-soft": _captioning(
        "images to captions: soft attention over the whole image (Xu et al. 2015)", kind="captioner", attention="soft"
    ),
    "caption-hard": _captioning(
        "images to captions: hard attention to one place for each word (the same paper)",
        kind="captioner",
        attention="hard",
    ),
    "caption-transformer": _captioning(
        "images to captions: a Transformer decoder over the grid of the image", kind="captioning-transformer"
    ),
    "caption-demo": Preset(
        "the built-in scenes: about eight minutes on two cores",
        {
            "model": {
                "kind": "captioning-transformer",
                "image_encoder": {"network": "efficientnet-lite0", "size": 160, "stride": 16, "frozen": True},
                "width": 128,
                "heads": 4,
                "feed_forward": 512,
                "encoder_layers": 1,  # a frozen network has not learned what a bell is: the cells still have to
                "decoder_layers": 2,
                "dropout": 0.0,
            },
            "data": {"tokenizer": {"vocabulary": 300}, "filter": {"ratio_slack": 1_000_000}},
            "training": {
                "optimizer": "muon",
                "batch_tokens": 1200,
                "learning_rate": 0.006,
                "warmup": 60,
                "cooldown": 0.5,
                "averaging": 0.99,
                "label_smoothing": 0.0,
                "validate_every": 1300,
                "validate_sentences": 100,
                "patience": None,
                "max_steps": 2600,
            },
            "decoding": {"max_length_ratio": 0, "max_length_extra": 40},
        },
    ),
}
