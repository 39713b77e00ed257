"""The choice of the library for float32 products and of bfloat16, and that process settings are restored."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread
from types import SimpleNamespace

import pytest
import torch

from translucid.kernels import onednn, reference_mode, rounding
from translucid.kernels.onednn import fast_products, fastest, onednn_is_better
from translucid.kernels.rounding import bfloat16_is_faster

MATMUL = torch.backends.mkldnn.matmul


@pytest.fixture(params=["none", "ieee"])
def before(request):
    """Set and return the precision of products that the importing program has chosen."""
    saved = MATMUL.fp32_precision
    MATMUL.fp32_precision = request.param
    yield request.param
    MATMUL.fp32_precision = saved


def test_settings_are_restored_also_after_an_error(before, monkeypatch):
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)

    @fast_products()
    def fail():
        assert MATMUL.fp32_precision == "bf16"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert MATMUL.fp32_precision == before


def test_reference_mode_uses_the_default_library(before, monkeypatch):
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    for name, precision in (("linear", before), ("loss", "bf16")):
        with reference_mode(name), fast_products():
            assert MATMUL.fp32_precision == precision


def test_the_last_of_overlapping_threads_restores_the_setting(before, monkeypatch):
    """The second thread enters while the first is inside and leaves after it."""
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    barrier, precisions = Barrier(2, timeout=10), []

    def first():
        with fast_products():
            barrier.wait()  # both are inside
            barrier.wait()
        precisions.append(MATMUL.fp32_precision)
        barrier.wait()

    def second():
        barrier_passed = False
        with fast_products():
            barrier.wait()
            barrier.wait()
            barrier.wait()  # the first has left
            barrier_passed = True
        assert barrier_passed

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert precisions == ["bf16"]
    assert MATMUL.fp32_precision == before


def set_durations(monkeypatch, *seconds):
    """Make the compared products appear to take these numbers of seconds."""
    monkeypatch.setattr(onednn, "fastest", lambda *products: list(seconds))


@pytest.mark.parametrize(
    ("capability", "amd", "better"), [("AVX512", True, True), ("AVX2", True, False), ("AVX512", False, False)]
)
def test_onednn_is_better_on_amds_processors_with_avx512_unless_it_rounds(capability, amd, better, monkeypatch):
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: True)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    monkeypatch.setattr(onednn, "amd", lambda: amd)
    monkeypatch.setattr(onednn, "_with_onednn", lambda a, b: a @ b)
    assert onednn_is_better.__wrapped__() is better
    monkeypatch.setattr(onednn, "_with_onednn", lambda a, b: (a.bfloat16() @ b.bfloat16()).float())
    assert not onednn_is_better.__wrapped__()


@pytest.mark.parametrize(("seconds", "quick"), [((2.0, 1.0), True), ((0.9, 1.0), False), ((1.0, 6.0), False)])
def test_bfloat16_is_quick_where_its_products_take_clearly_less_time(seconds, quick, monkeypatch):
    set_durations(monkeypatch, *seconds)
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: True)
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: False)
    monkeypatch.setattr(rounding, "bfloat16_gain", onednn.bfloat16_gain.__wrapped__)
    assert rounding.gain_of_rounding(torch.device("cpu")) == seconds[0] / seconds[1]
    assert bfloat16_is_faster(torch.device("cpu")) is quick


def test_bfloat16_is_compared_with_the_library_that_multiplies_float32(monkeypatch):
    libraries = []
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: True)
    monkeypatch.setattr(onednn, "_with_onednn", lambda a, b: libraries.append("onednn") or a @ b)
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: False)
    onednn.bfloat16_gain.__wrapped__()
    assert not libraries
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    onednn.bfloat16_gain.__wrapped__()
    assert libraries


def test_products_are_timed_in_turn_on_one_thread_and_the_fastest_try_counts(monkeypatch):
    clock, calls = [0.0], []
    durations = iter([100, 50, *[3, 9] * (onednn.TRIES - 1), 2, 8])  # the first two set the libraries up
    monkeypatch.setattr(onednn, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def product(name):
        calls.append(name)
        assert torch.get_num_threads() == 1
        clock[0] += next(durations)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert fastest(lambda: product("a"), lambda: product("b")) == [2, 8]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert "".join(calls) == "ab" * (1 + onednn.TRIES)


def test_more_tries_follow_while_the_ratio_is_doubtful(monkeypatch):
    clock = [0.0]
    durations = iter([1, 1, *[10, 10] * (onednn.TRIES + 2), 10, 5])
    monkeypatch.setattr(onednn, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def product():
        clock[0] += next(durations)

    assert fastest(product, product) == [10, 5]
    assert not list(durations)


def test_measuring_leaves_the_random_state():
    before = torch.get_rng_state()
    onednn.sample_factors()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_capped_library_is_not_trusted_with_bfloat16():
    """If oneDNN may not use the bfloat16 instructions, it emulates them slowly."""
    program = "import torch; from translucid.kernels.rounding import *; print(gain_of_rounding(torch.device('cpu')))"
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    completed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert float(completed.stdout) < 1


def test_products_write_nothing_into_the_environment():
    program = """if True:
        import os
        import torch
        from translucid.kernels.linear import Linear
        from translucid.kernels.rounding import rounded_products

        before = dict(os.environ)
        layer, x = Linear(128, 256), torch.randn(1000, 128)
        with torch.no_grad():
            layer(x)
        with rounded_products():
            layer(x).sum().backward()
        assert dict(os.environ) == before
    """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(
    not (onednn_is_better() or bfloat16_is_faster(torch.device("cpu"))) or not Path("/proc/self/statm").exists(),
    reason="oneDNN is not taken here",
)
@pytest.mark.parametrize("training", [False, True])
def test_products_of_many_shapes_take_no_memory_with_them(training):
    program = """if True:
        import sys
        import torch
        from pathlib import Path
        from translucid.kernels.devices import tune_cpu
        from translucid.kernels.linear import Linear
        from translucid.kernels.rounding import bfloat16_is_faster, rounded_products

        def pages():
            return int(Path("/proc/self/statm").read_text().split()[1])

        tune_cpu()
        training = sys.argv[1] == "True"
        layer, x = Linear(128, 256), torch.randn(1000, 128)
        with rounded_products(training and bfloat16_is_faster(torch.device("cpu"))), torch.set_grad_enabled(training):
            layer(x)
            before = pages()
            for rows in range(300, 700):
                y = layer(x[:rows])
                if training:
                    y.sum().backward()
        print((pages() - before) * 4 // 1024)
    """
    completed = subprocess.run(
        [sys.executable, "-c", program, str(training)], capture_output=True, text=True, check=True
    )
    assert int(completed.stdout) < 100  # MiB; 240 with everything that oneDNN caches by default
