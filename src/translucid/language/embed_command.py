"""`translucid embed`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import input_bytes, refuse_to_replace
from translucid.ground.atomic import output
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched

if TYPE_CHECKING:
    from translucid.language.embedder import Layer

ENDINGS = (".npz", ".safetensors")
LayerOption = Annotated[
    str, Option(metavar="LAYER", help="A number (0: the embeddings), mix (the mean of all layers) or all.")
]


def embed(
    run: option.Run,
    files: Annotated[list[Path] | None, Argument(metavar="[FILE ...]", help="Text files, .tsv or .jsonl.")] = None,
    input_file: Annotated[Path | None, Option("--input", help="One such file; - is standard input.")] = None,
    out: Annotated[Path | None, Option(help="The file to write, .npz or .safetensors.")] = None,
    layer: LayerOption = "mix",
    overwrite: option.Overwrite = False,
    device: option.Device = "auto",
) -> None:
    """Write contextual word embeddings (ELMo).

    Spaces separate words. The file has `vectors`, one per word, `counts`, the number of words of each text, and `words`
    in UTF-8, one per line: `numpy.load(FILE)["words"].tobytes().decode().split()`. It must fit into memory.

    **Examples**

        translucid embed runs/elmo reviews.txt --out vectors.npz

        echo "Queen of the United Kingdom" | translucid embed runs/elmo --input - --out queen.safetensors --layer 2
    """
    import numpy as np

    from translucid.data.readers.texts import read_texts
    from translucid.language.embedder import TOGETHER, Embedder

    if bool(files) == bool(input_file):
        raise UserError("there is no text, or both FILE and --input", fix="Give files, or one file with --input.")
    if out is None:
        raise UserError("no --out was given", fix="Name the file to write, such as --out vectors.npz.")
    refuse_to_replace(out, overwrite, ENDINGS)
    chosen_layer = layer_of(layer)
    embedder = Embedder.load(run, device)
    embedder.check(chosen_layer)
    input_files = files or [input_file or Path("-")]
    all_texts: Iterator[str]
    if input_files == [Path("-")]:
        all_texts = _lines()
    else:
        all_texts = (text.source for text in read_texts(*input_files))
    words: list[str] = []
    counts: list[int] = []
    # No words at first, so that a file of no texts has vectors of the right width.
    vectors = [embedder.embed([""], chosen_layer)[0]]
    with progress_bar(Console(stderr=True), "embedding", None) as advance:
        for texts in batched(all_texts, TOGETHER):
            vectors += embedder.embed(texts, chosen_layer)
            for text in texts:
                words_of_text = text.split()
                words += words_of_text
                counts.append(len(words_of_text))
            advance(len(texts))
    word_bytes = np.frombuffer("\n".join(words).encode("utf-8", "replace"), np.uint8)
    arrays: dict[str, Any] = {
        "vectors": np.concatenate(vectors),
        "counts": np.array(counts, np.int64),
        "words": word_bytes,
    }
    _save(arrays, out)
    Console(stderr=True).print(f"saved: {out}, {len(words):,} words of {len(counts):,} texts", soft_wrap=True)


def _save(arrays: dict[str, Any], out: Path) -> None:
    import numpy as np
    from safetensors.numpy import save

    with output(out) as stream:
        if out.suffix.lower() == ".npz":
            np.savez(stream, **arrays)
        else:
            stream.write(save(arrays))


def layer_of(text: str) -> Layer:
    """Return the value of --layer.

    Raises:
        UserError: it is no layer.
    """
    if text == "mix":
        return "mix"
    if text == "all":
        return "all"
    if text.isdecimal() and len(text) < 4:
        return int(text)
    raise UserError(f"--layer {text!r} is no layer", fix="Give a number, mix or all.")


def _lines() -> Iterator[str]:
    """Yield the lines of standard input."""
    for number, line in enumerate(input_bytes(None), 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            what, fix = f"not UTF-8 ({error.reason})", "Convert the text, as with iconv."
            raise UserError(what, file="standard input", line=number, fix=fix) from error
