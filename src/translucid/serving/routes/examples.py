"""Example sentences for each translator, from its run folder."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path

from translucid.corpora.phrasebook import ENGLISH_BOOK
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration

FILE = "examples.txt"
"""A file of examples in a run folder, one a line."""
MOST = 6
"""The maximum number of examples of a translator."""
LONGEST = 120
"""The maximum number of characters in an example."""
LARGEST = 2**26
"""The maximum size in bytes of a file that is read."""
PAIRS_READ = 300
"""The pairs of a corpus from which examples are chosen."""
WORDS = (5, 7, 9, 11)
"""The numbers of words of the examples that are chosen, so that they differ in length."""


def examples_of(run: Path, configuration: Configuration) -> list[str]:
    """Return examples in the source language; none if the run folder has none.

    They are those of `examples.txt`, or some of the validation pairs if these lie in the folder, as those of the demo
    do. Files elsewhere are never read, because the users of the page may have no right to read them.

    Args:
        run: the run folder.
        configuration: the configuration of the run.
    """
    try:
        if examples_file := _inside(run, FILE):
            return _fitting(read_lines(examples_file))[:MOST]
        examples = list(ENGLISH_BOOK) if configuration.preset == "demo" else []
        files = filter(None, map(partial(_inside, run), configuration.data.valid))
        source_of = attrgetter("target" if configuration.data.reverse else "source")
        texts = map(source_of, islice(read_pairs(*files), PAIRS_READ))
        return [*examples, *_varied(texts)][:MOST]
    except UserError:  # a translator with damaged examples is served without them
        return []


def _inside(run: Path, name: str) -> Path | None:
    """Return the file in the run folder that a path of the configuration names, even if the folder was moved.

    The path may be absolute, or relative to another folder: its longest ending that exists in the run folder counts.
    There is no such file if it is a link to a file elsewhere.
    """
    parts = Path("run", name).parts
    if ".." in parts:
        return None
    for start in range(1, len(parts)):
        file = run.joinpath(*parts[start:])
        if file.is_file():
            is_inside = file.resolve().is_relative_to(run.resolve()) and file.stat().st_size <= LARGEST
            return file if is_inside else None
    return None


def _fitting(texts: Iterable[str]) -> list[str]:
    """Return the texts that are neither empty nor too long, without white space around them."""
    return [text for text in map(str.strip, texts) if 0 < len(text) <= LONGEST]


def _varied(texts: Iterable[str]) -> list[str]:
    """Return the first text with each of the numbers of words in `WORDS`."""
    by_length: dict[int, str] = {}
    for text in _fitting(texts):
        by_length.setdefault(len(text.split()), text)
    return list(filter(None, map(by_length.get, WORDS)))
