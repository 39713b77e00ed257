"""Documents in `translate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.cli.arguments import input_bytes
from translucid.data.readers.file_kinds import has_structure, is_file, names_file
from translucid.documents.kinds import ENDINGS, kind_of, not_translated
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.jobs.job import Executor
    from translucid.jobs.segments import SegmentJob


def document_among(texts: Sequence[str] | None, input_file: Path | None) -> Path | None:
    """Return the document to translate, if the input is one by its name.

    A .txt file of --input is no document: it is translated line by line.

    Raises:
        UserError: files of this kind are not translated, the file is missing, or there are several.
    """
    if input_file:
        kind = kind_of(input_file.name)
        if kind is None and has_structure(input_file):
            raise not_translated(str(input_file))
        return input_file if kind and kind.module != "text" else None
    file_names = [text for text in texts or () if names_file(text, ENDINGS)]
    if not file_names or texts is None:
        return None
    if len(texts) > 1:
        fix = "Give one document at a time, each with an --output of its own."
        raise UserError(f"is a file among {len(texts)} texts or files", file=file_names[0], fix=fix)
    if kind_of(file_names[0]) is None:
        raise not_translated(file_names[0])
    if not is_file(file_names[0]):
        fix = "Check the path. A name that is a text after all is read from standard input."
        raise UserError("is not there", file=file_names[0], fix=fix)
    return Path(file_names[0])


def shows_near_matches(document: Path) -> bool:
    """Return whether a document's format has a place for fuzzy matches."""
    kind = kind_of(document.name)
    return kind is not None and kind.near_matches


def translate_file(
    job: SegmentJob, file: Path, output: Path | None, executor: AbstractContextManager[Executor], *, retranslate: bool
) -> None:
    """Translate a document; with `retranslate`, also the segments that have a translation."""
    from translucid.documents.kinds import read_document
    from translucid.jobs.documents import segments_to_translate, texts_before, translate_document

    kind = kind_of(file.name)
    # Word files, for example, are ZIP archives.
    if kind and kind.packed and output is None and sys.stdout.isatty():
        raise UserError("is not text, and a terminal shows nothing else", file=file, fix="Add --output FILE.")
    with input_bytes(file) as stream:
        content = stream.read()
    document = read_document(str(file), content, job.languages)
    numbers = segments_to_translate(document, retranslate=retranslate)
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    total = len(document.segments)
    if existing := total - len(numbers):
        say(f"{existing:,} of {total:,} segments have a translation, which stays; --retranslate translates them, too")
    with progress_bar(console, "translating", len(numbers)) as advance:
        before = texts_before(job, document)
        translate_document(job, document, numbers, output, executor, before=before, say=say, advance=advance)
