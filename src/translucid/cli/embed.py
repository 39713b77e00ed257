"""`translucid embed`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from translucid.cli.arguments import RunArgument, input_bytes, refuse_to_replace
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.api.embedder import Layer

ENDINGS = (".npz", ".safetensors")
LayerOption = Annotated[
    str, typer.Option(metavar="LAYER", help="A number, 0 for the embeddings; mix: the mean of all layers; or all.")
]


def embed(
    run: RunArgument,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE ...]", help="A text a line, .tsv or .jsonl, gz or not.")
    ] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="One such file; - is standard input, a text a line.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write, .npz or .safetensors.")] = None,
    layer: LayerOption = "mix",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it is there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Write contextual word embeddings (ELMo).

    Words are what stands between spaces. The file has `vectors`, one a word, `counts`, the words of each text, and
    `words` in UTF-8, one a line: `numpy.load(FILE)["words"].tobytes().decode().split()`. It is made in memory.

    **Examples**

        translucid embed runs/elmo reviews.txt --out vectors.npz

        echo "Queen of the United Kingdom" | translucid embed runs/elmo --input - --out queen.safetensors --layer 2
    """
    import numpy as np

    from translucid.api.embedder import TOGETHER, Embedder
    from translucid.data.readers.texts import read_texts
    from translucid.ground.atomic import output
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError

    if bool(files) == bool(input_file):
        raise UserError("there is no text, or both FILE and --input", fix="Give files, or one file with --input.")
    if out is None:
        raise UserError("no --out was given", fix="Name the file to write, such as --out vectors.npz.")
    refuse_to_replace(out, overwrite, ENDINGS)
    wanted = layer_of(layer)
    embedder = Embedder.load(run, device)
    embedder.check(wanted)
    named = files or [input_file or Path("-")]
    coming = _lines() if named == [Path("-")] else (text.source for text in read_texts(*named))
    words: list[str] = []
    counts, parts = [], [embedder.embed([""], wanted)[0]]
    with counting(Console(stderr=True), "embedding", None) as advance:
        while texts := list(islice(coming, TOGETHER)):
            parts += embedder.embed(texts, wanted)
            counts += [len(text.split()) for text in texts]
            words += [word for text in texts for word in text.split()]
            advance(len(texts))
    written = np.frombuffer("\n".join(words).encode("utf-8", "replace"), np.uint8)
    arrays: dict[str, Any] = {"vectors": np.concatenate(parts), "counts": np.array(counts, np.int64), "words": written}
    with output(out) as stream:
        if out.suffix.lower() == ".npz":
            np.savez(stream, **arrays)
        else:
            from safetensors.numpy import save

            stream.write(save(arrays))
    Console(stderr=True).print(f"saved: {out}, {len(words):,} words of {len(counts):,} texts", soft_wrap=True)


def layer_of(text: str) -> Layer:
    """Return what --layer says.

    Raises:
        UserError: that is no layer.
    """
    from translucid.ground.errors import UserError

    if text == "mix":
        return "mix"
    if text == "all":
        return "all"
    if text.isdecimal() and len(text) < 4:
        return int(text)
    raise UserError(f"--layer {text!r} is no layer", fix="Give a number, mix or all.")


def _lines() -> Iterator[str]:
    """Yield the lines of standard input."""
    from translucid.ground.errors import UserError

    for number, line in enumerate(input_bytes(None), 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            what, fix = f"not UTF-8 ({error.reason})", "Convert the text, as with iconv."
            raise UserError(what, file="standard input", line=number, fix=fix) from error
