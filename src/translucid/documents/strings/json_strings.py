"""JSON of strings, and Flutter's .arb: values with text for people are segments, keys never are.

ICU plurals and selections are translated case by case. In an .arb, keys that begin with `@` hold metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from translucid.data.languages import Languages, usual_code
from translucid.documents.document import Target
from translucid.documents.limits import LONGEST_NOTE
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.strings.json_edits import DEEPEST
from translucid.documents.strings.messages import is_language
from translucid.documents.strings.string_document import Strings, unicode_escape
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

_SIGN = re.compile(r'["{}\[\],:]')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a surrogate pair, which only an escape can represent."""
_LOCALE = "@@locale"


class JsonStrings(Strings):
    """A file of JSON."""

    def __init__(self, file: TextFile, parsed: object, languages: Languages, *, arb: bool) -> None:
        """Add the strings of a file.

        Args:
            file: a file of valid JSON.
            parsed: the parsed JSON of an .arb.
            languages: the source and the target language.
            arb: whether the file is an .arb.
        """
        super().__init__(file)
        self._target = languages[1]
        self._locale: tuple[int, int] | None = None
        self._ascii = file.text.isascii() and bool(re.search(r"\\u[0-9a-fA-F]{4}", file.text))
        for start, end, text, keys in values(file.text):
            if arb and keys[:1] == (_LOCALE,):
                self._locale = (start, end)
                continue
            is_metadata = arb and keys and keys[0].startswith("@")
            if not is_metadata and is_language(text, "".join(keys[-1:])):
                note = _description(parsed, keys)
                if note is None:
                    note = note_of_keys(keys)
                self.add(start, end, text, partial(self._written, raw=file.text[start:end]), note=note)

    def edits(self, targets: Mapping[int, Target]) -> list[Edit]:
        """Return the edits of the strings, and of the language that an .arb declares."""
        edits = super().edits(targets)
        if edits and self._locale and self._target and (code := usual_code(self._target)):
            edits.append(Edit(*self._locale, json.dumps(code.replace("-", "_"))))
        return edits

    def _written(self, text: str, raw: str) -> str:
        """Encode a string with the escapes that its source uses: `raw` is that source in the file."""
        written = json.dumps(text, ensure_ascii=self._ascii)
        written = _SURROGATE.sub(unicode_escape, written)
        if r"\/" in raw:
            written = written.replace("/", r"\/")
        # Some programs escape these, so that the JSON can stand in an HTML page.
        for sign in "<>&'":
            escape = f"\\u{ord(sign):04x}"
            if escape in raw.lower():
                written = written.replace(sign, escape)
        return written


def note_of_keys(keys: Sequence[str]) -> str | None:
    """Return the keys around a string as its note; of very long ones the last, which are next to the string."""
    length = 0
    for count, key in enumerate(reversed(keys), 1):
        length += len(key) + 1
        if length > LONGEST_NOTE:
            note = ".".join(keys[-count:])
            return f"…{note[1 - LONGEST_NOTE :]}"
    return ".".join(keys) or None


def _description(parsed: Any, keys: tuple[str, ...]) -> str | None:
    """Return the description in the metadata of an .arb's string, if there is one."""
    try:
        description = parsed[f"@{keys[0]}"]["description"]
    except (IndexError, KeyError, TypeError):
        return None
    return description if isinstance(description, str) else None


def values(text: str) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Yield the strings in valid JSON that are values: the start, the end, the text, and the keys of its objects.

    `json` gives no positions, so this reads the text once more.

    Raises:
        RecursionError: they are nested too deep.
    """
    keys: list[str | None] = []  # for each open object its last key; None for a list
    expects_key, end = False, 0
    while match := _SIGN.search(text, end):
        sign, end = match[0], match.end()
        if sign == '"':
            string, end = scanstring(text, end, True)
            if expects_key:
                keys[-1] = string
            else:
                yield match.start(), end, string, tuple(key for key in keys if key is not None)
        elif sign in "{[":
            between_steps()
            keys.append("" if sign == "{" else None)
            if len(keys) > DEEPEST:
                raise RecursionError
        elif sign in "}]":
            keys.pop()
        expects_key = sign == "{" or (sign == "," and keys[-1] is not None)


def read(name: str, content: bytes, languages: Languages) -> JsonStrings:
    """Parse a file of JSON.

    Raises:
        UserError: the file is not JSON, or nested too deep.
    """
    file, arb = TextFile.of(name, content), name.lower().endswith(".arb")
    try:
        # Only the metadata of an .arb is kept; other files are only checked, without objects that fill the memory.
        object_hook = dict if arb else _discard
        parsed = json.loads(file.text, parse_int=_discard, parse_float=_discard, object_pairs_hook=object_hook)
        return JsonStrings(file, parsed, languages, arb=arb)
    except JSONDecodeError as error:
        raise UserError(f"is not JSON: {error.msg}", file=name, line=error.lineno) from error
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None


def _discard(value: object) -> None:
    return None
