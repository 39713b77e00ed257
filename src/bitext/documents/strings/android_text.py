r"""The content of Android strings: escapes such as `\'` and `\n`, quotes that preserve white space, HTML tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from bitext.documents.markup.html_elements import BLOCKS
from bitext.documents.strings.messages import wraps
from bitext.documents.tagged_text import Side
from bitext.documents.xml.xml_inline import WORD_BREAK, Divider, Item, escaped, unplaced, written_in_cdata
from bitext.protected_spans import STYLE_OR_SCRIPT

_SPECIAL = re.compile(
    rf"{STYLE_OR_SCRIPT}"
    r"|\\u[0-9A-Fa-f]{4}|\\.|\"|(?<!%)</?[A-Za-z][^<>]*>|\\",
    re.DOTALL,
)
_PLAIN = {r"\'": "'", r"\"": '"', r"\\": "\\", r"\@": "@", r"\?": "?"}
_TO_ESCAPE = str.maketrans({"\\": "\\\\", "'": r"\'", '"': r"\"", "\n": r"\n", "\t": r"\t"})
_SPACE = re.compile(r"[ \t\r\n]+")
_NAME = re.compile(r"</?([A-Za-z0-9]+)")
_BREAKS = {r"\n", r"\t"}
_VOID = {"br", "hr", "img"}


def items_of(text: str) -> Iterator[Item]:
    """Yield the texts and marks of a string."""
    # In quotes, white space is preserved; escaped quotes do not count.
    fold = str if text.count('"') > text.count(r"\"") else partial(_SPACE.sub, " ")
    open_tags: dict[str, list[int]] = {}
    position = pair = 0  # pairs are numbered from -1 downwards, as the XML elements around have the numbers from 0
    line_start = 0
    in_quotes = False
    for match in _SPECIAL.finditer(text):
        yield fold(text[position : match.start()])
        position, token = match.end(), match[0]
        raw = escaped(token)
        if token in _PLAIN:
            yield _PLAIN[token]
        elif token.startswith("\\u") and len(token) == 6 and _is_visible(chr(int(token[2:], 16))):
            yield chr(int(token[2:], 16))
        elif token == '"':
            pair -= not in_quotes
            yield unplaced(raw, Side.of_tag(closes=in_quotes), pair)
            in_quotes = not in_quotes
        elif token.startswith("<") and (name := _NAME.match(token)) and name[1].lower() in BLOCKS:
            yield Divider(0, raw)
        elif token.startswith("<") and (name := _NAME.match(token)) and name[1].lower() not in _VOID:
            pairs = open_tags.setdefault(name[1].lower(), [])
            if not token.startswith("</"):
                pair -= 1
                pairs.append(pair)
                yield unplaced(raw, Side.opens, pair)
            elif pairs:
                yield unplaced(raw, Side.closes, pairs.pop())
            else:
                yield unplaced(raw)
        elif token == r"\t" or (token == r"\n" and not wraps(text[line_start : match.start()], text, match)):
            yield Divider(0, raw)
        else:
            if token in _BREAKS or token.lower().startswith("<br"):
                yield WORD_BREAK
            yield unplaced(raw)
        if token in _BREAKS:
            line_start = position
    yield fold(text[position:])


def written(text: str) -> str:
    r"""Return a text escaped for a string.

    >>> written("Don't <stop>")
    "Don\\'t &lt;stop&gt;"
    """
    return escaped(_escaped(text))


def written_cdata(text: str) -> str:
    """Return a text escaped for a CDATA section."""
    return written_in_cdata(_escaped(text))


def _is_visible(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def _escaped(text: str) -> str:
    text = text.translate(_TO_ESCAPE)
    # At the beginning, these would make the string a reference to a resource.
    return f"\\{text}" if text.startswith(("@", "?")) else text
