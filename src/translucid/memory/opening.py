"""Opening of a memory by its file name: a memory itself, or any corpus through an index in the user's cache."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

from translucid import __version__
from translucid.data.languages import Languages
from translucid.data.readers.corpus import read_pairs, sides
from translucid.ground.cache import find_kept, keep
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.ground.reading import reading
from translucid.memory.database import ENDING, VERSION, is_database
from translucid.memory.translation_memory import TranslationMemory

KEPT = 4
"""The number of indices of corpora in the cache; those used last stay."""
INDEX = f"index{ENDING}"


def open_memory(
    file: str | Path, languages: Languages = (None, None), console: Console | None = None
) -> TranslationMemory:
    """Open a memory for reading.

    Args:
        file: a memory of `translucid memory add`, or a corpus of any kind, which is indexed once, and again if it
            changes.
        languages: the languages of the sources and of the targets.
        console: the console for the progress of indexing, if there is one.

    Raises:
        UserError: the file can't be read, has other languages, or its index can't be stored.
    """
    path = Path(file)
    if is_database(path):
        memory = TranslationMemory.open(path)
        memory.refuse_other_languages(languages)
        return memory
    made_from = _fingerprint(str(file), languages)
    folder = find_kept("memory", made_from)
    if folder is None:
        try:
            folder = keep("memory", made_from, partial(_index, str(file), languages, console), KEPT)
        except OSError as error:
            fix = f"Make a memory of it: translucid memory add mine{ENDING} {file}."
            raise UserError(f"its index can't be kept ({error.strerror or error})", file=file, fix=fix) from error
    return TranslationMemory.open(folder / INDEX, fixed=True)


def _index(file: str, languages: Languages, console: Console | None, folder: Path) -> None:
    folder.mkdir()
    with counting(console or Console(quiet=True), "indexing the memory", None) as advance:
        pairs = read_pairs(file, languages=languages, on_bad=lambda bad: None)
        added = TranslationMemory.make(folder / INDEX, pairs, Path(file).name, advance)
    if not added.new:
        raise UserError("holds no sentence pairs", file=file, fix="See `translucid data stats`.")


def _fingerprint(corpus: str, languages: Languages) -> str:
    """Return a hash that changes whenever the size or the times of a file of the corpus change."""
    facts = []
    for file in sides(corpus):
        with reading(file):
            status = file.stat()
        facts.append([str(file.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns])
    content = json.dumps([__version__, VERSION, languages, facts])
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()
