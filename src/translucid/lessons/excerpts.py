"""Excerpts of the package's source, read when a page is built, so that pages always show the current code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import translucid

HOUSE = Path(translucid.__file__).parent


@dataclass(frozen=True)
class Excerpt:
    """The source of a function or a class."""

    file: str
    """The path of the file in the source folder, such as `translucid/attention/attend.py`."""
    line: int
    """The number of the first line, from 1."""
    text: str

    @classmethod
    def of(cls, name: str) -> Excerpt:
        """Return the source of an object by name, such as `translucid.attention.scores:Concat.over`."""
        module, _, path = name.partition(":")
        target: Any = import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
        target = inspect.unwrap(target)  # a decorator, such as that of no-grad mode, has another source
        lines, first = inspect.getsourcelines(target)
        file = Path(inspect.getfile(target)).relative_to(HOUSE.parent)
        return cls(file.as_posix(), first, dedent("".join(lines)).rstrip())

    def html(self) -> str:
        """Return the source as highlighted HTML."""
        return highlight(self.text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()
