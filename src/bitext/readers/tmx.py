"""Sentence pairs of translation memories (.tmx, TMX 1.1 to 1.4b)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bitext.errors import UserError
from bitext.languages import Languages, matching_code, same_language, usual_code
from bitext.pair import ALONE
from bitext.readers.lines import OnBad, report_bad_line
from bitext.readers.xml_elements import UNIT_FIX, Element, corpus_units, inline_text

MAX_LANGUAGES = 100
"""The most languages that are collected from a file."""
NAMESPACES = {"http://www.lisa.org/tmx14": ""}
LANGUAGE = "xml:lang", "lang"
"""The attributes that name the language of a text, in TMX 1.4 and in older versions."""


def read_tmx(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line, source, target, name of the document or `ALONE`) of the units that have both languages.

    Args:
        path: the file, gzipped or not.
        languages: source and target; by default, the header's `srclang` and the only other language.
        on_bad: called with each unit that can't be read, which is then skipped.

    Raises:
        UserError: the file is unreadable, its languages are ambiguous, no unit has both of them; or a unit can't be
            read, and `on_bad` is None.
    """
    memory = _Memory(path, languages)
    has_pairs = False
    for unit in corpus_units(path, {"tmx"}, {"tu", "header"}, NAMESPACES, on_bad):
        if unit.name == "header":
            memory.header_language = unit.attributes.get("srclang")
            continue
        try:
            texts = _texts(unit)
        except ValueError as error:
            report_bad_line(path, unit.line, str(error), UNIT_FIX, unit.words().strip(), on_bad)
            continue
        if pair := memory.pair(unit, texts):
            has_pairs = True
            yield unit.line, *pair, _document_of(unit)
    if not has_pairs:
        requested = " and ".join(
            filter(None, (memory.source or memory.header_language, memory.target or "another language"))
        )
        found_languages = f"; it holds {memory.code_list}" if memory.codes else ""
        raise memory.error(f"has no unit in {requested}{found_languages}")


def _document_of(unit: Element) -> str:
    """Return the property `x-document` of a unit, or the part of its `tuid` before the last colon, or `ALONE`."""
    for child in unit.children:
        if child.name == "prop" and child.attributes.get("type") == "x-document":
            return child.text.strip()
    document, colon, _ = unit.attributes.get("tuid", "").rpartition(":")
    return document if colon else ALONE


def language_of(variant: Element) -> str:
    """Return the code of a variant's language, or ""."""
    return next(filter(None, map(variant.attributes.get, LANGUAGE)), "")


def _texts(unit: Element) -> dict[str, str]:
    """Return the texts of a unit by language.

    Raises:
        ValueError: the unit can't be read.
    """
    variants = list(unit.within("tuv"))
    codes = list(map(language_of, variants))
    if "" in codes:
        raise ValueError("has a <tuv> without a language")
    texts: dict[str, str] = {}
    for code, variant in zip(codes, variants, strict=True):
        segment = variant.child("seg")
        if segment is None:
            raise ValueError("has a <tuv> without a <seg>")
        texts.setdefault(code, inline_text(segment))
    return texts


class _Memory:
    """The languages of a translation memory, and the two of them that are read."""

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        self.source, self.target = languages
        self.header_language: str | None = None
        """The source language that the header names."""
        self.codes: dict[str, None] = {}
        """The languages of the units so far, in order."""

    def pair(self, unit: Element, texts: dict[str, str]) -> tuple[str, str] | None:
        """Return both texts of a unit, or None if it lacks one of them."""
        if len(self.codes) < MAX_LANGUAGES:
            self.codes.update(dict.fromkeys(texts))
        if self.source and self.target:
            source = matching_code(self.source, texts)
            # With the languages en and en-US, both codes could match the same text.
            target = matching_code(self.target, [code for code in texts if code != source])
        else:
            source, target = self._infer_languages(unit, texts)
        return (texts[source], texts[target]) if source and target else None

    def _infer_languages(self, unit: Element, texts: dict[str, str]) -> tuple[str | None, str | None]:
        """Return the source language of the header and the only other language."""
        source_code = self.source or unit.attributes.get("srclang") or self.header_language
        if source_code and source_code.lower() == "*all*":
            source_code = None
        source = None
        candidates = list(self.codes)
        if source_code:
            source = matching_code(source_code, texts)
            candidates = [code for code in candidates if not same_language(code, source_code)]
        if self.target:
            candidates = [code for code in candidates if same_language(code, self.target)]
        if (source_code is None and len(texts) > 1) or any(
            not same_language(candidates[0], code) for code in candidates
        ):
            what = f"holds {self.code_list}: which of them is the source, and which the target"
            raise self.error(what, unit.line)
        return source, matching_code(candidates[0], texts) if candidates else None

    @property
    def code_list(self) -> str:
        """The languages of the units so far, as text."""
        return ", ".join(list(self.codes)[:20])

    def error(self, what: str, line: int | None = None) -> UserError:
        """Return the error that the languages to read are unclear or missing."""
        source, target = [usual_code(code) or code for code in [*self.codes, "en", "es"][:2]]
        fix = f"Name them after the file, as in {self.path.name}:{source}-{target}."
        return UserError(what, file=self.path, line=line, fix=fix)
