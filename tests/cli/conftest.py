"""A fixture that runs commands in this process."""

import io
import sys
from typing import NamedTuple

import pytest

from tests.cli.named_options import unknown_options
from translucid.cli.main import run


class Outcome(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch):
    """Run a command in this process: call("translate", run, stdin=b"...").

    Its errors and warnings may name only options that it has.
    """

    def run_command(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        words = [str(argument) for argument in arguments]
        outcome = Outcome(run(words), *capfd.readouterr())
        assert unknown_options(words, outcome.err) == []
        return outcome

    return run_command
