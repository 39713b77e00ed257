"""A way to call the commands."""

import io
import sys
from typing import NamedTuple

import pytest

from translucid.cli.main import run


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch):
    """Call a command in this process: call("translate", run, stdin=b"...")."""

    def calling(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return calling
