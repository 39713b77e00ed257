r"""What stands in an Android string: escapes such as `\'` and `\n`, quotes that keep white space, tags of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from translucid.data.non_translatable import STYLE_OR_SCRIPT
from translucid.documents.tagged_text import Mark, Side
from translucid.documents.xml.xml_inline import PARTS_WORDS, Item, escaped, written_in_cdata

_SPECIAL = re.compile(
    rf"{STYLE_OR_SCRIPT}"
    r"|\\u[0-9A-Fa-f]{4}|\\.|\"|</?[A-Za-z][^<>]*>|\\",
    re.DOTALL,
)
_PLAIN = {r"\'": "'", r"\"": '"', r"\\": "\\", r"\@": "@", r"\?": "?"}
_SPACE = re.compile(r"[ \t\r\n]+")
_NAME = re.compile(r"</?([A-Za-z0-9]+)")
_BREAKS = {r"\n", r"\t"}
_VOID = {"br", "hr", "img"}


def items_of(text: str) -> Iterator[Item]:
    r"""Yield texts and marks of what stands in a string.

    >>> list(items_of(r"Don\'t\nstop"))
    ["Don't", Mark(at=0, raw='\\n', side=<Side.alone: 'alone'>, pair=None), 'stop']
    """
    quoted = text.count('"') - text.count(r"\"") if '"' in text else 0
    open_tags: dict[str, list[int]] = {}
    count = at = quotes = 0
    for match in _SPECIAL.finditer(text):
        yield _folded(text[at : match.start()], folds=not quoted)
        at, found = match.end(), match[0]
        raw = escaped(found)
        if found in _PLAIN:
            yield _PLAIN[found]
        elif found.startswith("\\u") and len(found) == 6 and _is_letter(chr(int(found[2:], 16))):
            yield chr(int(found[2:], 16))
        elif found == '"':
            count -= 1 - quotes % 2
            yield Mark(0, raw, (Side.opens, Side.closes)[quotes % 2], count)
            quotes += 1
        elif found.startswith("<") and (name := _NAME.match(found)) and name[1].lower() not in _VOID:
            numbers = open_tags.setdefault(name[1].lower(), [])
            if not found.startswith("</"):
                count -= 1
                numbers.append(count)
                yield Mark(0, raw, Side.opens, count)
            else:
                yield Mark(0, raw, Side.closes, numbers.pop()) if numbers else Mark(0, raw)
        else:
            if found in _BREAKS or found.lower().startswith("<br"):
                yield PARTS_WORDS
            yield Mark(0, raw)
    yield _folded(text[at:], folds=not quoted)


def written(text: str) -> str:
    r"""Return a text as it stands in a string.

    >>> written("Don't <stop>")
    "Don\\'t &lt;stop&gt;"
    """
    return escaped(_escaped(text))


def written_cdata(text: str) -> str:
    """Return a text as it stands in a CDATA section."""
    return written_in_cdata(_escaped(text))


def _is_letter(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def _folded(text: str, *, folds: bool) -> str:
    return _SPACE.sub(" ", text) if folds else text


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("'", r"\'").replace('"', r"\"").replace("\n", r"\n").replace("\t", r"\t")
    return f"\\{text}" if text.startswith(("@", "?")) else text
