"""Opening of a memory by its file name: a memory itself, or any corpus through an index in the user's cache."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

from bitext.languages import Languages
from bitext.memory.database import ENDING, VERSION, is_database
from bitext.memory.translation_memory import TranslationMemory
from bitext.reading import reading
from translucid import __version__
from translucid.data.readers.corpus import read_pairs, sides
from translucid.ground.cache import add_to_cache, find_cached
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError

KEPT = 4
"""The number of corpus indices in the cache; the least recently used ones are removed."""
INDEX = f"index{ENDING}"


def open_memory(
    file: str | Path, languages: Languages = (None, None), console: Console | None = None
) -> TranslationMemory:
    """Open a memory for reading.

    Args:
        file: a memory of `translucid memory add`, or a corpus of any kind, which is indexed once, and again after
            it changes.
        languages: the languages of the sources and of the targets.
        console: where to show the progress of indexing, if anywhere.

    Raises:
        UserError: the file can't be read, has other languages, or its index can't be stored.
    """
    path = Path(file)
    if is_database(path):
        memory = TranslationMemory.open(path)
        memory.refuse_other_languages(languages)
        return memory
    key = _fingerprint(str(file), languages)
    folder = find_cached("memory", key)
    if folder is None:
        try:
            folder = add_to_cache("memory", key, partial(_index, str(file), languages, console), KEPT)
        except OSError as error:
            fix = f"Make a memory of it: translucid memory add mine{ENDING} {file}."
            raise UserError(f"its index can't be kept ({error.strerror or error})", file=file, fix=fix) from error
    return TranslationMemory.open(folder / INDEX, immutable=True)


def _index(file: str, languages: Languages, console: Console | None, folder: Path) -> None:
    folder.mkdir()
    with progress_bar(console or Console(quiet=True), "indexing the memory", None) as advance:
        pairs = read_pairs(file, languages=languages, on_bad=lambda line: None)
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
