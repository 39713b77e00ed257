"""Sentences to try a translator with: those that its run folder has of its own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from translucid.corpora.phrasebook import ENGLISH_BOOK
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration

FILE = "examples.txt"
"""Of a run folder: sentences to offer, one a line."""
MOST = 6
"""Sentences that are offered."""
LONGEST = 120
"""Characters of one."""
LARGEST = 2**26
"""Bytes of a file that is read."""
READ = 300
"""Pairs of a corpus that sentences are chosen from."""
WORDS = (5, 7, 9, 11)
"""Lengths that are chosen, so that they differ."""


def examples_of(run: Path, configuration: Configuration) -> list[str]:
    """Return sentences in the source language; none where the run folder holds none.

    They are those of `examples.txt`, or some of the validation pairs if these lie in the folder, as the demo's do.
    Files elsewhere are never read: whoever may see the page need not be one who may see them.

    Args:
        run: the folder.
        configuration: its own.
    """
    try:
        if own := _inside(run, FILE):
            return _fitting(read_lines(own))[:MOST]
        book = ENGLISH_BOOK if configuration.preset == "demo" else ()
        files = [file for name in configuration.data.valid if (file := _inside(run, name))]
        pairs = islice(read_pairs(*files), READ)
        return [*book, *_varied(pair.target if configuration.data.reverse else pair.source for pair in pairs)][:MOST]
    except UserError:  # a file that is damaged takes nothing from the translator
        return []


def _inside(run: Path, name: str) -> Path | None:
    """Return the file in the run folder that a path of the configuration means, wherever the folder was moved.

    It is none if it is a link to a file elsewhere.
    """
    parts = Path("run", name).parts
    places = [run.joinpath(*parts[first:]) for first in range(1, len(parts))]
    found = next((place for place in places if ".." not in parts and place.is_file()), None)
    inside = found and found.resolve().is_relative_to(run.resolve()) and found.stat().st_size <= LARGEST
    return found if inside else None


def _fitting(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if 0 < len(text.strip()) <= LONGEST]


def _varied(texts: Iterable[str]) -> list[str]:
    """Return the first text of each wanted number of words."""
    lengths = {len(text.split()): text for text in reversed(_fitting(texts))}
    return [lengths[count] for count in WORDS if count in lengths]
