"""The exception for what the user can fix: exit code 2 and one clear line.

Any other exception is a defect of this program (exit code 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import metadata

_LONGEST = 2000
"""The most characters of a message: what it quotes from the user's files may be of any length."""


UPGRADING = "docs/install.md#upgrading lists what has other names."
"""The remedy for a former name."""


class UserError(Exception):
    """The user's input is wrong. The message is one line: where, what is wrong, what to do."""

    def __init__(self, what: str, *, file: object = None, line: int | None = None, fix: str = "") -> None:
        """Build the line `FILE:LINE: what. fix`.

        Args:
            what: what is wrong, without a final period.
            file: the file with the error, if any.
            line: the line number in it, counted from 1.
            fix: what the user can do about it.
        """
        self.file = file
        """The file as the caller gave it: a `Path` is a file on this machine, a text the name of a user's document."""
        super().__init__(_one_line(f"{_location(file, line)}{what}. {fix}".strip()))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the finished line, because calling `__init__` with it again would add a second period."""
        return UserError._from_line, self.args

    @staticmethod
    def _from_line(line: str) -> UserError:
        error = UserError.__new__(UserError, line)
        error.file = None
        return error


def _location(file: object, line: int | None) -> str:
    """Return the beginning of a message, `FILE:LINE: ` or as much of it as is known."""
    if file is None:
        return ""
    name = "standard input" if str(file) == "-" else file
    return f"{name}: " if line is None else f"{name}:{line}: "


def _one_line(text: str) -> str:
    """Escape line breaks and control characters, and leave out the middle of a text that is far too long."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def missing_package(what: str, package: str | None, extra: str) -> UserError:
    """Return the error for a package of one of our extras that is not installed."""
    return UserError(f"{what} needs the package {package}", fix=f"Install it with {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs one of our extras.

    It names the packages themselves, which works for a clone as well as for an installed wheel.
    """
    packages = []
    for requirement in metadata.requires("translucid") or []:
        name, _, marker = requirement.partition(";")  # such as `captum>=0.7; extra == "explain"`
        if re.search(rf"extra == ['\"]{extra}['\"]", marker):
            packages.append(repr(name.strip()))
    return f"pip install {' '.join(packages)}"


def nearest(name: object, candidates: Iterable[object]) -> str:
    """Return `Did you mean 'x'?` for the known name closest to a misspelt one, or the list of known names."""
    names = sorted(map(str, candidates))
    close: list[str] = []
    # A long text is no misspelt name, and the time of the comparison grows with its length.
    if isinstance(name, str) and len(name) < 100:
        close = get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known: {', '.join(names)}."
