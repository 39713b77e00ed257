"""Documents in `translate`: one, several, or those of folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bitext.documents.document import ENDINGS, kind_of, not_translated
from bitext.readers.file_kinds import has_structure, is_file, is_folder, names_file
from translucid.cli.arguments import input_bytes, refuse_to_replace
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.documents.document import Document
    from translucid.jobs.documents import SegmentJob
    from translucid.jobs.job import Executor

    ExecutorOf: TypeAlias = Callable[[SegmentJob, Path | None], AbstractContextManager[Executor]]


class Planned(NamedTuple):
    """A document to translate."""

    file: Path
    output: Path | None
    """The file to write; standard output if there is none."""


def documents_among(texts: Sequence[str] | None, input_file: Path | None) -> list[Path]:
    """Return the documents and folders to translate, if the input is some by their names; none if it is text.

    A .txt file of --input is no document: it is translated line by line.

    Raises:
        UserError: files of this kind are not translated, a file is missing, or there are texts as well.
    """
    if input_file:
        if is_folder(str(input_file)):
            return [input_file]
        kind = kind_of(input_file.name)
        if kind is None and has_structure(input_file):
            raise not_translated(str(input_file))
        return [input_file] if kind and kind.module != "text" else []
    texts = texts or ()
    names = [text for text in texts if is_folder(text) or names_file(text, ENDINGS)]
    if names and len(names) < len(texts):
        fix = "Give either texts or documents. A name that is a text after all is read from standard input."
        raise UserError(f"is a file or a folder among {len(texts)} texts", file=names[0], fix=fix)
    for name in names:
        if is_folder(name):
            continue
        if kind_of(name) is None:
            raise not_translated(name)
        if not is_file(name):
            fix = "Check the path. A name that is a text after all is read from standard input."
            raise UserError("is not there", file=name, fix=fix)
    return list(map(Path, names))


def planned(
    inputs: Sequence[Path], output: Path | None, folder: Path | None, overwrite: bool, console: Console
) -> list[Planned]:
    """Return the documents to translate with the files to write.

    A document of a folder is written to the same place below the output folder. Documents that are there already stay,
    so that an interrupted command can be repeated.

    Args:
        inputs: documents and folders.
        output: the file to write, for a single document.
        folder: the folder to write to.
        overwrite: whether to replace documents that are there already.
        console: shows what is left out.

    Raises:
        UserError: several documents have no folder to write to, two of them would be the same file, or one would
            replace its source.
    """
    if folder is None:
        if len(inputs) == 1 and not is_folder(str(inputs[0])):
            return [Planned(inputs[0], output)]
        what = "is a folder" if is_folder(str(inputs[0])) else f"is one of {len(inputs)} documents or folders"
        fix = "Write the translations to a folder, --output FOLDER/; a name that is a text goes to standard input."
        raise UserError(what, file=inputs[0], fix=fix)
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file, not a folder", file=folder, fix="Choose another --output.")
    sources: dict[Path, Path] = {}
    others: list[Path] = []
    for item in inputs:
        files = list(_files_of(item, folder)) if is_folder(str(item)) else [(item, Path(item.name))]
        for file, place in files:
            target = folder / place
            if kind_of(file.name) is None:
                others.append(file)
            elif target in sources:
                what = f"and {sources[target]} would both be written to {target}"
                raise UserError(what, file=file, fix="Give the folder that has both, or translate them one by one.")
            elif _same(target, file):
                raise UserError("would be replaced by its translation", file=file, fix="Choose another --output.")
            else:
                sources[target] = file
    if others:
        names = ", ".join(file.name for file in others[:3])
        console.print(f"{len(others):,} files are of no kind that is translated: {names}", soft_wrap=True)
    if not sources:
        raise UserError("holds no document that can be translated", file=inputs[0], fix="Check the path.")
    plan = [Planned(file, target) for target, file in sources.items() if overwrite or not target.exists()]
    if existing := len(sources) - len(plan):
        message = f"{existing:,} of {len(sources):,} documents are there already and stay; --overwrite replaces them"
        console.print(message, soft_wrap=True)
    for document in plan:
        _make_folder_of(document.output)
        refuse_to_replace(document.output, overwrite)
    return plan


def _files_of(folder: Path, output: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a folder, with their places in it; hidden ones and those of the output are left out."""
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        # `os.walk` enters the folders that are left in this list.
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not _same(here / name, output))
        for name in sorted(names):
            if not name.startswith("."):
                yield here / name, (here / name).relative_to(folder)


def _same(first: Path, second: Path) -> bool:
    return second.exists() and first.exists() and first.samefile(second)


def _make_folder_of(file: Path | None) -> None:
    """Make the folder of an output."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"can't be made ({error.strerror})"
        raise UserError(what, file=file.parent, fix="Choose another --output.") from error


def translate_documents(
    job: SegmentJob, documents: Sequence[Planned], executor_of: ExecutorOf, *, retranslate: bool
) -> None:
    """Translate documents; with `retranslate`, also the segments that have a translation.

    The model is loaded once. If a document can't be translated, the others are, and the command fails at the end.
    `executor_of` returns the executor of a job, given the document if it is the only one.

    Raises:
        UserError: a document can't be translated.
    """
    if len(documents) == 1:
        _translate(job, documents[0], lambda job: executor_of(job, documents[0].file), retranslate=retranslate)
        return
    console = Console(stderr=True)
    failures = 0
    with _OpenExecutor(executor_of) as executor:
        for number, document in enumerate(documents, 1):
            console.print(f"{number} of {len(documents)}: {document.file} -> {document.output}", soft_wrap=True)
            try:
                _translate(job, document, executor.of, retranslate=retranslate)
            except UserError as error:
                console.print(f"error: {error}", soft_wrap=True)
                executor.close()  # it may still work on what is not wanted any more
                failures += 1
    if failures:
        what = f"{failures:,} of {len(documents):,} documents were not translated"
        raise UserError(what, fix="The reasons are above; the others are complete.")


class _OpenExecutor(AbstractContextManager["_OpenExecutor"]):
    """An executor that stays open from document to document, while the job is the same."""

    def __init__(self, executor_of: ExecutorOf) -> None:
        self.executor_of = executor_of
        self.stack = ExitStack()
        self.opened: tuple[SegmentJob, Executor] | None = None

    def of(self, job: SegmentJob) -> AbstractContextManager[Executor]:
        """Return the executor of a job, which the caller does not close."""
        if self.opened is None or self.opened[0] != job:
            self.close()
            self.opened = job, self.stack.enter_context(self.executor_of(job, None))
        return nullcontext(self.opened[1])

    def close(self) -> None:
        self.opened = None
        self.stack.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def _translate(
    job: SegmentJob,
    planned: Planned,
    executor_of: Callable[[SegmentJob], AbstractContextManager[Executor]],
    *,
    retranslate: bool,
) -> None:
    """Translate a document."""
    from bitext.documents.document import read_document
    from translucid.jobs.documents import segments_to_translate, translate_document

    file, output = planned
    kind = kind_of(file.name)
    # Word files, for example, are ZIP archives.
    if kind and kind.packed and output is None and sys.stdout.isatty():
        raise UserError("is not text, and a terminal shows nothing else", file=file, fix="Add --output FILE.")
    with input_bytes(file) as stream:
        content = stream.read()
    document: Document = read_document(str(file), content, job.languages)
    if job.line_length or job.reading_speed:
        from bitext.documents.subtitles.cues import Subtitles

        if not isinstance(document, Subtitles):
            fix = "Give subtitles, or leave them out."
            raise UserError("has no subtitles for `line_length` and `reading_speed`", file=file, fix=fix)
        document.limit(job.line_length, job.reading_speed)
    if output and output.suffix.lower() in (".xlf", ".xliff") and kind and kind.module != "xml.xliff":
        from bitext.review.xliff_file import DocumentForReview

        document = DocumentForReview(file.name, document, job.languages)
    numbers = segments_to_translate(document, retranslate=retranslate)
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    for remark in document.segments.remarks:
        say(remark)
    total = len(document.segments)
    if existing := total - len(numbers):
        say(f"{existing:,} of {total:,} segments have a translation, which stays; --retranslate translates them, too")
    # Some formats have a place for fuzzy matches.
    job = replace(job, near_matches=kind is not None and kind.near_matches)
    with progress_bar(console, "translating", len(numbers)) as advance:
        translate_document(job, document, numbers, output, executor_of(job), say=say, advance=advance)
