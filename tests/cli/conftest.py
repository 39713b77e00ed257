"""A fixture that runs commands in this process."""

import io
import sys
from typing import NamedTuple

import pytest

from translucid.cli.main import run


class Outcome(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch):
    """Run a command in this process: call("translate", run, stdin=b"...")."""

    def run_command(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return run_command
