"""The sixteen lessons, in order."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Lesson:
    """A lesson, which is one page."""

    name: str
    title: str
    summary: str
    """The summary in the list of lessons."""
    exercise: str
    """The name of the function to write, see `exercises.py`."""
    equations: Sequence[str]
    """The functions of `equations.py` that are shown as the code of the lesson's equation."""
    code: Sequence[str]
    """The functions and classes of the package whose source is shown below them, as `module:name`."""
    runs: Sequence[str] = ("demo",)
    """The names of the runs whose numbers the figure shows."""
    command: str = ""
    """The command that makes what the figure needs beside trained runs, with `{runs}` for their folder; or empty."""
    view: str = ""
    """The view of the translator that the page embeds, `attention`, `heads` or `steps`; none if empty."""


_FILE = files("translucid.lessons") / "lessons.toml"
LESSONS = [Lesson(**lesson) for lesson in tomllib.loads(_FILE.read_text(encoding="utf-8"))["lesson"]]
