"""Which library makes products of float32, and that the process is left as it was found."""

import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest
import torch

from translucid.kernels import onednn, reference_mode
from translucid.kernels.onednn import fast_products, onednn_is_better
from translucid.kernels.rounding import bfloat16_is_quick

MATMUL = torch.backends.mkldnn.matmul


@pytest.fixture(params=["none", "ieee"])
def before(request):
    """How a program that imports us has set the precision of products, at any time."""
    found = MATMUL.fp32_precision
    MATMUL.fp32_precision = request.param
    yield request.param
    MATMUL.fp32_precision = found


def test_outside_and_after_an_error_all_is_as_it_was(before, monkeypatch):
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)

    @fast_products()
    def fail():
        assert MATMUL.fp32_precision == "bf16"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert MATMUL.fp32_precision == before


def test_within_plain_the_usual_library_is_taken(before, monkeypatch):
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    for name, precision in (("linear", before), ("loss", "bf16")):
        with reference_mode(name), fast_products():
            assert MATMUL.fp32_precision == precision


def test_of_threads_that_overlap_the_last_puts_it_back(before, monkeypatch):
    """The second enters while the first is inside, and leaves after it."""
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    barrier, found = Barrier(2, timeout=10), []

    def first():
        with fast_products():
            barrier.wait()  # both are inside
            barrier.wait()
        found.append(MATMUL.fp32_precision)
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
    assert found == ["bf16"]
    assert MATMUL.fp32_precision == before


def test_a_library_that_rounds_is_not_better(monkeypatch):
    monkeypatch.setattr(onednn, "amd", lambda: True)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(onednn, "_with_onednn", lambda a, b: a @ b)
    assert onednn_is_better.__wrapped__() is torch.backends.mkldnn.is_available()
    monkeypatch.setattr(onednn, "_with_onednn", lambda a, b: (a.bfloat16() @ b.bfloat16()).float())
    assert not onednn_is_better.__wrapped__()


@pytest.mark.parametrize(("capability", "amd"), [("AVX2", True), ("AVX512", False)])
def test_elsewhere_the_usual_library_is_taken(capability, amd, monkeypatch):
    monkeypatch.setattr(onednn, "amd", lambda: amd)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    assert not onednn_is_better.__wrapped__()


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


@pytest.mark.skipif(not bfloat16_is_quick(torch.device("cpu")), reason="no instructions for bfloat16 here")
def test_a_processor_that_is_said_to_multiply_bfloat16_does_so():
    """By PyTorch's own word, which it has for x86 only."""
    assert torch.cpu._is_avx512_bf16_supported()


@pytest.mark.skipif(
    not (onednn_is_better() or bfloat16_is_quick(torch.device("cpu"))) or not Path("/proc/self/statm").exists(),
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
        from translucid.kernels.rounding import bfloat16_is_quick, rounded_products

        def pages():
            return int(Path("/proc/self/statm").read_text().split()[1])

        tune_cpu()
        training = sys.argv[1] == "True"
        layer, x = Linear(128, 256), torch.randn(1000, 128)
        with rounded_products(training and bfloat16_is_quick(torch.device("cpu"))), torch.set_grad_enabled(training):
            layer(x)
            before = pages()
            for rows in range(300, 700):
                y = layer(x[:rows])
                if training:
                    y.sum().backward()
        print((pages() - before) * 4 // 1024)
    """
    done = subprocess.run([sys.executable, "-c", program, str(training)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # MiB; 240 with all that oneDNN would keep by itself
