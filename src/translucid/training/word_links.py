"""Word links of training pairs by statistics, for guided alignment; they are learned once and cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from translucid.data.filtering import Filter, fault, reservoir_sample
from translucid.data.linked_pairs import LinkedPair
from translucid.data.readers.corpus import Pair
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.ground.cache import find_kept
from translucid.ground.cache import keep as keep_folder
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.inspection.statistical_alignment import statistical_links
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.guided_alignment import LinkFile
from translucid.training.dataset import sha256

KEPT = 4
"""The number of cached sets of links; the least recently used ones are removed."""
TOGETHER = 200_000
"""The largest number of pairs that are linked together, which takes about a minute and 1 GB on one core."""
CORPUS, READ, SEED = 20_000, 1_000_000, 1
"""The number of training pairs from which the links of validation pairs are learned too, drawn from the first so many
with this seed."""


class _Linked:
    """A corpus with links from a file."""

    def __init__(self, corpus: Iterable[Pair], file: Path) -> None:
        self.corpus, self.file = corpus, LinkFile(str(file))

    def __iter__(self) -> Iterator[Pair]:
        return self.file.of(self.corpus)


def with_links(configuration: Configuration, corpora: Corpora, console: Console) -> Corpora:
    """Link the words of the corpora that have no links, if the configuration asks for guided alignment.

    Validation pairs are linked, too, to measure the alignment loss.

    Raises:
        UserError: the cache can't be written.
    """
    if not configuration.training.guided_alignment:
        return corpora
    pair_filter, train = configuration.data.filter, list(corpora.train)
    unlinked = [number for number, corpus in enumerate(train) if not _has_links(corpus)]
    digest = sha256(f"{corpora.digest} {unlinked} {pair_filter}")
    linked = _linked([train[number] for number in unlinked], list, pair_filter, digest, console)
    for number, corpus in zip(unlinked, linked, strict=True):
        train[number] = corpus
    # Validation pairs may change when a run is resumed, so the links of training pairs don't depend on them.
    of_valid = sha256(f"{digest} {corpora.valid!r}")

    def few() -> list[Pair]:
        return reservoir_sample(islice(corpora.kept(pair_filter), READ), CORPUS, SEED)

    valid: Sequence[Pair] = corpora.valid
    if valid:
        (linked_valid,) = _linked([valid], few, pair_filter, of_valid, console)
        valid = list(linked_valid)
    return replace(corpora, train=train, valid=valid, digest=digest)


def _has_links(corpus: Iterable[Pair]) -> bool:
    return isinstance(next(iter(corpus), None), LinkedPair)


def _linked(
    texts: Sequence[Iterable[Pair]], more: Callable[[], list[Pair]], pair_filter: Filter, key: str, console: Console
) -> list[_Linked]:
    """Return texts with statistical links, which are learned from them and from `more` pairs.

    The links are in the cache under `key`, or are put there.

    Raises:
        UserError: the cache can't be written.
    """

    def make(folder: Path) -> None:
        folder.mkdir()
        with counting(console, "linking words by statistics", None) as advance:
            lines = _statistical_links([*texts, more()], pair_filter, advance)
            for number, text in enumerate(texts):
                with (folder / f"{number}.links").open("w", encoding="ascii") as file:
                    file.writelines(islice(lines, sum(1 for _ in text)))

    if not texts:
        return []
    try:
        folder = find_kept("links", key) or keep_folder("links", key, make, KEPT)
    except OSError as error:
        what = f"training.guided_alignment needs a cache, which can't be written ({error.strerror or error})"
        raise UserError(what, fix="Set XDG_CACHE_HOME to a folder that can.") from error
    return [_Linked(text, folder / f"{number}.links") for number, text in enumerate(texts)]


def _statistical_links(
    texts: Sequence[Iterable[Pair]], pair_filter: Filter, advance: Callable[[int], None]
) -> Iterator[str]:
    """Yield a line with the links of each pair of some texts; pairs that the filter skips have none."""
    total = sum(1 for _ in chain.from_iterable(texts))
    parts = -(-total // TOGETHER)
    for part in batched(chain.from_iterable(texts), -(-total // parts)):
        pairs = []
        for pair in part:
            is_skipped = fault(pair, pair_filter) is not None
            pairs.append(Pair("", "") if is_skipped else pair)
        for links in statistical_links(pairs, len(pairs)):
            yield to_pharaoh(sorted(links.possible)) + "\n"
        advance(len(pairs))
