"""Kinds of files that are not read as plain text or sentence pairs, by file ending, with advice on what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from bitext.errors import UserError

PAIR_ENDINGS = (".tsv", ".jsonl", ".tmx", ".po", ".xliff", ".xlf", ".parquet")
"""File endings of sentence pairs, packed or not, except .parquet; a Moses pair may have any other ending."""
PACKINGS = (".gz", ".bz2", ".xz")
"""File endings of the kinds of compression that `lines.opened` unpacks."""
LONGEST_NAME = 4096
"""The most characters of a path."""
_PLAIN = frozenset([".txt", ".text", ".md", ".mdx", ".markdown", ".rst", ".adoc", ".log"])
"""File endings of plain text, with or without markup."""
_KINDS: dict[str, tuple[str, str]] = {}
"""What a file is, and what to do with it, by its ending; `file_kinds.tsv` lists the endings."""
for _row in Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines():
    _what, _advice, _endings = _row.split("\t")
    _KINDS.update(dict.fromkeys(_endings.split(), (_what, _advice)))


def ending_of(file: str) -> str:
    """Return the ending of a file's name in lower case and without that of its compression, such as `.gz`."""
    return Path(without_packing(file).lower()).suffix


def without_packing(file: str) -> str:
    """Return a file's name without the ending of its compression.

    >>> without_packing("train.tsv.xz"), without_packing("train.tsv")
    ('train.tsv', 'train.tsv')
    """
    for ending in PACKINGS:
        if file.lower().endswith(ending):
            return file[: -len(ending)]
    return file


def has_structure(file: Path) -> bool:
    """Whether a file is not plain text, according to its ending."""
    return file.suffix.lower() in _KINDS


def is_file(name: str) -> bool:
    """Whether there is a file with this name, which may be too long for a path."""
    try:
        return Path(name).is_file()
    except OSError:
        return False


def is_folder(name: str) -> bool:
    """Whether there is a folder with this name; a full stop is a text, although it names the current folder."""
    if not name.strip(".") or "\0" in name:
        return False
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def names_file(text: str, endings: Collection[str]) -> bool:
    """Whether a text is the name of a file: of an existing file, or a name without spaces and with a known ending.

    `endings`: further file endings, in lower case.
    """
    if not text or "\n" in text or len(text) > LONGEST_NAME:
        return False
    if is_file(text):
        return True
    ending = Path(text).suffix.lower()
    has_known_ending = ending in _KINDS or ending in endings or ending in _PLAIN
    return has_known_ending and "://" not in text and not any(map(str.isspace, text))


def refuse_file_names(
    texts: Iterable[str], fix: str = "Give the text itself. If the name is a text after all, add a full stop."
) -> None:
    """Check that no text is the name of a file or a folder, which would be translated as words.

    Raises:
        UserError: a text is such a name.
    """
    for text in texts:
        if is_folder(text):
            fix = fix.replace("its lines", "the lines of a file")
            raise UserError("is the name of a folder, where a text was expected", file=text, fix=fix)
        if names_file(text, ()):
            raise UserError("is the name of a file, where a text was expected", file=text, fix=fix)


def refuse_documents(file: Path | None) -> None:
    """Check that a file to translate is plain text by its ending; the structure of others would be translated too.

    Raises:
        UserError: the file has the ending of another kind.
    """
    if file and (kind := _KINDS.get(file.suffix.lower())):
        what, fix = kind
        what = f"is {what} by its ending: only plain text is translated, line by line"
        raise UserError(what, file=file, fix=f"{fix} If it is plain text after all, give it on standard input.")


def refuse_as_texts(file: str) -> None:
    """Check that a file with running text is plain text by its ending; a model would learn the structure of others.

    Raises:
        UserError: the file has the ending of another kind.
    """
    if kind := _KINDS.get(ending_of(file)):
        what, fix = kind
        raise UserError(f"is {what} by its ending, which is not read as running text", file=file, fix=fix)


def refuse_as_pairs(file: str) -> None:
    """Check that a corpus does not have the ending of an unsupported kind of file.

    Raises:
        UserError: it does.
    """
    ending = ending_of(file)
    what, unpacking = _KINDS.get(ending, (None, ""))
    if ending in PAIR_ENDINGS or what is None:
        return
    fix = "Export it as .tsv (source TAB target) or as .jsonl (source, target)."
    if what == "a table of columns":
        fix = "Write its columns source and target as .jsonl: pandas has to_json(path, orient='records', lines=True)."
    if what == "compressed":
        fix = f"{unpacking.rstrip('.')}; {', '.join(PACKINGS)} are read as they are."
    raise UserError(f"is {what} by its ending, which is not read as sentence pairs", file=file, fix=fix)
