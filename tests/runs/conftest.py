"""Run folders for tests."""

import shutil

import pytest

from translucid.runs.run_folder import RunFolder


@pytest.fixture(scope="session")
def honest_run(train, made_once):
    """Return a run after two updates; tests must not change it."""
    return made_once("two updates", lambda folder: train(folder, "training.max_steps=2"))


@pytest.fixture
def run(honest_run, tmp_path):
    """Return a copy of `honest_run` that a test may change."""
    return RunFolder(shutil.copytree(honest_run, tmp_path / "run"))
