"""What depends on the device without being asked for: larger batches of training, and how CTranslate2 is opened."""

import ctranslate2
import pytest

from tests.devices.emulated import Emulation
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.ctranslate2.opening import half_precision
from translucid.runs.configuration import batches_for_gpu, resolve
from translucid.runs.staging import configuration_to_train


@pytest.mark.parametrize(
    ("preset", "on_cpu", "on_gpu"),
    [
        ("tiny", 4096, 16384),
        ("small", 2048, 8192),
        ("rnn-luong-dot", 2048, 8192),
        ("attention-only", 2048, 8192),
        ("mine.py:Mine", 2048, 8192),
        ("base", 25000, 25000),
        ("lm-lstm", 4480, 4480),  # with more tokens in a batch, its few epochs would have fewer updates
        ("caption-soft", 4096, 4096),  # images fill the memory, not tokens
    ],
)
def test_presets_have_larger_batches_on_a_gpu(preset, on_cpu, on_gpu):
    def batch_tokens(device):
        return resolve(preset=preset, on_gpu=batches_for_gpu(device, None)).training.batch_tokens

    with Emulation("cuda"):
        found = [batch_tokens(device) for device in ("cpu", "auto", "cuda:0")]
    assert found == [on_cpu, on_gpu, on_gpu]
    with Emulation("mps"):
        assert batch_tokens("auto") == on_cpu


def test_a_run_that_is_resumed_with_the_same_command_keeps_its_batches_on_every_device():
    def configured(earlier, device):
        return configuration_to_train(earlier, device, {}, preset="tiny")

    with Emulation("cuda"):
        begun = {device: configured(None, device) for device in ("cuda", "cpu")}
        assert [run.training.batch_tokens for run in begun.values()] == [16384, 4096]
        for earlier in begun.values():
            for device in begun:
                assert configured(earlier, device) == earlier


class WatchedTranslator:
    """CTranslate2's translator on a CPU, whatever the device, and how it was opened and called."""

    opened: list[dict]
    batches: list[int]

    def __init__(self, folder, device, **options):
        self.opened.append({"device": device, **options})
        self.real = self.real_class(folder, "cpu", **options | {"device_index": 0, "compute_type": "default"})

    def __getattr__(self, name):
        return getattr(self.real, name)

    def translate_batch(self, *sentences, **options):
        self.batches.append(options["max_batch_size"])
        return self.real.translate_batch(*sentences, **options)


@pytest.fixture
def watched(monkeypatch, tmp_path):
    """The class of CTranslate2's translators, on a machine with a GPU that has float16, and without cached models."""
    values = {"opened": [], "batches": [], "real_class": ctranslate2.Translator}
    watched = type("Watched", (WatchedTranslator,), values)
    monkeypatch.setattr(ctranslate2, "Translator", watched)
    types = {"float32", "int8", "float16", "int8_float16"}
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device, gpu: types)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return watched


def test_ctranslate2_computes_in_float16_on_a_gpu(watched, small_run):
    """It is compared with the model in float32, though."""
    options, sentences = DecodingOptions(beam=1, max_loops=0), [[5, 6, 7, 3]] * 300
    with Emulation("cuda"):
        on_gpu = Translator.load(small_run, "cuda", "ctranslate2").engine.decode(sentences, options)
    gpu = {"device": "cuda", "device_index": 0, "inter_threads": 1, "intra_threads": 1}
    assert watched.opened == [gpu | {"compute_type": "default"}, gpu | {"compute_type": "float16"}]
    assert watched.batches[0] == 256
    watched.batches.clear()
    on_cpu = Translator.load(small_run, "cpu", "ctranslate2").engine.decode(sentences, options)
    assert watched.opened[-1]["compute_type"] == "default" and watched.batches[0] <= 64
    assert [h[0].tokens for h in on_gpu] == [h[0].tokens for h in on_cpu]


def test_the_type_of_ctranslate2_is_one_that_the_gpu_has(watched, monkeypatch):
    assert half_precision("cpu", "float32") == "default"
    assert half_precision("cuda:1", "int8") == "int8_float16"
    types = [{"float32", "float16"}, {"float32", "int8"}]  # of two GPUs
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device, gpu: types[gpu])
    assert [half_precision(device, "float32") for device in ("cuda", "cuda:1")] == ["float16", "default"]
