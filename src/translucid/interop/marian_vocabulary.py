"""Read Marian's `vocab.yml` line by line: PyYAML drops pieces that it takes for other syntax."""

from __future__ import annotations

import json
import re
from pathlib import Path

from translucid.ground.errors import UserError

_LINE = re.compile(r"(.*?):\s*(\d{1,9})\s*", re.DOTALL)
_HEXADECIMAL = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")


def read_vocabulary(content: bytes, file: Path) -> dict[str, int]:
    """Return the row of each piece.

    Raises:
        UserError: a line has no piece and row, or two pieces have the same row.
    """
    ids: dict[str, int] = {}
    key = None
    text = content.decode("utf-8", "replace").removeprefix("---")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line:
            continue
        if line.startswith("? "):  # YAML's syntax for a long key, whose value is on the next line
            key = line[2:]
            continue
        found = _LINE.fullmatch(line if key is None else f"{key}{line}")
        if found is None:
            raise UserError("is not a piece and its row", file=file, line=number, fix="Get the file again.")
        key = None
        ids[_plain(found[1].strip())] = int(found[2])
    if len({*ids.values()}) != len(ids):
        raise UserError("gives two pieces the same row", file=file, fix="Get the file again.")
    return ids


def _plain(key: str) -> str:
    """Return a key without its quotes and escapes."""
    if len(key) >= 2 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) >= 2 and key[0] == key[-1] == '"':
        escaped = _HEXADECIMAL.sub(r"\1\\u00\2", key)  # JSON has no \x41
        try:
            return str(json.loads(escaped, strict=False))
        except ValueError:  # an escape that only YAML has
            return re.sub(r"\\(.)", r"\1", key[1:-1])
    return key
