"""What several commands are given: corpus files as they come from a shell, output files, the engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer

from translucid.cli import completing
from translucid.data.readers.file_kinds import PAIR_ENDINGS, refuse_as_pairs
from translucid.engines.term_constraint import TermsMode
from translucid.ground.atomic import is_stream, resolve_symlinks
from translucid.ground.errors import UserError


def resolved(context: typer.Context, given: Path | list[Path] | None) -> Path | list[Path] | None:
    """Let every command find a run in the same way; a callback of arguments and options."""
    if given is None or context.resilient_parsing:  # a shell that completes a line imports no model
        return given
    from translucid.interop.run_resolution import resolve_run

    return list(map(resolve_run, given)) if isinstance(given, list) else resolve_run(given)


RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", callback=resolved, help="A run: its folder, its name, or a Hugging Face folder."),
]
EngineOption = Annotated[
    Literal["auto", "torch", "ctranslate2"],
    typer.Option("--engine", help="What searches: our own code, CTranslate2, or the faster one of those that can."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting.", autocompletion=completing.settings),
]
WithOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="RUN",
        callback=resolved,
        help="Average with this run's probabilities; give it again for each more.",
    ),
]
SourceOption = Annotated[
    str | None, typer.Option("--source-language", metavar="CODE", help="What the texts are in, for a model of many.")
]
TargetOption = Annotated[
    str | None, typer.Option("--target-language", metavar="CODE", help="What to write, for a model of many languages.")
]
TermsOption = Annotated[
    Path | None,
    typer.Option(
        "--terms", metavar="FILE", help="Source TAB target a line: how words are translated, or that they are not."
    ),
]
InflectTermsOption = Annotated[
    bool, typer.Option("--inflect-terms", help="Other forms of their words are these terms too.")
]
TermsModeOption = Annotated[
    TermsMode,
    typer.Option("--terms-mode", help="annotate: point them out to a run trained so. constrain: force them."),
]


TokenizeOption = Annotated[
    str | None,
    typer.Option(
        help="sacreBLEU's tokenizer for BLEU, none for tokenised text; if not given, that of the target language.",
        show_default=False,
    ),
]


class Format(StrEnum):
    """Of the output."""

    text = "text"
    jsonl = "jsonl"


def pair_up(files: Sequence[str]) -> list[str]:
    """Put a Moses pair together again that the shell has spread: `x.en x.de`, from `x.{en,de}`, is one corpus."""
    corpora: list[str] = []
    waiting: tuple[str, str, str] | None = None
    for file in files:
        refuse_as_pairs(file)
        gz = ".gz" if file.endswith(".gz") else ""
        plain = file.removesuffix(".gz")
        if plain.endswith((*PAIR_ENDINGS, "}")) or not Path(plain).suffix:
            corpora.append(file)
            continue
        stem, language = plain.rsplit(".", 1)
        if waiting is None:
            waiting = stem, language, gz
        elif waiting[0] == stem and waiting[2] == gz:
            corpora.append(f"{stem}.{{{waiting[1]},{language}}}{gz}")
            waiting = None
        else:
            break
    if waiting is not None:
        stem, language, gz = waiting
        raise UserError(
            "is one side of a corpus, its partner is missing",
            file=f"{stem}.{language}{gz}",
            fix=f"Give both sides, as {stem}.{{{language},xx}}{gz}, or a .tsv or .jsonl file.",
        )
    return corpora


def refuse_to_replace(file: Path | None, overwrite: bool, endings: Sequence[str] = ()) -> None:
    """Check, before any work, that an output file is not there yet or may be replaced, and that it can be written.

    Standard output (`-`), pipes and character devices are written to, and so never replaced.

    Args:
        file: to be written, if any.
        overwrite: whether it may be replaced.
        endings: that it may have; any if there are none.

    Raises:
        UserError: it is there, ends in something else, is no file, or its folder is not there or can't be written to.
    """
    if file is None:
        return
    if endings and file.suffix.lower() not in endings:
        raise UserError("is of no kind that can be written", file=file, fix=f"End it in {', '.join(endings)}.")
    if is_stream(file):
        return
    if file.exists() and not overwrite:
        raise UserError("is there already", file=file, fix="Replace it with --overwrite.")
    folder = resolve_symlinks(file).parent
    if not folder.is_dir():
        raise UserError("can't be written (there is no such folder)", file=file, fix="Check the path.")
    if not os.access(folder, os.W_OK):
        raise UserError("can't be written (its folder is read-only)", file=file, fix="Choose another folder.")


def input_bytes(file: Path | None) -> BinaryIO:
    """Open a file, or standard input if none is given or `-` is.

    Raises:
        UserError: it can't be read.
    """
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed", fix="Give a text, or a file with --input.")
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error


def text_bytes(texts: Sequence[str]) -> BinaryIO:
    """Return texts as a file of lines; a line feed within one would make two lines of it."""
    return BytesIO("".join(text.replace("\n", " ") + "\n" for text in texts).encode(errors="surrogateescape"))
