"""The errors that the user can fix: exit code 2 and one clear line; and their usual remedies.

Any other exception is a defect of this program (exit code 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import metadata

from bitext.errors import UserError as UserError  # one class, whichever of the two packages raises it

UPGRADING = "docs/install.md#upgrading lists what has other names."
"""The remedy for a former name."""


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
