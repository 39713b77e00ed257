"""Names of corpora in options: `FILES`, or `FILES:en-fr` with the languages of its two sides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from bitext.languages import usual_code
from bitext.readers.file_kinds import PAIR_ENDINGS, ending_of, is_file
from bitext.readers.standard_input import NAME as STANDARD_INPUT
from translucid.ground.errors import UserError

Direction: TypeAlias = tuple[str, str]
"""The codes of the source and the target language of a translation."""

_CODE = r"[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?(?:[-_](?:[A-Z]{2}|[0-9]{3}))?"
_LANGUAGES = re.compile(f"({_CODE})-({_CODE})")
_MEANT = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,4})?)-?([A-Za-z]{2,3})?(?:[-_][A-Za-z0-9]+)*")
"""Letters after the colon that were meant as languages."""


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


def problem_of_languages(name: str) -> tuple[str, str] | None:
    """Return what is wrong with the languages in the name of a corpus, and how to write them; None if nothing is.

    >>> problem_of_languages("train.tsv:EN-ES")
    ("has the languages 'EN-ES', which are no codes", 'Write train.tsv:en-es; codes are such as en, pt-BR and zh-Hans.')
    """
    corpus = CorpusName.parse(name)
    if corpus.languages is None:
        files, _, written = name.rpartition(":")
        names_corpus = is_file(files) or ending_of(files) in PAIR_ENDINGS or files.endswith("}")
        if files in ("", STANDARD_INPUT) or is_file(name) or not names_corpus or not _MEANT.fullmatch(written):
            return None
        example = _corrected(written) or "en-es"
        return (
            f"has the languages {written!r}, which are no codes",
            f"Write {files}:{example}; codes are such as en, pt-BR and zh-Hans.",
        )
    source, target = corpus.languages
    for code in corpus.languages:
        # Codes of three letters are more than any list has; all of two letters are known.
        if len(code.replace("_", "-").split("-")[0]) == 2 and usual_code(code) is None:
            fix = "Write codes such as en, pt-BR or zh-Hans (ISO 639)."
            return f"has the language {code!r}, which is no code", fix
    if source == target or (usual_code(source) or source) == usual_code(target):
        return f"has the language {source} on both sides", f"Write {corpus.files}:en-es, for instance."
    return None


def refuse_wrong_languages(name: str) -> None:
    """Check that the languages in the name of a corpus are two different language codes.

    Raises:
        UserError: they are not.
    """
    if problem := problem_of_languages(name):
        what, fix = problem
        raise UserError(what, file=name, fix=fix)


def _corrected(written: str) -> str | None:
    """Return two language codes as they are to be written, if they can be read from some letters."""
    parts = written.replace("_", "-").split("-")
    for length in range(1, len(parts)):
        codes = usual_code("-".join(parts[:length])), usual_code("-".join(parts[length:]))
        if codes[0] and codes[1]:
            return f"{codes[0]}-{codes[1]}"
    return None


def label(direction: Direction) -> str:
    """Return the name of a direction, such as `en-fr`."""
    return "-".join(direction)


def without_languages(names: Iterable[str]) -> list[str]:
    """Return names of corpora without languages."""
    return [CorpusName.parse(name).files for name in names]
