"""The fuzzers start processes of their own, which find `tests.probes` as this one does."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _probes_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")


@pytest.fixture(autouse=True)
def _small_floats_again():
    """Opening a run takes numbers too small to matter as 0, which Hypothesis does not like in other tests."""
    yield
    torch.set_flush_denormal(False)
