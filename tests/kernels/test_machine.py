"""Detected processor features and the settings for CTranslate2 that follow from them."""

import os
import subprocess
import sys

import pytest

from translucid.kernels import machine, process

ZEN = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 avx512f avx512cd avx512vl avx512dq avx512bw\n"


@pytest.mark.parametrize(
    ("cpuinfo", "amd", "avx512"),
    [
        (ZEN, True, True),
        (ZEN.replace("AuthenticAMD", "GenuineIntel"), False, True),
        (ZEN.replace(" avx512vl", ""), True, False),
        ("Processor\t: ARMv8\n", False, False),
    ],
)
def test_processors_are_known_by_what_linux_says(cpuinfo, amd, avx512, monkeypatch):
    monkeypatch.setattr(machine, "_cpuinfo", lambda: cpuinfo)
    assert (machine.amd(), machine.avx512()) == (amd, avx512)


@pytest.mark.parametrize(
    ("amd", "avx512", "before", "after"),
    [(True, True, None, "AVX512"), (True, True, "AVX2", "AVX2"), (False, True, None, None), (True, False, None, None)],
)
def test_the_kernels_for_avx512_are_asked_for_where_they_are_faster(amd, avx512, before, after, monkeypatch):
    monkeypatch.setattr(process, "amd", lambda: amd)
    monkeypatch.setattr(process, "avx512", lambda: avx512)
    monkeypatch.setattr(process, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(process, "_configured", False)
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", before or "")  # so that monkeypatch restores it
    if before is None:
        monkeypatch.delenv("CT2_FORCE_CPU_ISA")
    process.configure_process()
    assert os.environ.get("CT2_FORCE_CPU_ISA") == after


@pytest.mark.parametrize(("policy", "expected"), [(None, ["passive", "30000"]), ("active", ["active", "None"])])
def test_threads_of_the_command_sleep_while_they_wait_unless_told_otherwise(policy, expected):
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    }
    environment |= {"OMP_WAIT_POLICY": policy} if policy else {}
    code = (
        "import os, sys, translucid.cli.main as m\n"
        "say = lambda: print(os.environ['OMP_WAIT_POLICY'], os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)\n"
        "m.run = lambda arguments: say() or 0\n"
        "m.main([])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == [*expected, "False"]
