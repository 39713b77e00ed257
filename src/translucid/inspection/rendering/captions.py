"""Captions of figures: the run with the version that trained it, and the command that draws the figure.

A saved figure carries its caption as metadata, also one of the page: an SVG as `<desc>`, a PNG as `Description`, a
PDF as its subject. `translucid draw caption` reads it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape, unescape
from pathlib import Path
from typing import Literal

from bitext.reading import read_at_most, reading
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import PICTURES

CaptionFormat = Literal["latex", "markdown", "text"]
"""The formats in which a caption is printed."""
MOST_BYTES = 1 << 28
"""The largest size of a picture whose caption is read, in bytes."""
_KEY = b"/Subject ("
_ESCAPES = {"n": "\n", "r": "\r"}
_LATEX = {
    **{character: f"\\{character}" for character in "{}$&#_%"},
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "'": "\\textquotesingle{}",
    '"': "\\textquotedbl{}",
    "-": "-{}",  # two hyphens would become a dash
}

_caption: ContextVar[Callable[[], str]] = ContextVar("caption", default=str)
"""Returns the caption of the figures that are saved."""


@contextmanager
def captioned(caption: Callable[[], str]) -> Iterator[None]:
    """Give the figures that are saved in the block a caption."""
    token = _caption.set(caption)
    try:
        yield
    finally:
        _caption.reset(token)


def current_caption() -> str:
    """Return the caption of the figures that the current command saves; empty if they are drawn in Python."""
    return _caption.get()()


def described(svg: str, caption: str) -> str:
    """Return an SVG with a caption as its description, which is not drawn."""
    if not caption:
        return svg
    head, start, rest = svg.partition("<svg")
    tag, end, content = rest.partition(">")
    return f"{head}{start}{tag}{end}<desc>{escape(caption, quote=False)}</desc>{content}"


def read_caption(file: Path) -> str:
    """Return the caption of a saved figure.

    Raises:
        UserError: it can't be read, is no figure, or has no caption.
    """
    kind = file.suffix.lower()
    if kind not in PICTURES:
        raise UserError("is no figure with a caption", file=file, fix=f"Give a file in {', '.join(PICTURES)}.")
    with reading(file):
        content = read_at_most(file, MOST_BYTES)
    caption = {".svg": _of_svg, ".pdf": _of_pdf, ".png": _of_png}[kind](content)
    if not caption:
        raise UserError("has no caption", file=file, fix="Save it again with the command that drew it.")
    return caption


def _of_svg(content: bytes) -> str:
    _, _, rest = content.decode(errors="replace").partition("<desc>")
    return unescape(rest.partition("</desc>")[0])


def _of_pdf(content: bytes) -> str:
    start = content.rfind(_KEY)
    if start < 0:
        return ""
    # A string of a PDF is in parentheses, of which those of its text are escaped.
    match = re.compile(rb"(?:[^\\)]|\\.)*", re.DOTALL).match(content, start + len(_KEY))
    text = match[0].decode("latin-1") if match else ""
    plain = re.sub(r"\\(.)", lambda escaped: _ESCAPES.get(escaped[1], escaped[1]), text, flags=re.DOTALL)
    is_utf16 = plain.startswith("þÿ")
    return plain.encode("latin-1").decode("utf-16", errors="replace") if is_utf16 else plain


def _of_png(content: bytes) -> str:
    from io import BytesIO

    from PIL import Image

    try:
        with Image.open(BytesIO(content), formats=["PNG"]) as image:
            return str(image.info.get("Description", ""))
    except (OSError, ValueError, SyntaxError):
        return ""


def formatted(file: Path, caption: str, kind: CaptionFormat) -> str:
    """Return a caption as text, or with its figure as LaTeX or Markdown."""
    *origins, command = caption.split("\n")
    if kind == "text":
        return caption
    if kind == "markdown":
        return f"![{file.stem}]({file.name})\n\n{''.join(f'{origin}. ' for origin in origins)}`{command}`"
    include = "includesvg" if file.suffix.lower() == ".svg" else "includegraphics"  # of the package svg
    source = "".join(f"{_latex(origin)}. " for origin in origins)
    return "\n".join(
        [
            r"\begin{figure}",
            r"  \centering",
            rf"  \{include}[width=\linewidth]{{{file.name}}}",
            rf"  \caption{{{source}\texttt{{{_latex(command)}}}}}",
            rf"  \label{{fig:{file.stem}}}",
            r"\end{figure}",
        ]
    )


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
