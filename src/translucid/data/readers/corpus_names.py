"""Names of corpora in options: `FILES`, or `FILES:en-fr` with the languages of its two sides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from translucid.data.readers.file_kinds import is_file
from translucid.data.readers.standard_input import NAME as STANDARD_INPUT

Direction: TypeAlias = tuple[str, str]
"""The codes of the source and the target language of a translation."""

_CODE = r"[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?(?:[-_](?:[A-Z]{2}|[0-9]{3}))?"
_LANGUAGES = re.compile(f"({_CODE})-({_CODE})")


class CorpusName(NamedTuple):
    """The two parts of a corpus's name."""

    files: str
    """The file, or a Moses pair `name.{en,fr}`."""
    languages: Direction | None
    """The languages of the first and the second side, if the name has them."""

    @classmethod
    def parse(cls, name: str) -> CorpusName:
        r"""Split a name; a colon in the path of a file is not the beginning of languages.

        >>> CorpusName.parse("eng-fra.tsv:en-fr")
        CorpusName(files='eng-fra.tsv', languages=('en', 'fr'))
        >>> CorpusName.parse("C:\\train.tsv").languages
        """
        files, _, languages = name.rpartition(":")
        match = _LANGUAGES.fullmatch(languages)
        # The name of an existing file may end like this, too.
        if files in ("", STANDARD_INPUT) or match is None or is_file(name):
            return cls(name, None)
        return cls(files, (match[1], match[2]))

    @property
    def suffix(self) -> str:
        """The languages as they follow the files: `:en-fr`, or nothing."""
        return f":{label(self.languages)}" if self.languages else ""


def label(direction: Direction) -> str:
    """Return the name of a direction, such as `en-fr`."""
    return "-".join(direction)


def without_languages(names: Iterable[str]) -> list[str]:
    """Return names of corpora without languages."""
    return [CorpusName.parse(name).files for name in names]
