"""Extensions of Sphinx: equations as MathML, which needs no script; docstrings in simple Markdown."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(writer: Any, node: nodes.math) -> None:
    """Write an inline equation."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed(writer: Any, node: nodes.math_block) -> None:
    """Write a display equation."""
    writer.body.append(f'<div class="equation">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def as_restructured_text(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Translate our docstrings for Sphinx: backticks are the only markup, and indented blocks are literal."""
    told: list[str] = []
    typed = False
    for line, before in zip(lines, ["", *lines], strict=False):
        if line.strip():
            typed = line.startswith("    ") and (typed or (bool(told) and not before))
            if typed and not before:
                told += [".. code-block:: text", ""]
        told.append(line if typed else _escaped(line))
    lines[:] = told


def _escaped(line: str) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:  # a code span that continues in the next line
        return re.sub(r"([\\*|`])", r"\\\1", line)
    for i, part in enumerate(parts):
        parts[i] = f"``{part}``" if i % 2 else re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", re.sub(r"([\\*|])", r"\\\1", part))
    return "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.connect("autodoc-process-docstring", as_restructured_text, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
