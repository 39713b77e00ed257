"""What tests of devices share."""

import pytest

from translucid.decoding.problem import Problem


@pytest.fixture
def steps(monkeypatch):
    """A list that gets the length of each step of a search."""
    lengths, predict = [], Problem.predict

    def counted(self, rows, state):
        lengths.append(rows.length)
        return predict(self, rows, state)

    monkeypatch.setattr(Problem, "predict", counted)
    return lengths
