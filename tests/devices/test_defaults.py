"""Defaults that depend on the device: the training batch size and the options of CTranslate2."""

import ctranslate2
import pytest

from tests.devices.emulated import Emulation
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.engines.ctranslate2.searching import half_precision
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
        batch_sizes = [batch_tokens(device) for device in ("cpu", "auto", "cuda:0")]
    assert batch_sizes == [on_cpu, on_gpu, on_gpu]
    with Emulation("mps"):
        assert batch_tokens("auto") == on_cpu


def test_a_run_that_is_resumed_with_the_same_command_keeps_its_batches_on_every_device():
    def configured(earlier, device):
        return configuration_to_train(earlier, device, {}, preset="tiny")

    with Emulation("cuda"):
        configurations = {device: configured(None, device) for device in ("cuda", "cpu")}
        assert [run.training.batch_tokens for run in configurations.values()] == [16384, 4096]
        for earlier in configurations.values():
            for device in configurations:
                assert configured(earlier, device) == earlier


class RecordingTranslator:
    """CTranslate2's translator, always on the CPU, which records how it was opened and called."""

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
def recording_class(monkeypatch, tmp_path):
    """Return a recording translator class, on a machine with a float16 GPU and without cached models."""
    values = {"opened": [], "batches": [], "real_class": ctranslate2.Translator}
    recording_class = type("Watched", (RecordingTranslator,), values)
    monkeypatch.setattr(ctranslate2, "Translator", recording_class)
    types = {"float32", "int8", "float16", "int8_float16"}
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device, gpu: types)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return recording_class


def test_ctranslate2_computes_in_float16_on_a_gpu(recording_class, small_run):
    """The engine is compared with the model in float32."""
    options, sentences = DecodingOptions(beam=1, max_loops=0), [[5, 6, 7, 3]] * 300
    with Emulation("cuda"):
        on_gpu = Translator.load(small_run, "cuda", "ctranslate2").engine.decode(SearchRequest(sentences, options))
    gpu = {"device": "cuda", "device_index": 0, "inter_threads": 1, "intra_threads": 1}
    assert recording_class.opened == [gpu | {"compute_type": "default"}, gpu | {"compute_type": "float16"}]
    assert recording_class.batches[0] == 256
    recording_class.batches.clear()
    on_cpu = Translator.load(small_run, "cpu", "ctranslate2").engine.decode(SearchRequest(sentences, options))
    assert recording_class.opened[-1]["compute_type"] == "default" and recording_class.batches[0] <= 64
    assert [h[0].tokens for h in on_gpu] == [h[0].tokens for h in on_cpu]


def test_the_type_of_ctranslate2_is_one_that_the_gpu_has(recording_class, monkeypatch):
    assert half_precision("cpu", "float32") == "default"
    assert half_precision("cuda:1", "int8") == "int8_float16"
    types = [{"float32", "float16"}, {"float32", "int8"}]  # of two GPUs
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device, gpu: types[gpu])
    assert [half_precision(device, "float32") for device in ("cuda", "cuda:1")] == ["float16", "default"]
