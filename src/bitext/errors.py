"""The exception for what the user can fix, in one clear line; any other exception is a defect of this program."""

from __future__ import annotations

_LONGEST = 2000
"""The most characters of a message: what it quotes from the user's files may be of any length."""


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
