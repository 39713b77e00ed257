"""Documents filled with translations that can be told from their sources, and files to try them on."""

import sys
from pathlib import Path

from translucid.data.non_translatable import fixed_parts
from translucid.documents.document import Target
from translucid.documents.tagged_text import TaggedText

ENGLISH_SPANISH = ("en", "es")


def shouted(text):
    """Return a text with each letter outside of placeholders in upper case, where that is one letter too."""
    rest, done = text, ""
    for part in fixed_parts(text):
        before, _, rest = rest.partition(part)
        done += _upper(before) + part
    return done + _upper(rest)


def _upper(text):
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def changed(marked):
    """Return a translation: shouted, marks where they were."""
    return TaggedText(shouted(marked.text), marked.marks)


def all_changed(document):
    """Return a translation of each segment."""
    return {i: Target(changed(segment.source)) for i, segment in enumerate(document.segments)}


def installed(*endings, most=40, largest=200_000):
    """Return files of installed packages and of the machine, as many at most, some of each place."""
    found = []
    for root in (*map(Path, sys.path), Path("/usr/share")):
        if root.is_dir() and ("site-packages" in root.parts or root == Path("/usr/share")):
            files = (file for file in root.rglob("*") if file.suffix in endings)
            fitting = [file for file in files if file.is_file() and 0 < file.stat().st_size <= largest]
            fitting.sort()
            found += fitting[:: max(1, len(fitting) // (most // 2))][: most // 2]
    return found
