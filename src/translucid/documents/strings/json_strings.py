"""JSON of strings, and Flutter's .arb: values that are language are segments, keys never are.

Plurals and selections in ICU's syntax are translated inside. What begins with `@` in an .arb is about its strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from translucid.data.languages import Languages, usual_code
from translucid.documents.document import Target
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.strings.messages import is_language
from translucid.documents.strings.string_document import Strings
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

DEEPEST = 200
"""Objects and lists that may stand in each other."""
_SIGN = re.compile(r'["{}\[\],:]')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a pair, which only an escape can hold."""
_LOCALE = "@@locale"


class JsonStrings(Strings):
    """A file of JSON."""

    def __init__(self, file: TextFile, whole: object, languages: Languages, *, arb: bool) -> None:
        """Find its strings.

        Args:
            file: of correct JSON.
            whole: what it says.
            languages: of the translation.
            arb: keys that begin with `@` are about strings.
        """
        super().__init__(file)
        self._target = languages[1]
        self._locale: tuple[int, int] | None = None
        self._plain = file.text.isascii() and bool(re.search(r"\\u[0-9a-fA-F]{4}", file.text))
        about: dict[str, Any] = whole if arb and isinstance(whole, dict) else {}
        for value in values(file.text):
            first = value.keys[0] if value.keys else ""
            if arb and first == _LOCALE:
                self._locale = (value.start, value.end)
            elif not (arb and first.startswith("@")) and is_language(value.text, value.keys[-1] if value.keys else ""):
                said = about.get(f"@{first}")
                described = said.get("description") if isinstance(said, dict) else None
                note = described if isinstance(described, str) else ".".join(value.keys) or None
                write = partial(self._written, raw=file.text[value.start : value.end])
                self.add(value.start, value.end, value.text, write, note=note)

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return what has to change; with it, the language that an .arb says it is in."""
        edits = super().edits(targets)
        if edits and self._locale and self._target and (code := usual_code(self._target)):
            edits.append(Edit(*self._locale, json.dumps(code.replace("-", "_"))))
        return edits

    def _written(self, new: str, raw: str) -> str:
        """Write a string with the escapes that `raw`, which stands in the file, prefers."""
        written = json.dumps(new, ensure_ascii=self._plain)
        written = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", written)
        if r"\/" in raw:
            written = written.replace("/", r"\/")
        for sign in "<>&'":
            if f"\\u{ord(sign):04x}" in raw.lower():
                written = written.replace(sign, f"\\u{ord(sign):04x}")
        return written


class Value(NamedTuple):
    """A string that is a value, where it stands."""

    start: int
    end: int
    text: str
    keys: tuple[str, ...]
    """On the way to it."""


def values(text: str) -> Iterator[Value]:
    """Yield the strings in correct JSON that are values.

    Raises:
        RecursionError: they are nested too deep.
    """
    keys: list[str | None] = []  # of each object that is open, the last key; of a list, none
    expects_key = False
    match = _SIGN.search(text)
    while match:
        sign, end = match[0], match.end()
        if sign in "{[":
            between_steps()
            keys.append("" if sign == "{" else None)
            if len(keys) > DEEPEST:
                raise RecursionError
            expects_key = sign == "{"
        elif sign in "}]":
            keys.pop()
            expects_key = False
        elif sign == ",":
            expects_key = keys[-1] is not None
        elif sign == ":":
            expects_key = False
        else:
            string, end = scanstring(text, end, True)
            if expects_key:
                keys[-1] = string
            else:
                yield Value(match.start(), end, string, tuple(key for key in keys if key is not None))
        match = _SIGN.search(text, end)


def read(name: str, content: bytes, languages: Languages) -> JsonStrings:
    """Take a file of JSON apart.

    Raises:
        UserError: it is not JSON, or nested hundreds deep.
    """
    file, arb = TextFile.of(name, content), name.lower().endswith(".arb")
    try:
        # What is not an .arb is only looked at for errors: nothing of it is kept.
        keeps = dict if arb else _nothing
        whole = json.loads(file.text, parse_int=_nothing, parse_float=_nothing, object_pairs_hook=keeps)
        return JsonStrings(file, whole, languages, arb=arb)
    except JSONDecodeError as error:
        raise UserError(f"is not JSON: {error.msg}", file=name, line=error.lineno) from error
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None


def _nothing(value: object) -> None:
    return None
