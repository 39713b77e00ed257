"""Training pairs that are repeated with a fuzzy match after their source, which `memory/augmenting.py` appends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from bitext.memory.database import ENDING, VERSION
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.readers.corpus import read_pairs
from translucid.data.tokenizing.pieces import MATCH
from translucid.ground.cache import needed_in_cache
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.memory.augmenting import augmented
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import DatasetStep, sha256

KEPT = 4
"""The number of cached sets of matches; the least recently used ones are removed."""


class _Matched:
    """A corpus, followed by the pairs with a match in a file."""

    def __init__(self, corpus: Iterable[Pair], file: Path) -> None:
        self.corpus, self.file = corpus, file

    def __iter__(self) -> Iterator[Pair]:
        yield from self.corpus
        if self.file.stat().st_size:  # the reader rejects an empty file
            for pair in read_pairs(self.file):
                pair.original = Pair("", "")  # the pair without its match is in the corpus
                yield pair


class FuzzyMatches(DatasetStep):
    """Adds pairs with fuzzy matches, which come from the other training pairs; they are computed once and cached.

    Corpora of `data.mix`, `data.synthetic` and the like get none.
    """

    def corpora(self, corpora: Corpora, console: Console) -> Corpora:
        """Add matches.

        Raises:
            UserError: the cache can't be written, or the model is no translator.
        """
        data, threshold = self.data, self.data.fuzzy_matches
        if self.configuration.model.reads != "text":
            raise UserError("data.fuzzy_matches is for translators", fix="Leave it out.")
        # The files of `data.train` come first; corpora that Python code passes directly have no files.
        count = len(data.train) or len(corpora.train)
        training, other_corpora = corpora.train[:count], corpora.train[count:]
        key = sha256(f"{corpora.digest} {threshold} {VERSION} {MATCH} {data.filter.model_dump_json()}")

        def make(folder: Path) -> None:
            folder.mkdir()
            _write_matches(training, data.filter, threshold, folder, console)

        folder = needed_in_cache("data.fuzzy_matches", "matches", key, make, KEPT)
        matched = [_Matched(corpus, folder / f"{number}.tsv") for number, corpus in enumerate(training)]
        return replace(corpora, train=[*matched, *other_corpora], digest=key)


def _write_matches(
    corpora: Sequence[Iterable[Pair]], pair_filter: Filter, threshold: int, folder: Path, console: Console
) -> None:
    """Write the pairs of each corpus that have a match, with the match, as `0.tsv`, `1.tsv` and so on."""
    index = folder / f"index{ENDING}"
    with progress_bar(console, "indexing the corpus", None) as advance:
        pairs = chain.from_iterable(corpora)
        TranslationMemory.make(index, keep(pairs, pair_filter, Skipped()), "", advance)
    with (
        TranslationMemory.open(index, immutable=True) as memory,
        progress_bar(console, "looking for matches", None) as advance,
    ):
        for number, corpus in enumerate(corpora):
            with (folder / f"{number}.tsv").open("w", encoding="utf-8") as file:
                for pair in augmented(keep(corpus, pair_filter, Skipped()), memory, threshold, advance):
                    file.write(f"{_column(pair.source)}\t{_column(pair.target)}\n")
    index.unlink()


def _column(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")
