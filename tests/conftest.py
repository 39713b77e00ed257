"""What all tests share."""

import os
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, from $TRANSLUCID_DATA or beside the checkout; tests that need it skip without."""
    folder = Path(os.environ.get("TRANSLUCID_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder}: set TRANSLUCID_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Small models are no faster with more, and tests share their machine."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_numbers_each_time():
    torch.manual_seed(1)
