"""Fixtures of the device tests."""

import pytest

from translucid.decoding.problem import Problem


@pytest.fixture
def steps(monkeypatch):
    """Return a list that records the length of each search step."""
    lengths, predict = [], Problem.predict

    def recording_predict(self, rows, state):
        lengths.append(rows.length)
        return predict(self, rows, state)

    monkeypatch.setattr(Problem, "predict", recording_predict)
    return lengths
