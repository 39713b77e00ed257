"""The presets of language models and text classifiers."""

from __future__ import annotations

from typing import Any

from translucid.runs.presets import Preset


def _language(purpose: str, model: dict[str, Any], **training: Any) -> Preset:
    """Return a preset for a language model."""
    settings = {
        "model": model,
        "data": {"tokenizer": {"vocabulary": 8000}},
        "training": {
            "optimizer": "muon",
            "cooldown": 0.5,
            "label_smoothing": 0.0,
            "max_epochs": 2,
            "validate_every": 1000,
            **training,
        },
        "decoding": {"sample": True, "max_length_ratio": 0, "max_length_extra": 100},
    }
    return Preset(purpose, settings)


_LSTM_TRAINING = {"batch_tokens": 4480, "learning_rate": 0.005, "warmup": 200}


LANGUAGE_MODELS = {
    "lm-lstm": _language(
        "running text, to generate text or to fine-tune for a task: the AWD-LSTM (Merity et al. 2018)",
        {"kind": "language-lstm"},
        **_LSTM_TRAINING,
    ),
    "lm-bilstm": _language(
        "running text, for contextual word embeddings: ELMo (Peters et al. 2018)",
        {"kind": "language-bilstm"},
        **_LSTM_TRAINING,
    ),
    "lm-transformer": _language(
        "running text: causal self-attention over a window of tokens (Radford et al. 2018)",
        {"kind": "language-transformer", "context": 128},
        window=128,
        batch_tokens=8192,
        learning_rate=0.006,
        warmup=500,
    ),
}
CLASSIFIERS = {
    "classifier": Preset(
        "texts with labels: a language model, given with `begin_from`, learns to classify texts (ULMFiT, 2018)",
        {
            "model": {"kind": "classifier"},
            "data": {"tokenizer": {"vocabulary": 8000}, "max_tokens": 1024},
            "training": {
                "batch_tokens": 8192,
                "learning_rate": 0.002,
                "schedule": "slanted",
                "layer_decay": 2.6,
                "unfreeze": True,
                "label_smoothing": 0.0,
                "averaging": 0.99,
                "max_epochs": 5,
                "validate_every": 200,
                "patience": None,
            },
        },
    ),
}
