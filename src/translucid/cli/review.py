"""`translucid review`: files for reviewers of translated documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from bitext.languages import Languages
from translucid.cli import option
from translucid.cli.arguments import input_bytes
from translucid.cli.printing import print_json
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.documents.document import Document, Target
    from bitext.review.review import Correction, Review

app = typer.Typer(
    no_args_is_help=True,
    help="Files for reviewers of translated documents.",
    rich_markup_mode="markdown",
)
ENDINGS = (".docx", ".xlf", ".xliff")
DocumentArgument = Annotated[Path, Argument(metavar="DOCUMENT", help="The document, before its translation.")]
ReviewArgument = Annotated[Path, Argument(metavar="REVIEW", help="The file that came back.")]


@app.command()
def make(
    document: DocumentArgument,
    review: Annotated[
        Path,
        Argument(metavar="REVIEW", callback=option.to_write(*ENDINGS), help="The file to write: .docx or .xlf."),
    ],
    translated: Annotated[
        Path | None, Option(metavar="FILE", help="The translated document, or an .xlf of `translate`.")
    ] = None,
    source_language: Annotated[str | None, Option(metavar="CODE", help="The language of the document.")] = None,
    target_language: Annotated[str | None, Option(metavar="CODE", help="The language of the translation.")] = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Write a translated document as a file for a reviewer.

    A .docx is a table of numbers, sources, translations and comments, which Word and LibreOffice edit with tracked
    changes. An .xlf is XLIFF 2.1, for programs of translators. Tags of the document are marks such as ⟨1⟩ and ⟨/1⟩.

    Without --translated, the translations are those in the document itself, such as a .po.

    **Examples**

        translucid review make handbook.docx review.docx --translated handbook.es.docx --source-language en
        --target-language es

        translucid review make messages.es.po review.xlf --source-language en --target-language es

        translucid review make handbook.docx review.docx --translated handbook.xlf
    """
    from bitext.review.review import corrected, review_of, translations_of
    from bitext.review.review_file import written_review

    languages = source_language, target_language
    content = _content(translated) if translated else b""
    earlier = _review(translated, content) if translated else None
    if earlier:
        languages = source_language or earlier.languages[0], target_language or earlier.languages[1]
    original = _document(document, languages)
    log = Console(stderr=True)
    targets: dict[int, Target] = {}
    if earlier:
        result = corrected(original, earlier, "")
        _print(result.problems, log)
        targets = result.targets
    elif translated:
        targets = translations_of(original, str(translated), content, languages)
    rows = review_of(document.name, original, targets, languages, earlier)
    write_output(review, written_review(str(review), rows))
    count = sum(row.target is not None for row in rows.rows)
    log.print(f"{review}: {len(rows.rows):,} segments, {count:,} with a translation", soft_wrap=True)


@app.command()
def read(
    document: DocumentArgument,
    review: ReviewArgument,
    out: Annotated[Path, Argument(metavar="OUT", callback=option.to_write(), help="The translated document to write.")],
    memory: Annotated[
        Path | None, Option(metavar="MEMORY", help="A .memory that gets the corrections; created if missing.")
    ] = None,
    who: Annotated[str | None, Option(help="The reviewer, if the file names none.")] = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Write the translated document with a reviewer's corrections.

    The problem of a row, such as a missing mark, is shown with its number; the row then keeps the translation before
    the review. So do the rows that were deleted.

    **Examples**

        translucid review read handbook.docx review.docx handbook.es.docx

        translucid review read messages.es.po review.xlf messages.po --memory mine.memory --who Ana
    """
    from bitext.memory.database import ENDING, is_database
    from bitext.review.review import corrected
    from bitext.review.review_file import read_review

    if memory and not is_database(memory):
        raise UserError("is not written to", file=memory, fix=f"Name one that ends in {ENDING}.")
    rows = read_review(str(review), _content(review))
    original = _document(document, rows.languages)
    log, result = Console(stderr=True), corrected(original, rows, who or review.name)
    content = original.filled(result.targets)
    if memory:
        _add(memory, result.corrections, rows.languages)
    write_output(out, content)
    _print([f"warning: {warning}" for warning in result.warnings], log)
    _print(result.problems, log)
    corrected_count = sum(correction.is_changed for correction in result.corrections)
    counts = f"{corrected_count:,} corrected, {len(result.corrections) - corrected_count:,} approved unchanged"
    log.print(f"{out}: {len(original.segments):,} segments, {counts}", soft_wrap=True)
    if result.problems:
        count = len(result.problems)
        what = f"has a problem in {count:,} row{'s' * (count > 1)}; all others are in {out}"
        raise UserError(what, file=review, fix="Correct these rows, and read the file again with --overwrite.")


@app.command()
def compare(
    review: ReviewArgument,
    final: Annotated[
        Path | None, Option(metavar="FILE", help="The final translation: a document, or a later review.")
    ] = None,
    out: Annotated[
        Path | None,
        Option(metavar="FILE", callback=option.to_write(".html", ".tsv"), help="Write all segments: .html or .tsv."),
    ] = None,
    as_json: option.Json = False,
    overwrite: option.Overwrite = False,
) -> None:
    """Show how the machine's text, the corrected and the final one differ: edits and chrF.

    **Examples**

        translucid review compare review.docx --out differences.html

        translucid review compare review.xlf --final handbook.es.docx --out differences.tsv --json
    """
    from dataclasses import asdict

    from bitext.review.review import without_tags
    from bitext.review.review_file import read_review
    from translucid.evaluation.differences import Differences, Versions

    rows = read_review(str(review), _content(review))
    names = ["machine", "corrected"]
    finals: dict[int, str] = {}
    if final:
        names.append("final")
        finals = _final_texts(final, rows)
    segments = []
    for row in sorted(rows.rows, key=attrgetter("number")):
        texts = [row.machine and without_tags(row.machine), row.target and without_tags(row.target)]
        if final:
            texts.append(finals.get(row.number))
        segments.append(Versions(row.number, without_tags(row.source), texts, row.comment))
    differences = Differences(names, segments)
    log = Console(stderr=True)
    _print(rows.problems, log)
    if out:
        is_page = out.suffix.lower() == ".html"
        write_output(out, (differences.html(str(review.name)) if is_page else differences.tsv()).encode())
    totals = differences.totals()
    if as_json:
        print_json([asdict(total) for total in totals])
        return
    for total in totals:
        print(total)


def _add(memory: Path, corrections: Sequence[Correction], languages: Languages) -> None:
    """Add corrections to a memory, which is created if it is missing."""
    from bitext.memory.translation_memory import TranslationMemory

    with TranslationMemory.open(memory, write=True) as opened:
        opened.refuse_other_languages(languages)
        names = zip(("source language", "target language"), languages, strict=True)
        opened.note({name: code for name, code in names if code})
        for who, group in groupby(sorted(corrections, key=attrgetter("who")), key=attrgetter("who")):
            opened.add([correction.pair for correction in group], who)


def _content(file: Path) -> bytes:
    with input_bytes(file) as stream:
        return stream.read()


def _document(file: Path, languages: Languages) -> Document:
    from bitext.documents.document import read_document

    return read_document(str(file), _content(file), languages)


def _review(file: Path, content: bytes) -> Review | None:
    """Return the review in a file; None if it is another document."""
    from bitext.review.review_file import read_review

    if file.suffix.lower() not in ENDINGS:
        return None
    try:
        review = read_review(str(file), content)
    except UserError:
        return None  # what is wrong with it as a document is said then
    return review if review.document else None


def _final_texts(file: Path, review: Review) -> dict[int, str]:
    """Return the texts of the final translation by the number of the segment, from 1."""
    from bitext.review.review import translated_texts, without_tags

    content = _content(file)
    if later := _review(file, content):
        return {row.number: without_tags(row.target) for row in later.rows if row.target}
    count = max(row.number for row in review.rows)
    texts = translated_texts(str(file), content, review.languages, count)
    return {number: target.marked.text for number, target in texts.items()}


def _print(problems: Sequence[str], log: Console) -> None:
    for problem in problems:
        log.print(problem, soft_wrap=True)
