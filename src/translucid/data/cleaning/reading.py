"""A corpus that is read twice: first for its profile, then to judge each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from translucid.data.cleaning.cleaner import UNREADABLE, Cleaner, Judged
from translucid.data.cleaning.profile import SAMPLE, Profile
from translucid.data.filtering import reservoir_sample
from translucid.data.languages import Languages
from translucid.data.readers.bad_lines import BadLine
from translucid.data.readers.corpus import Pair, PlacedPair, placed_pairs
from translucid.ground.errors import UserError

STEP = 1000
"""The number of pairs between two reports of progress."""


class Reading:
    """The files of a corpus."""

    def __init__(self, files: Sequence[str], languages: Languages) -> None:
        """Read nothing yet; `languages` is passed to `read_pairs`."""
        self.files, self.languages = files, languages
        self.count = 0
        """The number of pairs that `profile` has read."""

    def profile(self, advance: Callable[[int], None]) -> Profile:
        """Read all pairs and return the profile of a sample of them.

        Args:
            advance: called with the number of pairs read since the last call.

        Raises:
            UserError: a file is unreadable, or there are no pairs.
        """

        def counted() -> Iterator[Pair]:
            for placed in self._placed(_ignore):
                self.count += 1
                if self.count % STEP == 0:
                    advance(STEP)
                yield placed.pair

        sample = reservoir_sample(counted(), SAMPLE, seed=1)
        if not sample:
            raise UserError("holds no sentence pairs", file=self.files[0], fix="Is this the right file?")
        return Profile.of(sample, self.languages)

    def judged(self, cleaner: Cleaner) -> Iterator[Judged]:
        """Yield all pairs and, at their places, the lines that are not pairs."""
        bad: list[BadLine] = []
        for judged in cleaner.judge(self._placed(bad.append)):
            yield from _unreadable(bad)
            yield judged
        yield from _unreadable(bad)

    def _placed(self, on_bad: Callable[[BadLine], None]) -> Iterator[PlacedPair]:
        return placed_pairs(*self.files, languages=self.languages, on_bad=on_bad)


def _ignore(bad: BadLine) -> None:
    """Ignore a bad line at the first reading; `judged` reports it."""


def _unreadable(bad: list[BadLine]) -> Iterator[Judged]:
    """Yield the bad lines since the last pair, and forget them."""
    for file, line, what, text in bad:
        yield Judged(file, line, Pair(text, ""), UNREADABLE, what)
    bad.clear()
