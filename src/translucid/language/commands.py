"""`translucid classify`, `generate` and `embed`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import input_bytes, lines_of, refuse_other_texts, refuse_unreadable
from translucid.cli.run_kinds import configuration_of
from translucid.ground.atomic import output
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched

if TYPE_CHECKING:
    from translucid.language.embedder import Layer, Neighbor


def classify(
    run: option.Run,
    texts: Annotated[list[str] | None, Argument(metavar="[TEXT ...]", help="The texts to classify.")] = None,
    ensemble: option.Ensemble = None,
    input_file: option.Input = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    output_format: Annotated[option.Format, Option("--format", help="jsonl has all labels.")] = "text",
    device: option.Device = "auto",
    workers: option.Workers = None,
) -> None:
    """Classify texts: one output line for each text, in order.

    A blank line yields a line without a label. Repeat a command with --output that was killed: it continues where it
    stopped and writes the same file. `translucid explain` shows which words decide.

    **Examples**

        translucid classify runs/mood "I laughed, I cried, I want my money back."

        translucid classify runs/mood --input reviews.txt --output moods.tsv

        translucid classify runs/mood --ensemble runs/mood-backwards --format jsonl < reviews.txt
    """
    from translucid.jobs.running import executor_of, run_with_progress
    from translucid.language.jobs import ClassifyJob

    refuse_other_texts(texts, input_file)
    ensemble_runs = tuple(ensemble or ())
    for classifier_run in (run, *ensemble_runs):
        configuration_of(classifier_run, "texts with labels")
    job = ClassifyJob(run, ensemble_runs, device=device, form=output_format)
    lines, executor = lines_of(texts, input_file), executor_of(job, workers)
    bad = run_with_progress(job, lines, output, executor, "classifying", hidden=bool(texts))
    refuse_unreadable(bad, " and have no label", input_file)


class Input(NamedTuple):
    """Input and execution."""

    input_file: option.Input = None
    device: option.Device = "auto"
    workers: option.Workers = None


class Output(NamedTuple):
    """Output."""

    output: option.Output = None
    overwrite: option.Overwrite = False
    output_format: Annotated[option.Format, Option("--format", help="jsonl has all pieces.")] = "text"
    top_candidates: Annotated[int, Option(help="With jsonl: add the N most probable pieces of each step.", min=0)] = 0
    max_tokens: Annotated[int | None, Option(help="Maximum pieces after the prompt; default: the run's.", min=1)] = None


class Search(NamedTuple):
    """Search."""

    beam: option.Beam = None
    nbest: option.Nbest = None
    length_penalty: option.LengthPenalty = None
    no_repeat_ngram: option.NoRepeatNgram = None


def generate(
    run: option.Run,
    texts: Annotated[list[str] | None, Argument(metavar="[TEXT ...]", help="The prompts.")] = None,
    *,
    source: Input,
    output: Output,
    search: Search,
    sampling: option.Sampling,
) -> None:
    """Continue texts with a language model: one output line for each input line, in order.

    An empty prompt yields a text from its beginning. A model that was trained with `model.backwards` writes the text
    before the prompt. Without --beam or an option of sampling, it searches or samples as the run says. Repeat a
    command with --output that was killed: it continues where it stopped.

    **Examples**

        translucid generate runs/english "The old house"

        translucid generate runs/english "The old house" --temperature 0.7 --top-p 0.9 --nbest 5 --seed 7

        translucid generate runs/english "The old house" --beam 5 --max-tokens 20 --format jsonl --top-candidates 5

        translucid generate runs/english --input beginnings.txt --output texts.txt
    """
    from translucid.jobs.running import executor_of, run_with_progress
    from translucid.language.generator import generation_options
    from translucid.language.jobs import GenerateJob

    refuse_other_texts(texts, source.input_file)
    if output.top_candidates and output.output_format != "jsonl":
        raise UserError("--top-candidates has no place in plain text", fix="Add --format jsonl.")
    options = generation_options(
        configuration_of(run, "running text").decoding, {**search._asdict(), **sampling.settings()}
    )
    job = GenerateJob(
        run,
        options,
        device=source.device,
        form=output.output_format,
        columns=search.nbest or 1,
        max_tokens=output.max_tokens,
        top_candidates=output.top_candidates,
    )
    lines, executor = lines_of(texts, source.input_file), executor_of(job, source.workers)
    bad = run_with_progress(job, lines, output.output, executor, "writing", hidden=bool(texts))
    refuse_unreadable(bad, "; their unreadable bytes were read as �", source.input_file)


embed = typer.Typer(no_args_is_help=True, help="Contextual word embeddings (ELMo): write them, or find similar words.")
ENDINGS = (".npz", ".safetensors")
LayerOption = Annotated[
    str, Option(metavar="LAYER", help="A number (0: the embeddings), mix (the mean of all layers) or all.")
]


@embed.command()
def write(
    run: option.Run,
    files: Annotated[list[Path] | None, Argument(metavar="[FILE ...]", help="Text files, .tsv or .jsonl.")] = None,
    input_file: Annotated[Path | None, Option("--input", help="One such file; - is standard input.")] = None,
    out: Annotated[
        Path | None, Option(callback=option.to_write(*ENDINGS), help="The file to write, .npz or .safetensors.")
    ] = None,
    layer: LayerOption = "mix",
    overwrite: option.Overwrite = False,
    device: option.Device = "auto",
) -> None:
    """Write contextual word embeddings (ELMo).

    Spaces separate words. The file has `vectors`, one per word, `counts`, the number of words of each text, and `words`
    in UTF-8, one per line: `numpy.load(FILE)["words"].tobytes().decode().split()`. It must fit into memory.

    **Examples**

        translucid embed write runs/elmo reviews.txt --out vectors.npz

        echo "Queen of England" | translucid embed write runs/elmo --input - --out queen.safetensors --layer 2
    """
    import numpy as np

    from translucid.data.readers.texts import read_texts
    from translucid.language.embedder import TOGETHER, Embedder

    if bool(files) == bool(input_file):
        raise UserError("there is no text, or both FILE and --input", fix="Give files, or one file with --input.")
    if out is None:
        raise UserError("no --out was given", fix="Name the file to write, such as --out vectors.npz.")
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


AROUND = 8
"""The number of words shown on either side."""


@embed.command()
def nearest(
    run: option.Run,
    sentence: Annotated[str, Argument(metavar="SENTENCE", help="A sentence that contains the word.")],
    word: Annotated[str, Option(help="The word; its first occurrence in the sentence counts.")],
    among: Annotated[list[Path], option.files("Files with one text per line, .tsv or .jsonl, gzipped or not.")],
    layer: LayerOption = "mix",
    top: Annotated[int, Option(help="The number of results.", min=1, max=1000)] = 10,
    same: Annotated[bool, Option("--same", help="Only other occurrences of the same word.")] = False,
    jsonl: Annotated[bool, Option("--jsonl", help="One JSON object per line instead of a table.")] = False,
    device: option.Device = "auto",
) -> None:
    """Find the words of a text whose contextual embeddings are most similar to that of a word in a sentence.

    The vectors are those of `translucid embed write`, compared by their cosine. The text may be of any size.

    **Examples**

        translucid embed nearest runs/elmo "Queen of the United Kingdom" --word Queen --among news.txt

        translucid embed nearest runs/elmo "they play chess" --word play --among reviews.jsonl --same --layer 2 --jsonl
    """
    from translucid.data.readers.texts import read_texts
    from translucid.language.embedder import Embedder

    chosen_layer = layer_of(layer)
    embedder = Embedder.load(run, device)
    texts = (text.source for text in read_texts(*among))
    with progress_bar(Console(stderr=True), "reading", None) as advance:
        neighbors = embedder.nearest(sentence, word, texts, layer=chosen_layer, top=top, same=same, on_done=advance)
    if jsonl:
        for neighbor in neighbors:
            record = {
                "similarity": neighbor.similarity,
                "word": neighbor.words[neighbor.place],
                "text": neighbor.text,
                "place": neighbor.place,
                "sentence": " ".join(neighbor.words),
            }
            print(json.dumps(record, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for neighbor in neighbors:
        table.add_row(Text(f"{neighbor.similarity:.3f}"), _in_context(neighbor))
    Console().print(table)


def _in_context(neighbor: Neighbor) -> Text:
    """Return the word, highlighted, between its neighbors in the text."""
    words, place = neighbor.words, neighbor.place
    start, end = max(0, place - AROUND), place + 1 + AROUND
    before = "".join(f"{word} " for word in words[start:place])
    after = "".join(f" {word}" for word in words[place + 1 : end])
    opening, closing = "… " if start else "", " …" if end < len(words) else ""
    return Text.assemble(opening, before, (f"«{words[place]}»", "bold"), after, closing)
