"""Values of arguments: names with a number, corpora as they come from a shell, texts, and files to write."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from bitext.languages import usual_code
from bitext.readers.file_kinds import (
    PAIR_ENDINGS,
    is_file,
    is_folder,
    refuse_as_pairs,
    refuse_documents,
    refuse_file_names,
    without_packing,
)
from bitext.reading import reading
from translucid.data.readers.corpus import CorpusName, refuse_wrong_languages, sides
from translucid.data.readers.test_sets import is_test_set
from translucid.ground.atomic import is_stream, resolve_symlinks
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import refuse_picture


def name_and_number(value: str, number: str = r"\d{1,9}", *, is_path: bool = False) -> tuple[str, str | None]:
    """Divide `NAME:NUMBER`; the number is None if there is none, or if a path of the whole name exists.

    >>> name_and_number("mbr:32"), name_and_number("best"), name_and_number("memory.tmx:85", is_path=True)
    (('mbr', '32'), ('best', None), ('memory.tmx', '85'))
    """
    match = re.fullmatch(rf"(.+):({number})", value, re.ASCII | re.DOTALL)
    if match is None or (is_path and (is_file(value) or is_folder(value))):
        return value, None
    return match[1], match[2]


def pair_up(files: Sequence[str]) -> list[str]:
    """Join the two sides of a Moses pair that the shell has expanded: `x.en x.de`, from `x.{en,de}`, is one corpus.

    The codes of the languages may be anywhere in the names, as in those of official test sets: `eng_Latn.devtest` and
    `spa_Latn.devtest` of FLORES, `newstest2019-src.eng.txt` and `newstest2019-ref.spa.txt` of NTREX. The languages in
    the name of a corpus, as in `x.{en,de}:en-de`, stay.
    """
    corpora: list[str] = []
    unpaired: tuple[str, str] | None = None
    for name in files:
        refuse_wrong_languages(name)
        corpus = CorpusName.parse(name)
        file = corpus.files
        refuse_as_pairs(file)
        uncompressed = without_packing(file)
        ending = file[len(uncompressed) :] + corpus.suffix
        # Braces name both sides; a name without an ending, such as `-`, is a corpus, too.
        is_one_file = uncompressed.lower().endswith(PAIR_ENDINGS) or not Path(uncompressed).suffix
        if is_one_file or is_test_set(name) or len(sides(file)) == 2:
            corpora.append(name)
            continue
        if unpaired is None:
            unpaired = uncompressed, ending
        elif unpaired[1] == ending and (joined := _joined(unpaired[0], uncompressed)):
            corpora.append(f"{joined}{ending}")
            unpaired = None
        else:
            break  # the file that waits has no partner, which is reported below
    if unpaired is not None:
        file, ending = unpaired
        stem, language = file.rsplit(".", 1)
        raise UserError(
            "is one side of a corpus, its partner is missing",
            file=f"{file}{ending}",
            fix=f"Give both sides, as {stem}.{{{language},xx}}{ending}, or a .tsv or .jsonl file.",
        )
    return corpora


_SIDES = ("src", "ref")
"""Parts of the names of two files that are the source and the references of a test set."""


def _joined(first: str, second: str) -> str | None:
    """Return the names of two files as one with braces, if they differ only in languages, or have the same stem.

    >>> _joined("x.en", "x.de"), _joined("eng_Latn.devtest", "spa_Latn.devtest"), _joined("x.en", "z.de")
    ('x.{en,de}', '{eng_Latn,spa_Latn}.devtest', None)
    """
    stem, language = first.rsplit(".", 1)
    second_stem, second_language = second.rsplit(".", 1)
    if stem == second_stem:
        return f"{stem}.{{{language},{second_language}}}"
    first_parts, second_parts = re.split(r"([./-])", first), re.split(r"([./-])", second)
    if len(first_parts) != len(second_parts):
        return None
    differing = []
    for i, (one, other) in enumerate(zip(first_parts, second_parts, strict=True)):
        if one != other:
            if (one, other) != _SIDES and not (usual_code(one) and usual_code(other)):
                return None
            differing.append(i)
    start, end = differing[0], differing[-1] + 1
    if "/" in first_parts[start:end]:  # braces name files of one folder, or folders
        return None
    middles = "".join(first_parts[start:end]), "".join(second_parts[start:end])
    return f"{''.join(first_parts[:start])}{{{','.join(middles)}}}{''.join(first_parts[end:])}"


def refuse_to_replace(file: Path | None, overwrite: bool, endings: Sequence[str] = ()) -> None:
    """Check, before any work, that an output file can be written and does not replace another by mistake.

    Standard output (`-`), pipes and character devices are written to, and so never replaced.

    Args:
        file: the output file, if any.
        overwrite: whether it may be replaced.
        endings: the endings that it may have; any if there are none.

    Raises:
        UserError: it exists, has another ending, is no file, or its folder is missing or read-only; or it is a picture,
            and Matplotlib, which draws it, is not installed.
    """
    if file is None:
        return
    if endings and file.suffix.lower() not in endings:
        raise UserError("is of no kind that can be written", file=file, fix=f"End it in {', '.join(endings)}.")
    if is_stream(file):
        return
    if file.exists() and not overwrite:
        raise UserError("is there already", file=file, fix="Replace it with --overwrite.")
    # A link stays; the file to which it leads is written.
    folder = resolve_symlinks(file).parent
    if not folder.is_dir():
        raise UserError("can't be written (there is no such folder)", file=file, fix="Check the path.")
    if not os.access(folder, os.W_OK):
        raise UserError("can't be written (its folder is read-only)", file=file, fix="Choose another folder.")
    if endings:
        refuse_picture(file)


def refuse_two_inputs(what: str, arguments: Sequence[object] | None, input_file: Path | None) -> None:
    """Check that the input is given either as arguments or as a file.

    Raises:
        UserError: both are given.
    """
    if arguments and input_file:
        raise UserError(f"both {what} and --input were given", fix="Give one of them.")


def refuse_other_texts(texts: Sequence[str] | None, input_file: Path | None) -> None:
    """Check that the input is lines of text: either arguments that name no file, or a file that is no document.

    Raises:
        UserError: it is something else, or both are given.
    """
    refuse_two_inputs("a text", texts, input_file)
    refuse_documents(input_file)
    fix = "Give its lines with --input, or a name that is a text after all on standard input."
    refuse_file_names(texts or (), fix)


def refuse_unreadable(count: int, effect: str, input_file: Path | None) -> None:
    """Report, after the work, the lines that were not UTF-8.

    Raises:
        UserError: there were such lines.
    """
    if count:
        what = f"{count} lines are not UTF-8{effect}"
        fix = "Convert the file first, as with iconv -f latin1 -t utf-8."
        raise UserError(what, file=input_file or "standard input", fix=fix)


def lines_of(texts: Sequence[str] | None, input_file: Path | None) -> BinaryIO:
    """Return texts as a stream of lines; the lines of a file, or of standard input, if there are none.

    Raises:
        UserError: the file can't be read.
    """
    if not texts:
        return input_bytes(input_file)
    # A line feed within a text would make two lines of it.
    lines = "".join(text.replace("\n", " ") + "\n" for text in texts)
    # Arguments that are not UTF-8 keep their bytes, as lines of a file would.
    return BytesIO(lines.encode(errors="surrogateescape"))


def input_bytes(file: Path | None) -> BinaryIO:
    """Open a file, or standard input if there is none or it is `-`.

    Raises:
        UserError: it can't be read.
    """
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed", fix="Give a text, or a file with --input.")
        return sys.stdin.buffer
    with reading(file):
        return file.open("rb")
