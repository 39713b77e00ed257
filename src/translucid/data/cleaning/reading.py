"""A corpus that is read twice: to see what is usual in it, and to judge each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from translucid.data.cleaning.cleaner import UNREADABLE, Cleaner, Judged
from translucid.data.cleaning.profile import SAMPLE, Profile
from translucid.data.filtering import draw
from translucid.data.languages import Languages
from translucid.data.readers.bad_lines import BadLine
from translucid.data.readers.corpus import Pair, PlacedPair, placed_pairs
from translucid.ground.errors import UserError

STEP = 1000
"""Pairs after which somebody is told how far it is."""


class Reading:
    """The files of a corpus."""

    def __init__(self, files: Sequence[str], languages: Languages) -> None:
        """`languages`: as far as they are known; see `read_pairs`."""
        self.files, self.languages = files, languages
        self.count = 0
        """Pairs, known when the profile is."""

    def profile(self, advance: Callable[[int], None]) -> Profile:
        """Read all pairs, and look at a sample of them.

        Args:
            advance: is told how many more are read.

        Raises:
            UserError: a file is unreadable, or there is no pair at all.
        """

        def counted() -> Iterator[Pair]:
            for one in self._placed(_ignored):
                self.count += 1
                if self.count % STEP == 0:
                    advance(STEP)
                yield one.pair

        sample = draw(counted(), SAMPLE, seed=1)
        if not sample:
            raise UserError("holds no sentence pairs", file=self.files[0], fix="Is this the right file?")
        return Profile.of(sample, self.languages)

    def judged(self, cleaner: Cleaner) -> Iterator[Judged]:
        """Yield all that is in the files, lines that are no pairs among them."""
        bad: list[BadLine] = []
        for judged in cleaner.judge(self._placed(bad.append)):
            yield from _unreadable(bad)
            yield judged
        yield from _unreadable(bad)

    def _placed(self, on_bad: Callable[[BadLine], None]) -> Iterator[PlacedPair]:
        return placed_pairs(*self.files, languages=self.languages, on_bad=on_bad)


def _ignored(bad: BadLine) -> None:
    """It is told of when the pairs are judged."""


def _unreadable(bad: list[BadLine]) -> Iterator[Judged]:
    """Yield what was told of since the last pair, once."""
    for file, line, what, text in bad:
        yield Judged(file, line, Pair(text, ""), UNREADABLE, what)
    bad.clear()
