"""Helpers that fill documents with upper-case translations, and find installed files to test on."""

import os
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import fixed_parts

ENGLISH_SPANISH = ("en", "es")


def shouted(text):
    """Return a text with letters outside placeholders in upper case, except those that become several letters."""
    remaining, result = text, ""
    for part in fixed_parts(text):
        before, _, remaining = remaining.partition(part)
        result += _upper(before) + part
    return result + _upper(remaining)


def _upper(text):
    return "".join(map(_upper_character, text))


def _upper_character(character):
    upper = character.upper()
    return upper if len(upper) == 1 else character


def changed(marked):
    """Return an upper-case translation with unchanged marks."""
    return TaggedText(shouted(marked.text), marked.marks)


def all_changed(document):
    """Return a translation of each segment."""
    return {i: Target(changed(segment.source)) for i, segment in enumerate(document.segments)}


def placed_and_filled(name, text):
    """Return the segments of a file, each as `place: text`, and the translated file."""
    document = read_document(name, text.encode(), ENGLISH_SPANISH)
    lines = [f"{segment.place.removeprefix('line ')}: {segment.source.full_text}" for segment in document.segments]
    return lines, document.filled(all_changed(document)).decode()


def installed(*endings, most=40, largest=200_000):
    """Return up to `most` files of installed packages and of /usr/share."""
    chosen = []
    for root in (*map(Path, sys.path), Path("/usr/share")):
        if root.is_dir() and ("site-packages" in root.parts or root == Path("/usr/share")):
            files = (Path(file) for ending in endings for file in _files(root)[ending])
            fitting = [file for file in files if file.is_file() and 0 < file.stat().st_size <= largest]
            fitting.sort()
            chosen += fitting[:: max(1, len(fitting) // (most // 2))][: most // 2]
    return chosen


@cache
def _files(root):
    """Return all files below a folder by their endings; there may be 100,000 of them."""
    files = defaultdict(list)
    for folder, _, names in os.walk(root):
        for name in names:
            # pathlib would take three times as long.
            files[os.path.splitext(name)[1]].append(f"{folder}{os.sep}{name}")  # noqa: PTH122
    return files
