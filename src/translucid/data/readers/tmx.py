"""Sentence pairs of translation memories (.tmx, TMX 1.1 to 1.4b)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from translucid.data.languages import Languages, same_language
from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.inline import inline_text
from translucid.data.readers.lines import tell_bad
from translucid.data.readers.xml_units import xml_units
from translucid.ground.errors import UserError

MOST_LANGUAGES = 100
"""Of a file, that are remembered."""
_UNIT_FIX = "Correct the unit, or delete it."


def read_tmx(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, source, target) of the units that have both languages.

    Args:
        path: the file, gz or not.
        languages: source and target; if not given, the header's `srclang` and the only other one.
        on_bad: is told of units that can't be read.

    Raises:
        UserError: the file is unreadable, it is not plain which languages are meant, no unit has both, or a unit
            can't be read and nobody is told of it.
    """
    memory = _Memory(path, languages)
    count = 0
    for line, unit, unknown in xml_units(path, "tmx", {"tu"}, memory.begin):
        variants = [(_language(variant), variant.find("seg")) for variant in unit.iter("tuv")]
        what = f"refers to &{unknown};, which is not defined" if unknown else ""
        what = what or ("has a <tuv> without a language" if any(code is None for code, _ in variants) else "")
        what = what or ("has a <tuv> without a <seg>" if any(segment is None for _, segment in variants) else "")
        if what:
            tell_bad(path, line, what, _UNIT_FIX, "".join(unit.itertext()).strip(), on_bad)
            continue
        texts: dict[str, str] = {}
        for code, segment in variants:
            if code and segment is not None:
                texts.setdefault(code, inline_text(segment))
        if pair := memory.pair(line, unit, texts):
            count += 1
            yield line, *pair
    if not count:
        raise memory.without_pairs()


class _Memory:
    """Which languages of a file are read."""

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        self.source, self.target = languages
        self.header: str | None = None
        self.met: dict[str, None] = {}
        """Languages of the units so far, in order."""

    def begin(self, element: Element) -> None:
        if element.tag == "header":
            self.header = element.get("srclang")

    def pair(self, line: int, unit: Element, texts: dict[str, str]) -> tuple[str, str] | None:
        """Return both texts of a unit, None if one of them is not there."""
        if len(self.met) < MOST_LANGUAGES:
            self.met.update(dict.fromkeys(texts))
        if self.source and self.target:
            source = _matching(self.source, texts)
            target = _matching(self.target, {code: text for code, text in texts.items() if code != source})
        else:
            source, target = self._only(line, unit, texts)
        return (texts[source], texts[target]) if source and target else None

    def _only(self, line: int, unit: Element, texts: dict[str, str]) -> tuple[str | None, str | None]:
        """Return the header's language and the other one, where there are two."""
        wanted = self.source or unit.get("srclang") or self.header
        if wanted and wanted.lower() == "*all*":
            wanted = None
        source = _matching(wanted, texts) if wanted else None
        others = [code for code in self.met if not (wanted and same_language(code, wanted))]
        if self.target:
            others = [code for code in others if same_language(code, self.target)]
        if (wanted is None and len(texts) > 1) or any(not same_language(others[0], code) for code in others):
            raise self._ambiguous(line)
        return source, _matching(others[0], texts) if others else None

    def _ambiguous(self, line: int) -> UserError:
        what = f"holds {_listed(self.met)}: which of them is the source, and which the target"
        return UserError(what, file=self.path, line=line, fix=_fix(self.met))

    def without_pairs(self) -> UserError:
        wanted = " and ".join(filter(None, (self.source or self.header, self.target or "another language")))
        found = f"; it holds {_listed(self.met)}" if self.met else ""
        return UserError(f"has no unit in {wanted}{found}", file=self.path, fix=_fix(self.met))


def _language(variant: Element) -> str | None:
    return variant.get("xml:lang") or variant.get("lang")


def _matching(wanted: str, texts: dict[str, str]) -> str | None:
    """Return the language of a unit that is wanted: by its whole code, else by its first part."""
    exact = (code for code in texts if code.lower() == wanted.lower())
    return next(exact, None) or next((code for code in texts if same_language(code, wanted)), None)


def _listed(codes: dict[str, None]) -> str:
    return ", ".join(list(codes)[:20])


def _fix(codes: dict[str, None]) -> str:
    two = [*codes, "en", "es"][:2]
    return f"Say it, as with --set data.source_language={two[0]} data.target_language={two[1]}."
