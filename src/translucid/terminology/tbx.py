"""Termbases in TBX, the exchange format of terminology (ISO 30042): version 2 (`<martif>`), and version 3 (`<tbx>`).

A data category is an attribute in one style of version 3 and in version 2, and an element in the other style:
`<descrip type="subjectField">` (DCA), `<min:subjectField>` (DCT).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import quoteattr

from bitext.documents.xml.xml_file import escaped
from bitext.languages import Languages, matching_code, same_language
from bitext.readers.lines import OnBad, one_space, report_bad_line
from bitext.readers.xml_elements import UNIT_FIX, Element, corpus_units
from translucid.ground.errors import UserError
from translucid.terminology.glossary import Sense, TermRow

Dialect: TypeAlias = Literal["dca", "dct", "martif"]
"""The styles of version 3, and version 2."""
ROOTS = {"martif", "tbx"}
ENTRIES = {"termEntry", "conceptEntry"}
LANGUAGE_SECTIONS = {"langSet", "langSec"}
TERM_SECTIONS = {"tig", "ntig", "termSec"}
_GROUPS = {"descripGrp", "termNoteGrp", "termGrp", "adminGrp"}
_ED_2 = "urn:iso:std:iso:30042:ed-2"
_MODULES = "min", "basic", "core", "linguist"
NAMESPACES = {_ED_2: "", "http://www.lisa.org/TBX-Specification.33.0.html": ""} | {
    f"http://www.tbxinfo.net/ns/{module}": "" for module in _MODULES
}
MAX_LANGUAGES = 200
"""The most languages that are collected from a file."""
MOST_ROWS = 10_000
"""The most pairs of terms, times their contexts, that are read from an entry."""
PARTS_OF_SPEECH = {"propernoun": "name", "adj": "adjective", "adv": "adverb", "n": "noun", "v": "verb"}
"""Parts of speech with another name here; letters only, in lower case."""
UNUSED_STATUS = ("superseded", "deprecated", "forbidden", "obsolete", "notrecommended")
"""The beginnings of administrative statuses of terms that nobody should write any more, in lower case."""
CASE_NOTE = "case-sensitive"
"""The note on a term whose capitals matter, for which TBX-Basic has no category."""


@dataclass
class LeftOut:
    """What a term list has no place for."""

    categories: Counter[str] = field(default_factory=Counter)
    """The number of texts of each data category."""
    statuses: int = 0
    """The number of translations that are superseded, deprecated or forbidden."""
    without_language: int = 0
    """The number of entries that lack one of the languages."""

    def __str__(self) -> str:
        parts = []
        if self.without_language:
            parts.append(f"{self.without_language:,} entries without both languages")
        if self.statuses:
            parts.append(f"{self.statuses:,} translations that are superseded or deprecated")
        parts += [f"{name} ({count:,})" for name, count in sorted(self.categories.items())]
        return ", ".join(parts)


class _TermSection(NamedTuple):
    """A term of one language with its properties."""

    line: int
    text: str
    properties: dict[str, list[str]]

    @property
    def status(self) -> str:
        return "".join(self.properties.get("administrativeStatus", [])).casefold()

    @property
    def part_of_speech(self) -> str:
        """The part of speech in the words of a term list, or `phrase`; empty if there is none."""
        for name in self.properties.get("partOfSpeech", []):
            letters = "".join(filter(str.isalpha, name)).casefold()
            letters = PARTS_OF_SPEECH.get(letters, letters)
            if letters in {"noun", "verb", "adjective", "adverb", "name", "other"}:
                return letters
        types = self.properties.get("termType", [])
        return "phrase" if any(name.startswith("phrase") for name in types) else ""


def read_tbx(
    file: Path, languages: Languages = (None, None), on_bad: OnBad = None, left_out: LeftOut | None = None
) -> Iterator[TermRow]:
    """Yield each source term of each entry with each of its translations, those that are preferred first.

    A term with several contexts gives a row for each. Superseded and deprecated terms are no translations, but may
    occur in sources.

    Args:
        file: the file, gzipped or not.
        languages: source and target; by default, the language of the file (`xml:lang` of its root) and the only other.
        on_bad: called with each entry that can't be read, which is then skipped.
        left_out: counts what is not read.

    Raises:
        UserError: the file is unreadable or harmful, or its languages are ambiguous; or an entry can't be read, and
            `on_bad` is None.
    """
    left_out = left_out or LeftOut()
    source, target = _both_languages(file, languages, on_bad)
    has_rows = False
    for entry in corpus_units(file, ROOTS, ENTRIES, NAMESPACES, on_bad):
        for number, row in enumerate(_rows(entry, source, target, left_out)):
            has_rows = True
            if number == MOST_ROWS:
                report_bad_line(file, entry.line, f"has more than {MOST_ROWS:,} pairs of terms", UNIT_FIX, "", on_bad)
                break
            yield row
    if not has_rows:
        raise UserError(f"has no term in {source} with a translation into {target}", file=file, fix="Check the codes.")


def _both_languages(file: Path, languages: Languages, on_bad: OnBad) -> tuple[str, str]:
    """Return the source and the target language; those that are not given are inferred from all of the file.

    Raises:
        UserError: the file has not exactly one language beside the source language, or no source language.
    """
    source, target = languages
    if source and target:
        return source, target
    ignore = None if on_bad is None else lambda bad: None  # the second reading reports them
    codes: dict[str, None] = {}
    root_code: str | None = None
    for entry in corpus_units(file, ROOTS, ENTRIES, NAMESPACES, ignore):
        root_code = root_code or entry.inherited("xml:lang")
        if len(codes) < MAX_LANGUAGES:
            codes.update(dict.fromkeys(map(_code, entry.within(*LANGUAGE_SECTIONS))))
    codes.pop("", None)
    listed = ", ".join(codes)
    if source is None:
        others = [code for code in codes if not target or not same_language(code, target)]
        if root_code and any(same_language(code, root_code) for code in others):
            source = matching_code(root_code, others)
        elif len(others) == 1:
            (source,) = others
    others = [code for code in codes if not source or not same_language(code, source)]
    if target is None and len(others) == 1:
        (target,) = others
    if source and target:
        return source, target
    what = f"has the languages {listed}" if codes else "names no languages"
    raise UserError(what, file=file, fix="Name both languages; translucid terms convert takes their codes.")


def _code(section: Element) -> str:
    return section.attributes.get("xml:lang") or section.attributes.get("lang") or ""


def _rows(entry: Element, source: str, target: str, left_out: LeftOut) -> Iterator[TermRow]:
    """Yield the rows of an entry; a small entry may have millions, until the caller stops."""
    entry_properties = _properties(entry)
    sections: dict[str, list[Element]] = {}
    for section in entry.within(*LANGUAGE_SECTIONS):
        sections.setdefault(_code(section), []).append(section)
    target_code = matching_code(target, sections)
    source_sections: list[Element] = []
    for code in sections:
        if code != target_code and same_language(code, source):
            source_sections += sections[code]
    target_sections = sections[target_code] if target_code is not None else []
    sources, targets = _terms(source_sections), _terms(target_sections)
    if not sources or not targets:
        left_out.without_language += 1
        return
    used_targets = [term for term in targets if not term.status.startswith(UNUSED_STATUS)]
    left_out.statuses += len(targets) - len(used_targets)
    used_targets.sort(key=lambda term: not term.status.startswith("preferred"))  # others keep their order
    for properties in (entry_properties, *map(_properties, source_sections + target_sections)):
        _count_unread(properties, left_out)
    for term in (*sources, *targets):
        _count_unread(term.properties, left_out)
    left_out.categories["context"] += sum(len(term.properties.get("context", [])) for term in targets)
    left_out.categories += Counter()  # drops zeros
    domain = "; ".join(entry_properties.get("subjectField", []))
    for term in sources:
        term_domain = "; ".join(term.properties.get("subjectField", [])) or domain
        for translation in used_targets:
            part_of_speech = term.part_of_speech or translation.part_of_speech
            case = "case" if CASE_NOTE in term.properties.get("note", []) else ""
            attributes = [attribute for attribute in (part_of_speech, case) if attribute]
            for example in term.properties.get("context", []) or [""]:
                yield TermRow(term.line, term.text, translation.text, attributes, term_domain, example)


def _terms(sections: Iterable[Element]) -> list[_TermSection]:
    """Return the terms of language sections, without repetitions."""
    terms: dict[str, _TermSection] = {}
    for section in sections:
        # A few programs put <term> into the language section itself.
        for element in (*section.within(*TERM_SECTIONS), *(part for part in section.children if part.name == "term")):
            properties = _properties(element) if element.name != "term" else {"term": [one_space(element.text)]}
            for text in properties.get("term", []):
                if text:
                    terms.setdefault(text, _TermSection(element.line, text, properties))
    return list(terms.values())


def _properties(element: Element) -> dict[str, list[str]]:
    """Return the texts of an element by data category, also those in groups, but not those of the levels below."""
    properties: dict[str, list[str]] = {}
    for child in element.children:
        if child.name in _GROUPS:
            for category, texts in _properties(child).items():
                properties.setdefault(category, []).extend(texts)
        elif child.name not in LANGUAGE_SECTIONS | TERM_SECTIONS:
            category = child.attributes.get("type") or child.name
            properties.setdefault(category, []).append(one_space(child.text))
    return properties


def _count_unread(properties: dict[str, list[str]], left_out: LeftOut) -> None:
    for category in ("definition", "note", "source"):
        texts = [text for text in properties.get(category, []) if text != CASE_NOTE]
        left_out.categories[category] += len(texts)


def tbx_text(senses: Iterable[Sense], languages: tuple[str, str], dialect: Dialect, version: str) -> Iterator[str]:
    """Yield the parts of a file with an entry for each sense; read again, it has the same terms."""
    source, target = map(quoteattr, languages)
    entry, language, section = ("conceptEntry", "langSec", "termSec")
    if dialect == "martif":
        entry, language, section = ("termEntry", "langSet", "tig")
    yield _header(dialect, source, version)
    for number, sense in enumerate(senses, 1):
        yield f'<{entry} id="t{number}">'
        for domain in sense.domains:
            yield _category("descrip", "subjectField", domain, dialect)
        yield f"<{language} xml:lang={source}><{section}>"
        yield _term(sense.source, sense, dialect)
        for example in sense.examples:
            yield _category("descrip", "context", example, dialect)
        if sense.case:
            yield f"<note>{CASE_NOTE}</note>"
        yield f"</{section}></{language}><{language} xml:lang={target}>"
        for text in sense.targets:
            yield f"<{section}>{_term(text, sense, dialect)}</{section}>"
        yield f"</{language}></{entry}>\n"
    yield f"</body></text>\n</{'martif' if dialect == 'martif' else 'tbx'}>\n"


def _header(dialect: Dialect, source: str, version: str) -> str:
    described = f"<fileDesc><sourceDesc><p>Translucid {version}</p></sourceDesc></fileDesc>"
    start = '<?xml version="1.0" encoding="UTF-8"?>\n'
    if dialect == "martif":
        start += f'<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">\n<martif type="TBX-Basic" xml:lang={source}>\n'
        return f"{start}<martifHeader>{described}</martifHeader>\n<text><body>\n"
    modules = ""
    if dialect == "dct":
        modules = "".join(f' xmlns:{name}="http://www.tbxinfo.net/ns/{name}"' for name in ("min", "basic"))
    start += f'<tbx type="TBX-Basic" style="{dialect}" xml:lang={source} xmlns="{_ED_2}"{modules}>\n'
    return f"{start}<tbxHeader>{described}</tbxHeader>\n<text><body>\n"


_BASIC = {"context", "termType"}
"""The data categories of the module `basic`; the others are of the module `min`."""


def _category(element: str, name: str, text: str, dialect: Dialect) -> str:
    if dialect == "dct":
        tag = f"{'basic' if name in _BASIC else 'min'}:{name}"
        return f"<{tag}>{escaped(text)}</{tag}>"
    return f'<{element} type="{name}">{escaped(text)}</{element}>'


def _term(text: str, sense: Sense, dialect: Dialect) -> str:
    part_of_speech = sense.part_of_speech
    properties = ""
    if part_of_speech == "phrase":
        properties = _category("termNote", "termType", "phrase", dialect)
    elif part_of_speech:
        name = "properNoun" if part_of_speech == "name" else part_of_speech
        properties = _category("termNote", "partOfSpeech", name, dialect)
    return f"<term>{escaped(text)}</term>{properties}"
