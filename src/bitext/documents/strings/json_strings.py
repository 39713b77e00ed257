"""JSON of strings, and Flutter's .arb: values with text for people are segments, keys never are.

ICU plurals and selections are translated case by case. In an .arb, keys that begin with `@` hold metadata.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import LONGEST_NOTE, Target
from bitext.documents.spans import TextFile
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.string_document import Strings, unicode_escape
from bitext.errors import UserError
from bitext.languages import Languages, usual_code
from bitext.protected_spans import Edit

DEEPEST = 200
"""The largest depth of nested objects and lists."""
_SIGN = re.compile(r'["{}\[\],:]')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a surrogate pair, which only an escape can represent."""
_LOCALE = "@@locale"
_METADATA = re.compile(r"@|_*comment\Z|//|\$schema\Z", re.IGNORECASE)
"""The beginning of keys of metadata."""
_FORMS = frozenset(("zero", "one", "two", "few", "many", "other"))
_TEXTS = (
    frozenset({"defaultMessage"}),
    frozenset({"message"}),
    frozenset({"string"}),
    _FORMS,
    frozenset({"translation"}),
)
"""The keys of messages: of FormatJS, of browser extensions and gotext, of Transifex, of go-i18n."""
_NOTES = ("description", "developer_comment", "comment", "context", "meaning", "translatorComment", "note")
_KEYS_OF_METADATA = frozenset(
    {*_NOTES, "id", "key", "hash", "translation", "leftDelim", "rightDelim", "position", "fuzzy", "character_limit"}
    | {"maxLength", "example", "examples", "file", "location", "source", "namespace", "notes", "screenshot"}
)


class JsonStrings(Strings):
    """A file of JSON."""

    def __init__(self, file: TextFile, parsed: object, languages: Languages, *, arb: bool) -> None:
        """Add the strings of a file of valid JSON; `parsed`: the parsed JSON of an .arb."""
        super().__init__(file)
        self._target = languages[1]
        self._locale: tuple[int, int] | None = None
        self._ascii = file.text.isascii() and bool(re.search(r"\\u[0-9a-fA-F]{4}", file.text))
        all_values = list(values(file.text))
        messages = _messages(all_values)
        for value in all_values:
            between_steps()
            keys = value.keys
            if arb and keys[:1] == (_LOCALE,):
                self._locale = (value.start, value.end)
                continue
            message = messages.get(value.owner)
            is_metadata = any(map(_METADATA.match, keys)) or _is_of_message(value, messages)
            if is_metadata or not is_language(value.text, "".join(keys[-1:])):
                continue
            note = _description(parsed, keys)
            if note is None and message:
                note = message.note
            if note is None:
                note = note_of_keys(keys)
            place, existing = value, None
            if message and message.translation:
                place, existing = message.translation, message.translation.text or None
            write = partial(self._written, raw=file.text[place.start : place.end])
            self.add(place.start, place.end, value.text, write, note=note, existing=existing)

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


class Value(NamedTuple):
    """A string in JSON that is a value."""

    start: int
    end: int
    text: str
    keys: tuple[str, ...]
    """The keys of the objects around it."""
    owners: tuple[int, ...]
    """The offsets of the objects and lists around it."""

    @property
    def owner(self) -> int:
        """The offset of the object or list that holds it; -1 for a file that is a string."""
        return self.owners[-1] if self.owners else -1


class _MessageObject(NamedTuple):
    """An object with a message and what translators should know about it."""

    texts: frozenset[str]
    """The keys whose values are translated."""
    note: str | None
    translation: Value | None
    """The value that takes the translation, if it does not replace the message."""


def _messages(values: Sequence[Value]) -> dict[int, _MessageObject]:
    """Return the objects that hold a message and its metadata, as several tools write them, by their offsets.

    In other objects, `message` and `description` are keys of texts like all others.
    """
    members: dict[int, dict[str, Value]] = defaultdict(dict)
    for value in values:
        if value.keys and value.owners:
            members[value.owner][value.keys[-1]] = value
    messages: dict[int, _MessageObject] = {}
    for owner, by_key in members.items():
        texts = next((names & by_key.keys() for names in _TEXTS if names & by_key.keys()), set[str]())
        others = by_key.keys() - texts
        # A message that is its own key is the label of a field, and so are those beside it.
        is_label = any(by_key[name].text.casefold() == name.casefold() for name in texts)
        if not texts or is_label or not others <= _KEYS_OF_METADATA:
            continue
        translation = by_key.get("translation") if "message" in texts else None
        if "translation" in others and "message" not in texts:
            texts, translation = {"translation"}, None
        note = next((by_key[name].text for name in _NOTES if name in by_key and by_key[name].text.strip()), None)
        messages[owner] = _MessageObject(frozenset(texts), note, translation)
    return messages


def _is_of_message(value: Value, messages: Mapping[int, _MessageObject]) -> bool:
    """Whether a value is metadata of a message: beside it, or in an object or a list beside it."""
    if value.owner in messages:
        return value.keys[-1] not in messages[value.owner].texts
    return any(owner in messages for owner in value.owners)


def values(text: str) -> Iterator[Value]:
    """Yield the strings in valid JSON that are values.

    `json` gives no positions, so this reads the text once more.

    Raises:
        RecursionError: they are nested too deep.
    """
    keys: list[str | None] = []  # for each open object its last key; None for a list
    owners: list[int] = []
    expects_key, end = False, 0
    while match := _SIGN.search(text, end):
        sign, end = match[0], match.end()
        if sign == '"':
            string, end = scanstring(text, end, True)
            if expects_key:
                keys[-1] = string
            else:
                around = tuple(key for key in keys if key is not None)
                yield Value(match.start(), end, string, around, tuple(owners))
        elif sign in "{[":
            between_steps()
            keys.append("" if sign == "{" else None)
            owners.append(match.start())
            if len(keys) > DEEPEST:
                raise RecursionError
        elif sign in "}]":
            keys.pop()
            owners.pop()
        expects_key = sign == "{" or (sign == "," and keys[-1] is not None)


def read(name: str, content: bytes, languages: Languages) -> JsonStrings:
    """Parse a file of JSON.

    Raises:
        UserError: the file is not JSON, or nested too deep.
    """
    file, arb = TextFile.of(name, content), name.lower().endswith(".arb")
    with explained(name):
        # Only the metadata of an .arb is kept; other files are only checked, without objects that fill the memory.
        object_hook = dict if arb else discard
        parsed = json.loads(file.text, parse_int=discard, parse_float=discard, object_pairs_hook=object_hook)
        return JsonStrings(file, parsed, languages, arb=arb)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn the errors of invalid JSON into user errors.

    Raises:
        UserError: a file is not JSON, or nested too deep.
    """
    try:
        yield
    except JSONDecodeError as error:
        raise UserError(f"is not JSON: {error.msg}", file=name, line=error.lineno) from error
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None


def discard(value: object) -> None:
    """Leave out a part of JSON that is only checked."""
