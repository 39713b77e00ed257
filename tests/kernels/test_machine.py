"""Detected processor features and the settings for CTranslate2 that follow from them."""

import os
import subprocess
import sys

import pytest

from translucid.kernels import devices, machine

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
    monkeypatch.setattr(devices, "amd", lambda: amd)
    monkeypatch.setattr(devices, "avx512", lambda: avx512)
    monkeypatch.setattr(devices, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(devices, "_configured", False)
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", before or "")  # so that monkeypatch restores it
    if before is None:
        monkeypatch.delenv("CT2_FORCE_CPU_ISA")
    devices.configure_process()
    assert os.environ.get("CT2_FORCE_CPU_ISA") == after
    # If CTranslate2 refuses them, our choice is taken back, that of the user is not.
    assert devices.forget_instructions() == (after == "AVX512")
    assert os.environ.get("CT2_FORCE_CPU_ISA") == before
    assert not devices.forget_instructions()


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


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Return a function that writes the control groups of this process: cgroups("0::/pod/a", {"pod/cpu.max": "…"})."""
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(machine, "_visible_cores", lambda: 64)
    monkeypatch.setenv("OMP_NUM_THREADS", "")  # so that monkeypatch restores it
    monkeypatch.delenv("OMP_NUM_THREADS")

    def write(own, files):
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            file = tmp_path / "cgroup" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


@pytest.mark.parametrize(
    ("own", "files", "cores", "memory"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n", "memory.max": "1000000\n"}, 2, 1000000),
        ("0::/\n", {"cpu.max": "max 100000\n", "memory.max": "max\n"}, 64, None),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2, None),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1, None),
        # The pod has the limit of its containers.
        ("0::/pod/a\n", {"pod/a/cpu.max": "max 100000", "pod/cpu.max": "300000 100000", "pod/memory.max": "7"}, 3, 7),
        ("0::/of/the/host\n", {"cpu.max": "100000 100000\n"}, 1, None),
        (
            "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n1:name=systemd:/\n",
            {
                "cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
                "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "memory/docker/1/memory.limit_in_bytes": "5000\n",
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            4,
            5000,
        ),
        ("5:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64, None),
        ("", {}, 64, None),
    ],
)
def test_the_limits_of_containers_count_as_cores_and_memory(own, files, cores, memory, cgroups):
    cgroups("", {})
    whole = machine.physical_memory()
    cgroups(own, files)
    assert machine.cores() == cores
    assert machine.physical_memory() == (memory or whole)
    machine.limit_threads_to_quota()
    assert os.environ.get("OMP_NUM_THREADS") == (str(cores) if cores < 64 else None)


def test_a_number_of_threads_counts_instead_of_the_cores(cgroups, monkeypatch):
    cgroups("", {})
    monkeypatch.setattr(machine, "_threads", None)  # so that it is restored
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    machine.limit_threads_to_quota()
    assert os.environ["OMP_NUM_THREADS"] == "8"
    machine.limit_threads(3)
    assert (machine.cores(), os.environ["OMP_NUM_THREADS"]) == (3, "3")
