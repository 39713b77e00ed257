"""Pieces of this package's own source, read when a page is made, so that no page shows code that is not there."""

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
    """From the folder of the package's sources, such as `translucid/attention/attend.py`."""
    line: int
    """Where it begins, from 1."""
    text: str

    @classmethod
    def of(cls, name: str) -> Excerpt:
        """Return the source of what has a name, such as `translucid.attention.scores:Concat.over`."""
        module, _, path = name.partition(":")
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        found = inspect.unwrap(found)
        lines, first = inspect.getsourcelines(found)
        file = Path(inspect.getfile(found)).relative_to(HOUSE.parent)
        return cls(file.as_posix(), first, dedent("".join(lines)).rstrip())

    def html(self) -> str:
        """Return it with marks for keywords, names, strings and comments."""
        return highlight(self.text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()
