"""What `translate` does with a document."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.documents.kinds import kind_of
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.jobs.job import Way
    from translucid.jobs.segments import SegmentJob


def document_among(texts: Sequence[str] | None, input_file: Path | None) -> Path | None:
    """Return the document that is to be translated, if what was given is one by its name.

    A file given with --input that ends in .txt is none: it is translated line by line.
    """
    if input_file:
        kind = kind_of(input_file.name)
        return input_file if kind and kind.module != "text" else None
    if texts and len(texts) == 1 and kind_of(texts[0]) and len(texts[0]) < 4096 and Path(texts[0]).is_file():
        return Path(texts[0])
    return None


def shows_near_matches(document: Path) -> bool:
    """Whether a document has a place for near matches of a memory."""
    kind = kind_of(document.name)
    return kind is not None and kind.near_matches


def translate_file(
    job: SegmentJob, file: Path, output: Path | None, way: AbstractContextManager[Way], *, again: bool
) -> None:
    """Translate a document; see `translucid translate --help`."""
    from translucid.documents.kinds import read_document
    from translucid.jobs.documents import asked_for, translate_document
    from translucid.runs.run_folder import RunFolder

    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
    languages = (job.configuration or RunFolder(job.run).configuration()).data.languages
    document = read_document(str(file), content, (languages[0], languages[1]))
    numbers = asked_for(document, again=again)
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    total = len(document.segments)
    if kept := total - len(numbers):
        say(f"{kept:,} of {total:,} segments have a translation, which stays; --again translates them, too")
    with counting(console, "translating", len(numbers)) as advance:
        translate_document(job, document, numbers, output, way, say=say, advance=advance)
