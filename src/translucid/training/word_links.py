"""Word links of training pairs by statistics, for guided alignment; they are learned once and cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from bitext.pair import Pair
from translucid.data.filtering import Filter, fault, reservoir_sample
from translucid.data.linked_pairs import LinkedPair
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.ground.cache import add_to_cache, find_cached
from translucid.ground.console import Console, progress_bar
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
"""The links of validation pairs are learned with `CORPUS` training pairs, sampled from the first `READ` with `SEED`."""


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
    valid_digest = sha256(f"{digest} {corpora.valid!r}")

    def corpus_sample() -> list[Pair]:
        return reservoir_sample(islice(corpora.filtered(pair_filter), READ), CORPUS, SEED)

    valid: Sequence[Pair] = corpora.valid
    if valid:
        (linked_valid,) = _linked([valid], corpus_sample, pair_filter, valid_digest, console)
        valid = list(linked_valid)
    return replace(corpora, train=train, valid=valid, digest=digest)


def _has_links(corpus: Iterable[Pair]) -> bool:
    return isinstance(next(iter(corpus), None), LinkedPair)


def _linked(
    texts: Sequence[Iterable[Pair]],
    extra_pairs: Callable[[], list[Pair]],
    pair_filter: Filter,
    key: str,
    console: Console,
) -> list[_Linked]:
    """Return texts with statistical links, which are learned from them and from `extra_pairs`.

    The links are in the cache under `key`, or are put there.

    Raises:
        UserError: the cache can't be written.
    """

    def make(folder: Path) -> None:
        folder.mkdir()
        with progress_bar(console, "linking words by statistics", None) as advance:
            lines = _statistical_links([*texts, extra_pairs()], pair_filter, advance)
            for number, text in enumerate(texts):
                with (folder / f"{number}.links").open("w", encoding="ascii") as file:
                    file.writelines(islice(lines, sum(1 for _ in text)))

    if not texts:
        return []
    try:
        folder = find_cached("links", key) or add_to_cache("links", key, make, KEPT)
    except OSError as error:
        what = f"training.guided_alignment needs a cache, which can't be written ({error.strerror or error})"
        raise UserError(what, fix="Set XDG_CACHE_HOME to a folder that can.") from error
    return [_Linked(text, folder / f"{number}.links") for number, text in enumerate(texts)]


def _statistical_links(
    texts: Sequence[Iterable[Pair]], pair_filter: Filter, advance: Callable[[int], None]
) -> Iterator[str]:
    """Yield a line with the links of each pair of some texts; pairs that the filter skips have none."""
    total = sum(1 for _ in chain.from_iterable(texts))
    group_count = -(-total // TOGETHER)
    for group in batched(chain.from_iterable(texts), -(-total // group_count)):
        pairs = []
        for pair in group:
            is_skipped = fault(pair, pair_filter) is not None
            pairs.append(Pair("", "") if is_skipped else pair)
        for links in statistical_links(pairs, len(pairs)):
            yield to_pharaoh(sorted(links.possible)) + "\n"
        advance(len(pairs))
