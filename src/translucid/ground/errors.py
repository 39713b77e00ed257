"""The one exception for what the user can put right: exit code 2 and one clear line.

Everything else that escapes is our fault (exit code 1).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import metadata

_LONGEST = 2000
"""Characters of a message, at most: what stands in the user's files may be of any length."""


class UserError(Exception):
    """The user's input is wrong. The message is one line: where, what is wrong, what to do."""

    def __init__(self, what: str, *, file: object = None, line: int | None = None, fix: str = "") -> None:
        """Build the line `FILE:LINE: what. fix`.

        Args:
            what: what is wrong, without a final period.
            file: the file it was found in, if any.
            line: its line number, counted from 1.
            fix: what the user can do about it.
        """
        self.file = file
        """As given: a `Path` is a file of this machine, a text the name of somebody's document."""
        file = "standard input" if str(file) == "-" else file
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(_one_line(f"{place}{what}. {fix}".strip()))

    def __reduce__(self) -> tuple[object, ...]:
        """Go from one process to another with the line as it is."""
        return UserError._saying, self.args

    @staticmethod
    def _saying(line: str) -> UserError:
        error = UserError.__new__(UserError, line)
        error.file = None
        return error


def _one_line(text: str) -> str:
    """Escape what would break the line or command a terminal, and leave out the middle of what is far too long."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def missing_package(what: str, package: str | None, extra: str) -> UserError:
    """Return the error that a package of one of our extras is not installed."""
    return UserError(f"{what} needs the package {package}", fix=f"Install it with {remedy(extra)}")


def remedy(extra: str) -> str:
    """Return the command that installs one of our extras.

    It names the packages themselves, which works beside a clone as well as beside an installed wheel.
    """
    required = [line.partition(";") for line in metadata.requires("translucid") or []]
    wanted = [name.strip() for name, _, marker in required if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return f"pip install {' '.join(f'{name!r}' for name in wanted)}"


def nearest(name: object, known: object) -> str:
    """Return `Did you mean 'x'?` for the known name closest to a misspelt one, or the list of known names."""
    names = sorted(str(k) for k in known)  # type: ignore[attr-defined]
    close = get_close_matches(name, names, n=1) if isinstance(name, str) and len(name) < 100 else []
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names)}."
