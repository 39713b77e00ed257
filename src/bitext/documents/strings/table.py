"""Tables of comma- or tab-separated values, and which columns of a table are translated, by the names in the first row.

Translation platforms name the columns `Source String` and `Translation`, or `Default content` and `Translated content`;
others name languages, with or without a region (`en-US`, `Spanish (Mexico)`), or both (`title_en`, `title_es`). Cells
keep their quotes, and get quotes if necessary, except in a .tsv in which quotes have no meaning.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_CELLS, MOST_COLUMNS
from bitext.documents.spans import TextFile
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.string_document import Strings
from bitext.errors import UserError
from bitext.languages import Languages, same_language, short_code, usual_code

_DELIMITERS = ",;\t|"
_SAMPLE = 4096
"""The number of characters from which the delimiter is guessed: the time of `csv.Sniffer` is quadratic in it."""
_SEPARATOR = re.compile(r'"?sep=(.)"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""


class Cell(NamedTuple):
    """A cell and its range in the text of the file."""

    start: int
    end: int
    text: str
    quoted: bool


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Parse a table.

    Raises:
        UserError: a quote is not closed, or text follows a closed one.
    """
    file = TextFile.of(name, content)
    has_quotes = True
    if separator := _SEPARATOR.match(file.text):
        rows = _rows(file, delimiter := separator[1], separator.end())
    elif name.lower().endswith(".tsv"):
        delimiter = "\t"
        rows, has_quotes = _tab_separated(file)
    else:
        rows = _rows(file, delimiter := _delimiter(file.text), 0)
    strings = Strings(file)
    texts = []
    for row in rows:
        texts.append([cell.text for cell in row])
    selected = columns(name, texts, languages)
    if texts:
        strings.segments.remarks.append(described(texts[0], selected))
    cells = sum(map(len, rows))
    for row in rows[selected.first_row :]:
        names_language = selected.language is not None and selected.language < len(row)
        if names_language and is_in_other_language(row[selected.language or 0].text, languages):
            continue
        between_steps()
        longest = None if selected.limit is None else selected.longest([cell.text for cell in row])
        for source, target in selected.pairs:  # in the order of the columns
            if source >= len(row):
                break
            if _is_text(row[source].text):
                cells += max(0, target - len(row) + 1)
                _refuse_cells(cells, name)
                _add_cell(strings, row, source, target, delimiter, longest, has_quotes=has_quotes)
    return strings


def _is_text(text: str) -> bool:
    """Whether a cell is translated, as it is no formula, number or code."""
    return not text.startswith("=") and is_language(text)


def _refuse_cells(count: int, name: str) -> None:
    if count > MOST_CELLS:
        raise UserError(f"has more than {MOST_CELLS:,} cells", file=name, fix="Split it.")


def _tab_separated(file: TextFile) -> tuple[list[list[Cell]], bool]:
    """Return the rows of a .tsv, and whether quotes enclose cells; otherwise, they are characters like others."""
    try:
        rows = _rows(file, "\t", 0)
    except UserError:
        return _rows(file, "\t", 0, has_quotes=False), False
    return rows, any(cell.quoted for cell in chain.from_iterable(rows))


def _add_cell(
    strings: Strings,
    row: Sequence[Cell],
    source: int,
    target: int,
    delimiter: str,
    longest: int | None,
    *,
    has_quotes: bool,
) -> None:
    """Add a cell whose translation goes into the column `target`, which the row may lack.

    `longest`: the largest number of characters of the translation.
    """
    text = row[source].text
    cell, existing, padding = row[source], None, 0
    if target != source:
        padding = max(0, target - len(row) + 1)
        if padding:
            cell = Cell(row[-1].end, row[-1].end, "", False)
        else:
            cell = row[target]
        if cell.text.strip():
            existing = cell.text
    write: Callable[[str], str] = partial(_written, quoted=cell.quoted, delimiter=delimiter, padding=padding)
    if not has_quotes:
        write = partial(_unquoted, padding=padding)
    strings.add(cell.start, cell.end, text, write, existing=existing, longest=longest)


def _delimiter(text: str) -> str:
    """Guess the delimiter from the first line; a comma if that is impossible."""
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE].partition("\n")[0] or text[:_SAMPLE], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _rows(file: TextFile, delimiter: str, offset: int, *, has_quotes: bool = True) -> list[list[Cell]]:
    """Return the cells of each row from an offset on, without empty lines."""
    text = file.text
    quoted_cell = '"(?P<quoted>[^"]*(?:""[^"]*)*)"|(?!")' if has_quotes else "(?P<quoted>(?!))?"
    pattern = re.compile(rf"{quoted_cell}[^{re.escape(delimiter)}\r\n]*")
    rows: list[list[Cell]] = [[]]
    count = 0
    while offset <= len(text):
        between_steps()
        count += 1
        _refuse_cells(count, file.name)
        if len(rows[-1]) == MOST_COLUMNS:
            line = file.line(offset)
            raise UserError(f"has more than {MOST_COLUMNS:,} columns", file=file.name, line=line, fix="Split it.")
        match = pattern.match(text, offset)
        if not match:
            raise UserError("has a quote that is not closed", file=file.name, line=file.line(offset))
        offset = match.end()
        end = text[offset : offset + 1]
        if end not in (delimiter, "\r", "\n", ""):
            raise UserError("has characters behind a closed quote", file=file.name, line=file.line(offset))
        quoted = match["quoted"]
        content = match[0] if quoted is None else quoted.replace('""', '"')
        rows[-1].append(Cell(*match.span(), content, quoted is not None))
        if end != delimiter:
            offset += text.startswith("\r\n", offset)
            rows.append([])
        offset += 1
    return [row for row in rows if len(row) > 1 or (row and row[0].text)]


def _written(text: str, quoted: bool, delimiter: str, padding: int) -> str:
    """Return a cell as it is written, after delimiters for the cells that its row lacks (`padding`)."""
    if quoted or re.search(rf'[{re.escape(delimiter)}"\r\n]|^\s|\s$', text):
        text = '"' + text.replace('"', '""') + '"'
    return padding * delimiter + text


def _unquoted(text: str, padding: int) -> str:
    """Return a cell of a .tsv without quotes, whose cells have no tabs and line ends."""
    return padding * "\t" + re.sub(r"[\t\r\n]+", " ", text)


_KIND = "(?: (?:text|string|content|value|segment|term|copy))"
_SOURCE = re.compile(rf"(?:source|src|original){_KIND}?|(?:default|base|reference){_KIND}|msgid")
_TARGET = re.compile(rf"(?:target|tgt|translations?|translated|locali[sz]ed){_KIND}?|msgstr")
_TEXT = frozenset(
    ["text", "string", "message", "value", "title", "description", "content", "body", "label", "question", "answer"]
    + ["comment", "caption", "summary", "subject", "sentence", "phrase", "segment"]
)
_METADATA = re.compile(
    r"(?:.* )?(?:notes?|comments?|context|keys?|id|ids|identifier|location|status|fuzzy|tags?|labels?|screenshots?"
    r"|images?|url|link|file|length|limit|author|description|type|field|sku|market|locale|language|plural|date"
    r"|reviewer|approved|state|category|price|identification)"
)
"""The names of columns with metadata: they take no translation, even if they are empty."""
_KEYS = frozenset(["id", "no", "key", "ref", "tag"])
"""The names of key columns, some of which are also language codes (Indonesian, Norwegian)."""
_NAMES_OF_KEYS = frozenset(
    ["key", "keys", "id", "identifier", "message id", "string id", "string key", "resource id", "resource key"]
    + ["message key", "text id", "label id", "msgid", "string name"]
)
"""The names of columns that identify strings of a program."""
MOST_NAMED_COLUMNS = 200
"""The largest number of columns of a table of strings in a workbook."""
MOST_NAMED = 8
"""The largest number of columns that a remark names, or that are searched for translations."""
_ROW_LANGUAGE = frozenset(["locale", "language", "lang", "target language", "target locale", "language code"])
_LIMITS = frozenset(
    ["max length", "maxlength", "max len", "maximum length", "character limit", "char limit", "length limit"]
    + ["max characters", "max chars", "maximum characters", "maxwidth", "max width"]
)
"""The names of columns with the largest number of characters of a translation."""
_NUMBER = re.compile("[1-9][0-9]{0,6}")
_BRACKETS = re.compile(r"(.*)[(\[]([^()\[\]]*+)[)\]]\s*+", re.DOTALL)


class Columns(NamedTuple):
    """The columns of a table that are translated."""

    pairs: list[tuple[int, int]]
    """The index of each translated column and of the column for its translation, which may be the same."""
    first_row: int
    """The index of the first row with text."""
    language: int | None = None
    """The index of the column that names the language of each row, if there is one."""
    limit: int | None = None
    """The index of the column with the largest number of characters of each translation, if there is one."""

    def longest(self, row: Sequence[str]) -> int | None:
        """Return the largest number of characters of the translations of a row, if it states one."""
        text = "" if self.limit is None else _text(row, self.limit)
        return int(text) if _NUMBER.fullmatch(text) else None


class _Name(NamedTuple):
    """The name of a column, analyzed."""

    plain: str
    """The name in lower case, its words separated by single spaces."""
    stem: str
    """The name without a language."""
    code: str | None
    """The code of the language in the name, if it has one."""


def columns(file: str, rows: Sequence[Sequence[str]], languages: Languages) -> Columns:
    """Choose the columns to translate.

    1. The column named as the source, or the columns that name its language. Their translation goes into the column
       named as the translation, else into one that names the target language, else into the only empty one, else it
       replaces the source.
    2. A column with text beside a column for translations.
    3. Columns with a usual name for text, such as `text` or `title`; their translations replace them.
    4. Otherwise, columns in which some text has more than one word.

    Args:
        file: the file name for messages.
        rows: the texts of the cells.
        languages: the source and the target language.

    Raises:
        UserError: the table has columns for languages, but none for the target language.
    """
    if not rows:
        return Columns([], first_row=0)
    names = [_name(i, text, languages) for i, text in enumerate(rows[0])]
    sources = _with_role(names, _SOURCE)[:1] or _of_language(names, languages[0])
    is_named = bool(sources)
    sources = sources or _beside_target(names, rows, languages[1])
    sources = sources or _with_name(names, _TEXT)
    first_row = 1
    if not sources:
        first_row = int(_is_head(rows))
        sources = _text_columns(rows[first_row:])
    pairs = []
    by_stem, all_by_stem = _first_by_stem(names, languages[1]), _all_languages_by_stem(names)
    for source in sources:
        if source >= len(names):  # the first row is shorter
            pairs.append((source, source))
            continue
        target = None
        if first_row and len(sources) == 1:
            target = _only_target(names, rows[1:], source, languages[1])
        elif first_row:
            target = by_stem.get(_target_stem(names[source]), source)
        if target in (None, source):
            if is_named:
                _refuse_other_languages(file, names, all_by_stem, source, languages[1])
            target = source
        pairs.append((source, target))
    language, limit = (next(iter(_with_name(names, common)), None) for common in (_ROW_LANGUAGE, _LIMITS))
    return Columns(pairs, first_row, language, limit)


def columns_of_strings(file: str, rows: Sequence[Sequence[str]], languages: Languages) -> Columns | None:
    """Choose the columns of a table in a document in which other tables are read by people, such as a workbook.

    Returns:
        The columns if the table holds strings for translators; else None: all of its texts are translated. The former
        names the source and has a column for the translation, or names its keys and columns of texts.

    Raises:
        UserError: the table has columns for languages, but none for the target language.
    """
    if not names_columns(rows[0], languages):
        return None
    names = [_name(i, text, languages) for i, text in enumerate(rows[0])]
    sources = _with_role(names, _SOURCE)[:1] or _of_language(names, languages[0])
    if sources and _columns_with(rows[1:], is_language).isdisjoint(sources):
        return None
    selected = columns(file, rows, languages)
    named = {*_with_role(names, _TARGET), *_of_language(names, languages[1])}
    # In a .csv, the only empty column may be for translations; here, it may be anything.
    pairs: list[tuple[int, int]] = []
    for source, target in selected.pairs:
        pairs.append((source, target) if target in named else (source, source))
    selected = selected._replace(pairs=pairs)
    has_target = any(source != target for source, target in selected.pairs)
    has_keys = bool(_with_name(names, _NAMES_OF_KEYS))
    return selected if selected.first_row and selected.pairs and (has_target or has_keys) else None


def columns_of_translations(file: str, rows: Sequence[Sequence[str]], languages: Languages) -> Columns | None:
    """Choose the columns of a table in a text, whose tables are read by people.

    Returns:
        The columns if one is named as the source and another one as its translation; else None: the table is a part
        of the text.

    Raises:
        UserError: the table has columns for languages, but none for the target language.
    """
    names = [_name(i, text, languages) for i, text in enumerate(rows[0][:MOST_NAMED_COLUMNS])]
    sources = _with_role(names, _SOURCE) or _of_language(names, languages[0])
    targets = _with_role(names, _TARGET) or _of_language(names, languages[1])
    targets = [i for i in targets if not _is_numeric(rows[1:], i)]
    selected = columns_of_strings(file, rows, languages) if sources and targets else None
    is_list = selected is not None and any(source != target for source, target in selected.pairs)
    return selected if is_list else None


def names_columns(head: Sequence[str], languages: Languages) -> bool:
    """Whether a row may hold the names of the columns of a table with strings for translators."""
    if len(head) > MOST_NAMED_COLUMNS:
        return False
    names = [_name(i, text, languages) for i, text in enumerate(head)]
    if sum(bool(name.plain) for name in names) < 2:
        return False
    sources = _with_role(names, _SOURCE) or _of_language(names, languages[0])
    texts = _with_name(names, _TEXT)
    targets = _with_role(names, _TARGET) or _of_language(names, languages[1])
    return bool(sources or (texts and (targets or _with_name(names, _NAMES_OF_KEYS))))


def described(head: Sequence[str], selected: Columns) -> str:
    """Return a remark for the user on the columns that are translated; `head`: the first row."""
    if not selected.pairs:
        return "no column has texts to translate"
    phrases = []
    for source, target in selected.pairs:
        phrase = _column_name(head, source, selected)
        if target != source:
            phrase += f" into {_column_name(head, target, selected)}"
        phrases.append(phrase)
    return f"translated columns: {', '.join(phrases[:MOST_NAMED])}{', …' * (len(phrases) > MOST_NAMED)}"


def is_in_other_language(name: str, languages: Languages) -> bool:
    """Whether a language that a row names is neither the source nor the target, as in Shopify's exports."""
    code = usual_code(name.strip())
    codes = list(filter(None, map(usual_code, filter(None, languages))))
    return code is not None and bool(codes) and not any(same_language(code, language) for language in codes)


def _column_name(head: Sequence[str], column: int, selected: Columns) -> str:
    name = _text(head, column) if selected.first_row else ""
    return f"“{name[:40]}”" if name else f"number {column + 1}"


def _with_role(names: Sequence[_Name], role: re.Pattern[str]) -> list[int]:
    return [i for i, name in enumerate(names) if role.fullmatch(name.stem)]


def _with_name(names: Sequence[_Name], common_names: frozenset[str]) -> list[int]:
    return [i for i, name in enumerate(names) if name.plain in common_names]


def _only_target(names: Sequence[_Name], body: Sequence[Sequence[str]], source: int, code: str | None) -> int | None:
    """Return the column for the translation of the only source column; None if there is none."""
    name = names[source]
    by_role = _with_role(names, _TARGET)
    candidates = []
    if (of_language := _first_by_stem(names, code).get(_target_stem(name))) is not None:
        candidates = [of_language]
    candidates = by_role + candidates if name.code is None else candidates + by_role
    for candidate in candidates[:MOST_NAMED]:
        if candidate != source and not _is_numeric(body, candidate):
            return candidate
    if not body:
        return None
    empty, filled = [], _columns_with(body, bool)
    for i, name in enumerate(names):
        may_hold_text = name.plain and name.code is None and not _is_metadata(name)
        if may_hold_text and i not in filled:
            empty.append(i)
    return empty[0] if len(empty) == 1 else None


def _target_stem(source: _Name) -> str:
    """Return the stem of the column for translations: `title_en` belongs to `title_es`, but `source_en` to `es`."""
    return "" if source.code is None or _SOURCE.fullmatch(source.stem) else source.stem


def _first_by_stem(names: Sequence[_Name], code: str | None) -> dict[str, int]:
    """Return the columns of a language by the rest of their names."""
    return {names[i].stem: i for i in _of_language(names, code)}


def _is_numeric(body: Sequence[Sequence[str]], column: int) -> bool:
    """Whether a column holds numbers: `Target` may also name a goal, and `French` a school subject."""
    texts = list(filter(None, (_text(row, column) for row in body)))
    return bool(texts) and not any(any(map(str.isalpha, text)) for text in texts)


def _beside_target(names: Sequence[_Name], rows: Sequence[Sequence[str]], code: str | None) -> list[int]:
    """Return the first column with text if another column is for translations; else none."""
    targets = _with_role(names, _TARGET)
    targets += [i for i in _of_language(names, code) if not names[i].stem]
    # Reading all rows for each of thousands of columns would take long.
    targets = [i for i in targets[:MOST_NAMED] if not _is_numeric(rows[1:], i)]
    if not targets:
        return []
    with_text = _columns_with(rows[1:], is_language)
    for i, name in enumerate(names):
        is_candidate = i not in targets and (name.plain in _TEXT or not _is_metadata(name))
        if is_candidate and i in with_text:
            return [i]
    return []


def _columns_with(rows: Iterable[Sequence[str]], has: Callable[[str], bool]) -> set[int]:
    """Return the columns in which some text has a property; each cell is read once, however short the rows are."""
    columns = set()
    for row in rows:
        between_steps()
        for i, text in enumerate(row):
            if i not in columns and has(text.strip()):
                columns.add(i)
    return columns


def _is_metadata(name: _Name) -> bool:
    return _METADATA.fullmatch(name.plain) is not None


def _text(row: Sequence[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def _refuse_other_languages(
    file: str, names: Sequence[_Name], by_stem: Mapping[str, Sequence[int]], source: int, code: str | None
) -> None:
    """Refuse to overwrite the source if the table has columns for other languages, but none for the target.

    `by_stem`: the columns of all languages by the rest of their names.
    """
    stem = names[source].stem
    related = [*by_stem.get(stem, ()), *(by_stem.get("", ()) if stem else ())]
    other_columns = [names[i].plain for i in sorted(related) if i != source]
    if other_columns:
        what = f"has no column for {code}, but columns for other languages: {', '.join(other_columns[:5])}"
        raise UserError(what, file=file, line=1, fix=f"Add a column named {code}.")


def _all_languages_by_stem(names: Sequence[_Name]) -> dict[str, list[int]]:
    """Return the columns that name any language by the rest of their names."""
    by_stem: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        if name.code and name.plain not in _KEYS:
            by_stem.setdefault(name.stem, []).append(i)
    return by_stem


def _is_head(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row looks like the names of columns: a few words each, without punctuation."""
    return len(rows) > 1 and all(
        re.fullmatch(r"[^.!?,;]{1,40}", text.strip()) and len(text.split()) < 4 for text in rows[0]
    )


def _text_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns in which some text has more than one word."""
    return sorted(_columns_with(rows, lambda text: " " in text and is_language(text)))


def _of_language(names: Sequence[_Name], code: str | None) -> list[int]:
    """Return the columns that name a language; if several differ only in the region, the nearest."""
    usual = usual_code(code or "")
    if usual is None:
        return []
    best: dict[str, tuple[bool, int]] = {}
    for i, name in enumerate(names):
        if name.code and same_language(name.code, usual):
            # The same region is nearest. Otherwise, one of both codes has no region, so all others are as near.
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
    """Yield the ways to read a column name, each as the rest of the name and a language code, the likeliest first."""
    if code := _language(text, languages):
        yield "", code
    if brackets := _BRACKETS.fullmatch(text):
        head, inner = brackets[1].rstrip(), brackets[2].strip()
        head_code = _language(head, languages)
        if code := _language(inner, languages):  # `English (en-US)`, `Translation (es)`
            yield "" if head_code else head, code
        elif head_code:  # `Spanish (Mexico)`
            if region := _territories().get(inner.lower()):
                head_code = usual_code(f"{head_code}-{region}") or head_code
            yield "", head_code
    words = re.split(r"[\s_\-:./]+", text)
    # First two words, as in `title_en_US`, then one, as in `title_en`.
    for length in (2, 1):
        if len(words) > length:
            if code := _short_language("_".join(words[-length:]), languages):
                yield " ".join(words[:-length]), code
            if code := _short_language("_".join(words[:length]), languages):
                yield " ".join(words[length:]), code


def _language(text: str, languages: Languages) -> str | None:
    """Return the code of a language, given its code or its name."""
    return usual_code(text) or _language_names(languages).get(text.lower())


def _short_language(text: str, languages: Languages) -> str | None:
    """Return the code of a language, given words of a longer name, in which three letters are rarely a code."""
    code = None
    if re.fullmatch(r"[A-Za-z]{2}(?:_[A-Za-z]{2,4})?", text):
        code = usual_code(text)
    return code or _language_names(languages).get(text.replace("_", " ").lower())


@lru_cache(8)
def _language_names(languages: Languages) -> dict[str, str]:
    """Return language codes by English names in lower case, and by the names that the two languages have."""
    from babel import Locale, UnknownLocaleError

    codes: dict[str, str] = {}
    pair_codes = [short_code(code) for code in languages if code]
    for code in ("en", *pair_codes):
        try:
            names: dict[str, str] = dict(Locale(code).languages)
        except (UnknownLocaleError, ValueError):
            continue
        # In English, all languages; in the languages of the translation, only these two.
        for language in names if code == "en" else pair_codes:
            if language in names and (usual := usual_code(language)):
                codes[names[language].lower()] = usual
    return codes


@lru_cache(1)
def _territories() -> dict[str, str]:
    """Return the codes of regions by their English names in lower case."""
    from babel import Locale

    return {name.lower(): code for code, name in Locale("en").territories.items()}
