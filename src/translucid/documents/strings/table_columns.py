"""Which columns of a table are translated, and into which ones, by the names in its first row.

Translation platforms name them `Source String` and `Translation`, or `Default content` and `Translated content`; others
name languages, with a region or not (`en-US`, `Spanish (Mexico)`), or both (`title_en`, `title_es`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from translucid.data.languages import Languages, same_language, short_code, usual_code
from translucid.documents.strings.messages import is_language
from translucid.ground.errors import UserError

_KIND = "(?: (?:text|string|content|value|segment|term|copy))"
_SOURCE = re.compile(rf"(?:source|src|original){_KIND}?|(?:default|base|reference){_KIND}|msgid")
_TARGET = re.compile(rf"(?:target|tgt|translations?|translated|locali[sz]ed){_KIND}?|msgstr")
_TEXT = frozenset(
    ["text", "string", "message", "value", "title", "description", "content", "body", "label", "question", "answer"]
    + ["comment", "caption", "summary", "subject", "sentence", "phrase", "segment"]
)
_ABOUT = re.compile(
    r"(?:.* )?(?:notes?|comments?|context|keys?|id|ids|identifier|location|status|fuzzy|tags?|labels?|screenshots?"
    r"|images?|url|link|file|length|limit|author|description|type|field|sku|market|locale|language|plural|date"
    r"|reviewer|approved|state|category|price|identification)"
)
"""Names of columns that may stand empty and take no translation."""
_KEYS = frozenset(["id", "no", "key", "ref", "tag"])
"""Names of columns of keys that are codes of languages, too."""
_ROW_LANGUAGE = frozenset(["locale", "language", "lang", "target language", "target locale", "language code"])
_BRACKETS = re.compile(r"(.*)[(\[]([^()\[\]]*+)[)\]]\s*+", re.DOTALL)


class Columns(NamedTuple):
    """What is translated in the rows of a table."""

    pairs: list[tuple[int, int]]
    """Number of each column that is translated, and of the one that takes the translation; it may be the same."""
    first: int
    """Number of the first row with text."""
    language: int | None = None
    """Number of the column that names the language of each row."""


class _Name(NamedTuple):
    """What the name of a column says."""

    plain: str
    """In lower case, its words with single spaces between them."""
    stem: str
    """Without the name of a language."""
    code: str | None
    """Of the language that it names."""


def columns(file: str, rows: Sequence[Sequence[str]], languages: Languages) -> Columns:
    """Choose what is translated in a table.

    1. A column of the source, or columns that name its language: into the column of the translation; into one that
       names the target language; into the only one that stands empty; else where it stands.
    2. A column of language beside one for translations.
    3. Columns with a usual name of text, such as `text` or `title`, where they stand.
    4. None of them: cells that are language, of columns with more than single words.

    Args:
        file: its name, for messages.
        rows: texts of the cells.
        languages: of the translation.

    Raises:
        UserError: it has columns of several languages, but none of the target.
    """
    names = [_name(i, text, languages) for i, text in enumerate(rows[0])] if rows else []
    language = next((i for i, name in enumerate(names) if name.plain in _ROW_LANGUAGE), None)
    role = next((i for i, name in enumerate(names) if _SOURCE.fullmatch(name.stem)), None)
    sources = [role] if role is not None else _of_language(names, languages[0])
    named = bool(sources)
    sources = sources or _beside_target(names, rows, languages[1])
    sources = sources or [i for i, name in enumerate(names) if name.plain in _TEXT]
    first = 1
    if not sources:
        first = int(_is_head(rows))
        sources = _columns_of_language(rows[first:])
    pairs = []
    for source in sources:
        target = _target(names, rows[1:], source, len(sources) == 1, languages[1]) if first else None
        if target is None and named:
            _refuse_other_languages(file, names, source, languages[1])
        pairs.append((source, source if target is None else target))
    return Columns(pairs, first, language)


def _target(
    names: Sequence[_Name], body: Sequence[Sequence[str]], source: int, alone: bool, code: str | None
) -> int | None:
    """Return the column that takes the translation of another one; none if it has none of its own."""
    by_role = [i for i, name in enumerate(names) if alone and i != source and _TARGET.fullmatch(name.stem)]
    own = names[source]
    stem = "" if own.code is None or _SOURCE.fullmatch(own.stem) else own.stem
    by_language = [i for i in _of_language(names, code) if i != source and names[i].stem == stem]
    found = [*by_role, *by_language] if own.code is None else [*by_language, *by_role]
    if found or not alone:
        return next(iter(found), None)
    empty = [
        i
        for i, name in enumerate(names)
        if name.plain and not name.code and not _is_about(name) and not any(_text(row, i) for row in body)
    ]
    return empty[0] if len(empty) == 1 and body else None


def _beside_target(names: Sequence[_Name], rows: Sequence[Sequence[str]], code: str | None) -> list[int]:
    """Return the column of language beside one that takes translations, if there is such a one."""
    targets = [i for i, name in enumerate(names) if _TARGET.fullmatch(name.stem)]
    targets += [i for i in _of_language(names, code) if not names[i].stem]
    if not targets:
        return []
    texts = [i for i, name in enumerate(names) if i not in targets and (name.plain in _TEXT or not _is_about(name))]
    return [i for i in texts if any(is_language(_text(row, i)) for row in rows[1:])][:1]


def _is_about(name: _Name) -> bool:
    return _ABOUT.fullmatch(name.plain) is not None


def _text(row: Sequence[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def _refuse_other_languages(file: str, names: Sequence[_Name], source: int, code: str | None) -> None:
    """Refuse to write into the column of the source where there are columns for languages, but not for the target."""
    stem = names[source].stem
    others = [n.plain for i, n in enumerate(names) if i != source and n.code and n.stem in (stem, "")]
    others = [plain for plain in others if plain not in _KEYS]
    if others:
        what = f"has no column for {code}, but columns for other languages: {', '.join(others[:5])}"
        raise UserError(what, file=file, line=1, fix=f"Add a column named {code}.")


def _is_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row looks like names."""
    if len(rows) < 2:
        return False
    return all(re.fullmatch(r"[^.!?,;]{1,40}", text.strip()) and len(text.split()) < 4 for text in rows[0])


def _columns_of_language(rows: Sequence[Sequence[str]]) -> list[int]:
    return sorted({i for row in rows for i, text in enumerate(row) if " " in text.strip() and is_language(text)})


def _of_language(names: Sequence[_Name], code: str | None) -> list[int]:
    """Return the columns that name a language: of those that differ in the region alone, the nearest one."""
    usual = usual_code(code) if code else None
    if usual is None:
        return []
    best: dict[str, tuple[bool, int]] = {}
    for i, name in enumerate(names):
        if name.code and same_language(name.code, usual):
            rank = name.code != usual, i
            best[name.stem] = min(best.get(name.stem, rank), rank)
    return sorted(i for _, i in best.values())


def _name(column: int, text: str, languages: Languages) -> _Name:
    plain = " ".join(re.split(r"[\s_\-]+", text.strip().lower())).strip()
    if column == 0 and plain in _KEYS:
        return _Name(plain, plain, None)
    for stem, code in _readings(text.strip(), languages):
        return _Name(plain, " ".join(re.split(r"[\s_\-:./]+", stem.lower())).strip(), code)
    return _Name(plain, plain, None)


def _readings(text: str, languages: Languages) -> Iterator[tuple[str, str]]:
    """Yield how the name of a column can be read: what is left of it, and the code of a language."""
    if code := _language(text, languages):
        yield "", code
    if brackets := _BRACKETS.fullmatch(text):
        head, inner = brackets[1].rstrip(), brackets[2].strip()
        own = _language(head, languages)
        if code := _language(inner, languages):  # `English (en-US)`, `Translation (es)`
            yield "" if own else head, code
        elif own:  # `Spanish (Mexico)`
            region = _territories().get(inner.lower())
            yield "", usual_code(f"{own}-{region}") or own if region else own
    words = re.split(r"[\s_\-:./]+", text)
    for length in (2, 1):
        if len(words) > length:
            if code := _short_language("_".join(words[-length:]), languages):
                yield " ".join(words[:-length]), code
            if code := _short_language("_".join(words[:length]), languages):
                yield " ".join(words[length:]), code


def _language(text: str, languages: Languages) -> str | None:
    """Return the code of a language by its code or its name."""
    return usual_code(text) or _language_names(languages).get(text.lower())


def _short_language(text: str, languages: Languages) -> str | None:
    """Likewise, of a part of a name: words of three letters are seldom codes."""
    code = text if re.fullmatch(r"[A-Za-z]{2}(?:_[A-Za-z]{2,4})?", text) else ""
    return (usual_code(code) if code else None) or _language_names(languages).get(text.replace("_", " ").lower())


@lru_cache(8)
def _language_names(languages: Languages) -> dict[str, str]:
    """Return codes by English names in lower case, and by those that the two languages have for each other."""
    from babel import Locale, UnknownLocaleError

    names: dict[str, str] = {}
    both = [short_code(code) for code in languages if code]
    for code in ("en", *both):
        try:
            known: dict[str, str] = dict(Locale(code).languages)
        except (UnknownLocaleError, ValueError):
            continue
        for each in known if code == "en" else both:
            if each in known and (usual := usual_code(each)):
                names[known[each].lower()] = usual
    return names


@lru_cache(1)
def _territories() -> dict[str, str]:
    """Return codes of regions by their English names in lower case."""
    from babel import Locale

    return {name.lower(): code for code, name in Locale("en").territories.items()}
