"""A run folder that each test may spoil."""

import shutil

import pytest

from translucid.runs.run_folder import RunFolder


@pytest.fixture(scope="session")
def honest_run(train, made_once):
    """A run after two updates, which nobody may change."""
    return made_once("two updates", lambda folder: train(folder, "training.max_steps=2"))


@pytest.fixture
def run(honest_run, tmp_path):
    """A copy of `honest_run`."""
    return RunFolder(shutil.copytree(honest_run, tmp_path / "run"))
