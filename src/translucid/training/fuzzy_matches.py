"""Training pairs learned a second time with a near match behind their source; see `memory/augmenting.py`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.readers.corpus import Pair, read_pairs
from translucid.data.tokenizing.reserved import MATCH
from translucid.ground.cache import find_kept
from translucid.ground.cache import keep as keep_folder
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.memory.augmenting import augmented
from translucid.memory.database import ENDING, VERSION
from translucid.memory.translation_memory import TranslationMemory
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora

KEPT = 4
"""Trainings whose matches stay, those used last."""


class _Matched:
    """A corpus, and behind it those of its pairs that have a match, with it."""

    def __init__(self, corpus: Iterable[Pair], file: Path) -> None:
        self.corpus, self.file = corpus, file

    def __iter__(self) -> Iterator[Pair]:
        again = read_pairs(self.file) if self.file.stat().st_size else iter(())
        return chain(self.corpus, again)


def with_matches(configuration: Configuration, corpora: Corpora, console: Console) -> Corpora:
    """Return corpora with the matches that the configuration asks for; `data.mix`, `data.synthetic` .. have none.

    The matches are those of the training text in itself. They are looked up once and kept in the user's cache.

    Raises:
        UserError: they can't be kept.
    """
    least, data = configuration.data.fuzzy_matches, configuration.data
    if not least:
        return corpora
    if configuration.model.reads != "text":
        raise UserError("data.fuzzy_matches is for translators", fix="Leave it out.")
    count = len(data.train) or len(corpora.train)
    own, rest = corpora.train[:count], corpora.train[count:]
    text = hashlib.sha256(
        f"{corpora.digest} {least} {VERSION} {MATCH} {data.filter.model_dump_json()}".encode()
    ).hexdigest()

    def make(folder: Path) -> None:
        folder.mkdir()
        _look_up(own, data.filter, least, folder, console)

    try:
        folder = find_kept("matches", text) or keep_folder("matches", text, make, KEPT)
    except OSError as error:
        what = f"data.fuzzy_matches needs a cache, which can't be written ({error.strerror or error})"
        raise UserError(what, fix="Set XDG_CACHE_HOME to a folder that can.") from error
    matched = [_Matched(corpus, folder / f"{number}.tsv") for number, corpus in enumerate(own)]
    return replace(corpora, train=[*matched, *rest], digest=text)


def _look_up(corpora: Sequence[Iterable[Pair]], wanted: Filter, least: int, folder: Path, console: Console) -> None:
    index = folder / f"index{ENDING}"
    with counting(console, "indexing the corpus", None) as advance:
        pairs = chain.from_iterable(corpora)
        TranslationMemory.make(index, keep(pairs, wanted, Skipped()), "", advance)
    with TranslationMemory.open(index, fixed=True) as memory, counting(console, "looking for matches", None) as advance:
        for number, corpus in enumerate(corpora):
            with (folder / f"{number}.tsv").open("w", encoding="utf-8") as file:
                for pair in augmented(keep(corpus, wanted, Skipped()), memory, least, advance):
                    file.write(f"{_column(pair.source)}\t{_column(pair.target)}\n")
    index.unlink()


def _column(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")
