"""The one exception for what the user can put right: exit code 2 and one clear line.

Everything else that escapes is our fault (exit code 1).
"""

from __future__ import annotations

from difflib import get_close_matches


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
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{what}. {fix}".strip())

    def __reduce__(self) -> tuple[object, ...]:
        """Go from one process to another with the line as it is."""
        return UserError._saying, self.args

    @staticmethod
    def _saying(line: str) -> UserError:
        return UserError.__new__(UserError, line)


def nearest(name: str, known: object) -> str:
    """Return `Did you mean 'x'?` for the known name closest to a misspelt one, or the list of known names."""
    names = sorted(str(k) for k in known)  # type: ignore[attr-defined]
    close = get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names)}."
