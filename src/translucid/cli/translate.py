"""`translucid translate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer
from rich.console import Console
from rich.markup import escape

from translucid.cli.files import refuse_to_replace
from translucid.cli.options import EngineOption

if TYPE_CHECKING:
    from translucid.translator import Translation


class Format(StrEnum):
    """Of the output."""

    text = "text"
    jsonl = "jsonl"


def translate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT ...]", help="What to translate.")] = None,
    input_file: Annotated[Path | None, typer.Option("--input", help="One text a line; - is standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Translations for each text, tab-separated in text format.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Higher favours longer translations.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No run of this many pieces comes twice.")] = None,
    max_length_ratio: Annotated[float | None, typer.Option(help="Output tokens for each input token, at most.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; below 1 is more careful.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the K likeliest pieces.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the likeliest pieces of this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    split_sentences: Annotated[
        bool, typer.Option("--split-sentences", help="Translate each sentence of a line by itself.")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add word alignments from attention, as 0-0 1-2, after a tab.")
    ] = False,
    output_format: Annotated[Format, typer.Option("--format", help="text, or jsonl with scores.")] = Format.text,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
) -> None:
    """Translate: one output line for each input line, in order, always.

    Lines end at a line feed and nowhere else; an empty line gives an empty line.

    **Examples**

        translucid translate runs/demo "I like soccer"

        translucid translate runs/es --input book.txt --output libro.txt --split-sentences

        cat lines.txt | translucid translate runs/es --beam 1 > out.txt

        translucid translate runs/es --nbest 5 --format jsonl "Good morning"
    """
    from translucid.decoding.options import DecodingOptions
    from translucid.errors import UserError
    from translucid.progress import counting
    from translucid.training.configuration import checked
    from translucid.translator import Translator

    if texts and input_file:
        raise UserError("both a text and --input were given", fix="Give one of them.")
    refuse_to_replace(output, overwrite)
    translator = Translator.load(run, device, engine)
    if alignments and not translator.can_look():
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Omit --alignments.")
    given = {
        "beam": beam,
        "nbest": nbest,
        "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "max_length_ratio": max_length_ratio,
        "sample": sample or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    settings = translator.configuration.decoding.model_dump()
    options = checked(DecodingOptions, {**settings, **{key: v for key, v in given.items() if v is not None}})
    console = Console(stderr=True, highlight=False)
    reader = _Lines(console)
    with ExitStack() as stack:
        lines: Iterator[str] = iter(texts or [])
        if not texts:
            lines = reader.read(stack.enter_context(_open(input_file)))
        out = stack.enter_context(_Output(output))
        advance = stack.enter_context(counting(console, "translating", None, hidden=bool(texts)))
        for number, found in enumerate(translator.stream(lines, options, sentences=split_sentences), 1):
            for warning in found.warnings:
                console.print(f"line {number}: {escape(warning)}", soft_wrap=True)
            out.write(_line(found, output_format, nbest=nbest or 1, alignments=alignments))
            advance(1)
    if reader.bad:
        raise UserError(
            f"{reader.bad} lines are not UTF-8; their unreadable bytes were translated as �",
            file=input_file or "standard input",
            fix="Convert the file first, as with iconv -f latin1 -t utf-8.",
        )


def _line(found: Translation, output_format: Format, *, nbest: int, alignments: bool) -> str:
    if output_format is Format.jsonl:
        record: dict[str, object] = {"source": found.source, "translation": found.text, "score": round(found.score, 6)}
        if nbest > 1:
            record["alternatives"] = found.alternatives
        if alignments:
            record["alignment"] = found.alignment
        return json.dumps(record, ensure_ascii=False)
    columns = found.alternatives if nbest > 1 else [found.text]
    if alignments:
        from translucid.inspection.alignment import to_pharaoh

        columns = [*columns, to_pharaoh(found.alignment)]
    return "\t".join(columns)


def _open(file: Path | None) -> BinaryIO:
    from translucid.errors import UserError

    if file is None or str(file) == "-":
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error


class _Lines:
    """Lines of a stream: they end at a line feed; one that is not UTF-8 is still a line."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bad = 0

    def read(self, stream: BinaryIO) -> Iterator[str]:
        for number, raw in enumerate(stream, 1):
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                self.bad += 1
                if self.bad <= 3:
                    self.console.print(f"line {number}: not UTF-8")
                yield line.decode("utf-8", errors="replace")


class _Output:
    """Standard output, or a file that appears only when it is whole."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.part = file.with_name(f".{file.name}.part") if file else None
        self.stream: TextIO = sys.stdout

    def __enter__(self) -> _Output:
        from translucid.errors import UserError

        if self.part:
            try:
                self.stream = self.part.open("w", encoding="utf-8", newline="\n")
            except OSError as error:
                raise UserError(
                    f"can't be written ({error.strerror})", file=self.file, fix="Check the path."
                ) from error
        return self

    def write(self, line: str) -> None:
        self.stream.write(line + "\n")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self.part or not self.file:
            self.stream.flush()
            return
        self.stream.close()
        if error is None:
            self.part.replace(self.file)
        else:
            self.part.unlink()
