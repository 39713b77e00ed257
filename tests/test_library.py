"""A program that merely imports the package: the state of its process stays, whatever is loaded and translated."""

import os
import subprocess
import sys

PROGRAM = """
import ctypes, locale, logging, os, platform, random, signal, sys, threading, warnings

import numpy
import torch

sys.stdout.reconfigure(encoding="utf-8")
called = []
if platform.libc_ver()[0] == "glibc":  # settings of the allocator can't be read back: see whether any is made
    class Watched(ctypes.CDLL):
        def __getattr__(self, name):
            if name == "mallopt":
                called.append(name)
            return super().__getattr__(name)
    ctypes.CDLL = Watched


def state():
    return {
        "environment": dict(os.environ),
        "allocator": list(called),
        "denormals": float(torch.full([1 << 20], 1e-39).mul(0.5).max()),
        "matrix products": torch.backends.mkldnn.matmul.fp32_precision,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "dtype": torch.get_default_dtype(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch's random state": torch.get_rng_state().tolist(),
        "numpy's random state": str(numpy.random.get_state()),
        "random state": random.getstate(),
        "logging": (logging.getLogger().level, list(logging.getLogger().handlers), logging.root.manager.disable),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "exceptions": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "locale": locale.setlocale(locale.LC_ALL),
        "folder": os.getcwd(),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "priority": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else None,
    }


before = state()
from translucid import Translator

run, *engines = sys.argv[1:]
for engine in engines:
    translator = Translator.load(run, "cpu", engine)
    for options in ({"beam": 1}, {"beam": 3}, {"sample": True, "seed": 7}):
        assert len(translator.translate(["I like soccer.", "She works at the hospital."], **options)) == 2
    found = translator.translate("I like soccer.")
    assert found.alignment is not None and found.warnings is not None
    after = state()
    for name, value in before.items():
        if after[name] != value:
            print(name, "was", value, "and is", after[name], "after", engine)
"""


def test_a_program_that_translates_is_left_as_it_was(small_run):
    """The state is compared after each engine, so that none can undo what another has done."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "MKL_", "ONEDNN"))}
    program = [sys.executable, "-c", PROGRAM, str(small_run), "torch", "ctranslate2"]
    completed = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == ""
