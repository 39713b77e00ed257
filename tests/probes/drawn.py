"""Random words and tags, as in documents of the XML formats."""

from random import Random
from xml.sax.saxutils import escape

WORDS = [
    "cat",
    "The",
    "R&D",
    "é",
    "a<b",
    "über",
    "日本",
    "🙂",
    "don't",
    '"so"',
    "one",
    "%s",
    "{name}",
    "1,000",
    "end.",
    "]]>",
]
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def text(chance: Random) -> str:
    """Return random words escaped for XML, with at least one letter."""
    words = [chance.choice(WORDS) for _ in range(chance.randrange(4))] + ["word"]
    chance.shuffle(words)
    return chance.choice(["", " "]) + escape(" ".join(words)) + chance.choice(["", " "])


def tagged(chance: Random, tags, depth: int = 0) -> str:
    """Return texts with tags; `tags` are functions that put a tag around its content, or leave the content out."""
    parts = [text(chance)]
    for _ in range(chance.choice([0, 1, 1, 2])):
        inside = tagged(chance, tags, depth + 1) if depth < 3 else text(chance)
        parts += [chance.choice(tags)(inside), chance.choice(["", text(chance)])]
    return "".join(parts)
