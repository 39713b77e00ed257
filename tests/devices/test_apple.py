"""Apple's GPUs: no float64, and their random state."""

import numpy as np
import torch

from tests.devices.emulated import Emulation
from tests.devices.shrunk import VOCABULARY, build_case
from translucid.data.stores.store import EncodedTexts, Size
from translucid.language.scores import score_texts
from translucid.training.trainer import random_states, restore_random_states


def test_a_language_model_is_measured_without_float64():
    ids = np.random.default_rng(1).integers(4, VOCABULARY, 90).astype(np.int32)
    texts = EncodedTexts(ids, Size(1, 80, 400))
    (expected,) = score_texts(build_case("lm-lstm").model.eval(), texts, 10, torch.device("cpu"))
    with Emulation("mps") as emulation, torch.no_grad():
        model = build_case("lm-lstm").model.to(emulation.device).eval()
        (actual,) = score_texts(model, texts, 10, emulation.device)
    assert abs(actual.nats - expected.nats) < 1e-3


def test_the_random_state_of_an_apple_gpu_is_kept(monkeypatch):
    restored = []
    with Emulation("mps") as emulation:
        states = random_states(emulation.device)
        monkeypatch.setattr(torch.mps, "set_rng_state", restored.append)
        restore_random_states(states, emulation.device)
    assert states.keys() == {"cpu", "mps"}
    assert [state.tolist() for state in restored] == [states["mps"].tolist()]
