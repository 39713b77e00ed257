"""What tests of devices share."""

import shutil
from functools import partial

import pytest

from tests.devices.shrunk import SHORT
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.problem import Problem
from translucid.runs.run_folder import RunFolder


@pytest.fixture
def steps(monkeypatch):
    """A list that gets the length of each step of a search."""
    lengths, predict = [], Problem.predict

    def counted(self, rows, state):
        lengths.append(rows.length)
        return predict(self, rows, state)

    monkeypatch.setattr(Problem, "predict", counted)
    return lengths


@pytest.fixture(autouse=True)
def _short_validations(monkeypatch):
    """Untrained models say nothing for as long as they may, and an emulated device is slow."""
    monkeypatch.setattr("translucid.training.validation.DecodingOptions", partial(DecodingOptions, **SHORT))


@pytest.fixture(scope="session")
def short_run(small_run, tmp_path_factory):
    """A copy of `small_run` whose translations are short."""
    run = RunFolder(tmp_path_factory.mktemp("short") / "run")
    shutil.copytree(small_run, run.path)
    configuration = run.configuration()
    decoding = configuration.decoding.model_copy(update=SHORT)
    run.save_configuration(configuration.model_copy(update={"decoding": decoding}))
    return run.path
