"""Let the subprocesses of the fuzzers find `tests.probes`."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _probes_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")


@pytest.fixture(autouse=True)
def _small_floats_again():
    """Restore subnormal floats: opening a run flushes them to 0, which Hypothesis rejects in other tests."""
    yield
    torch.set_flush_denormal(False)
