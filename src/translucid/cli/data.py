"""`translucid data`: corpus statistics, cleaning, the built-in corpora, and back-translation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from bitext.readers.standard_input import refuse_twice
from translucid.cli import option
from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.cli.back_translate import back_translate
from translucid.cli.clean import clean
from translucid.cli.printing import print_json
from translucid.data.readers.bad_lines import BadLines
from translucid.data.readers.corpus import read_pairs
from translucid.data.readers.corpus_names import CorpusName, label
from translucid.ground.atomic import write_output
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError, missing_package, nearest

if TYPE_CHECKING:
    from translucid.data.statistics import Overlap, SideStatistics, SplitStatistics

app = typer.Typer(
    no_args_is_help=True,
    help="Inspect corpora, clean them, write the built-in ones, and back-translate monolingual text.",
    rich_markup_mode="markdown",
)
app.command("back-translate")(back_translate)
app.command("clean")(clean)

Files = Annotated[list[str] | None, option.files("Sentence pairs.")]


@app.command()
def stats(
    train: Files = None,
    valid: Files = None,
    test: Files = None,
    skip_bad: option.SkipBad = False,
    as_json: option.Json = False,
) -> None:
    """Show sizes, lengths, duplicates, leaks from training into test files, and characters of other scripts.

    **Examples**

        translucid data stats --train train.tsv --valid dev.tsv --test test.tsv

        translucid data stats --train 'train.{en,de}.gz' --json

        translucid data stats --train fr.tsv:en-fr de.tsv:en-de --test test-fr.tsv:en-fr
    """
    from translucid.data.statistics import Overlap
    from translucid.runs.presets import advice_for_size

    refuse_twice(train, valid, test)
    files = {}
    for name, split_files in (("train", train), ("valid", valid), ("test", test)):
        if split_files:
            files[name] = pair_up(split_files)
    if not files:
        raise UserError("no files were given", fix="Give --train, --valid or --test FILES.")
    files = _by_languages(files)
    log = Console(stderr=True)
    splits = _read(files, skip_bad, log)
    overlaps = []
    for name in files:
        split, space, languages = name.partition(" ")
        training = splits.get(f"train{space}{languages}")
        if split != "train" and training:
            pairs = read_pairs(*files[name], on_bad=BadLines() if skip_bad else None)
            overlaps.append(Overlap.find(name, pairs, training))
    train_splits = [split for name, split in splits.items() if name.partition(" ")[0] == "train"]
    train_pairs = sum(split.usable for split in train_splits)
    if as_json:
        record: dict[str, Any] = {name: split.summary() for name, split in splits.items()}
        record["overlap"] = [overlap.to_json() for overlap in overlaps]
        print_json({**record, "advised": advice_for_size(train_pairs)[0].name if train_pairs else None})
    else:
        _print(Console(), list(splits.values()), overlaps)
        if train_pairs:
            advice, *_ = advice_for_size(train_pairs)
            command = (
                f"translucid train {advice.name}" if advice.is_recipe else f"translucid train --model {advice.name}"
            )
            Console().print(f"\nadvice: {train_pairs:,} pairs to train on: {command} ({advice.reason})", soft_wrap=True)
    for overlap in overlaps:
        if overlap.sources:
            _warn_of_overlap(overlap, log)


def _by_languages(files: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the files of each split, such as `train`, or of each split and pair of languages: `train en-fr`."""
    language_pairs = {CorpusName.parse(file).languages for file in chain.from_iterable(files.values())}
    if len(language_pairs) == 1:
        return files
    by_languages: dict[str, list[str]] = {}
    for split, names in files.items():
        for name in names:
            languages = CorpusName.parse(name).languages
            key = f"{split} {label(languages)}" if languages else split
            by_languages.setdefault(key, []).append(name)
    return by_languages


def _read(files: dict[str, list[str]], skip_bad: bool, log: Console) -> dict[str, SplitStatistics]:
    """Return the statistics of each split."""
    from translucid.data.filtering import Filter
    from translucid.data.statistics import NO_PAIRS, SplitStatistics

    splits = {}
    with progress_bar(log, "reading", None) as advance:
        for name, corpora in files.items():
            splits[name] = split = SplitStatistics(name)
            bad = BadLines() if skip_bad else None
            for count in split.read(read_pairs(*corpora, on_bad=bad, documents=True), Filter()):
                advance(count)
            if bad and bad.count:
                split.faults[NO_PAIRS] += bad.count
    return splits


def _warn_of_overlap(overlap: Overlap, log: Console) -> None:
    examples = "; ".join(f"line {line}: {text}" for line, text in overlap.examples)
    summary = f" {overlap.sources:,} source sentences of {overlap.split} are in the training files too"
    consequence = f", so scores on it flatter ({examples})"
    log.print(Text.assemble(("warning:", "yellow"), summary, consequence), soft_wrap=True)


def _print(console: Console, splits: list[SplitStatistics], overlaps: list[Overlap]) -> None:
    console.print(_pairs_table(splits))
    console.print()
    console.print(_sides_table(splits))
    for split in splits:
        for name, side in _sides_of(split):
            _print_unexpected(console, f"{split.name} {name}", side)
            _print_normalisation(console, f"{split.name} {name}", side)
    for overlap in overlaps:
        shared = f"{overlap.pairs:,} pairs, {overlap.sources:,} sources, {overlap.targets:,} targets"
        console.print(f"\n{overlap.split} shares with train: {shared}", soft_wrap=True)


def _sides_of(split: SplitStatistics) -> list[tuple[str, SideStatistics]]:
    return [("source", split.source), ("target", split.target)]


def _pairs_table(splits: list[SplitStatistics]) -> Table:
    table = table_of("split", figures=("pairs", "documents", "same pair", "same source", "would be skipped"))
    for split in splits:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in split.faults.most_common()) or "none"
        figures = split.pairs, split.documents, split.duplicate_pairs, split.duplicate_sources
        counts = [f"{figure:,}" for figure in figures]
        table.add_row(Text(split.name, "bold"), *counts, skipped)
    return table


def _sides_table(splits: list[SplitStatistics]) -> Table:
    sizes = {"words": "words", "characters": "characters", "distinct_words": "distinct words"}
    lengths = {
        "mean_words": "words a sentence: mean",
        "median_words": "median",
        "p95_words": "95 %",
        "p99_words": "99 %",
        "p100_words": "max",
    }
    table = table_of("side", figures=(*sizes.values(), *lengths.values()), overflow="fold")
    for split in splits:
        for name, side in _sides_of(split):
            summary = side.summary(split.pairs)
            counts = [f"{summary[key]:,}" for key in sizes]
            words = [str(summary[key]) for key in lengths]
            table.add_row(Text.assemble((split.name, "bold"), f" {name}"), *counts, *words)
    return table


def _print_unexpected(console: Console, where: str, side: SideStatistics) -> None:
    """Print which characters are of other scripts, or invisible."""
    for kind, count, characters, line in side.unexpected():
        if kind in ("control", "private"):  # these have no shape
            characters = characters.encode("unicode_escape").decode()
        text = f"{where}: {count:,} {kind} characters ({characters}), first on line {line:,}"
        console.print(f"  {text}", soft_wrap=True)


def _print_normalisation(console: Console, where: str, side: SideStatistics) -> None:
    """Print which characters normalisation changes, so that a vocabulary lacks them, and which it keeps."""
    from translucid.data.tokenizing.normalisation import ADAPTIVE, described

    if changed := side.not_ascii.changed(ADAPTIVE):
        console.print(f"  {where}: normalisation changes {described(changed)}", soft_wrap=True)
    if unchanged := side.preserved_characters():
        advice = "data.tokenizer.normalisation=nmt_nfkc would change them"
        console.print(f"  {where}: normalisation leaves alone {described(unchanged)}; {advice}", soft_wrap=True)


@app.command()
def phrasebook(
    out: Annotated[Path, Argument(metavar="OUT.tsv", help="The file to write; .jsonl adds gold alignments.")],
    count: Annotated[int, Option(help="The number of sentence pairs, or passages.", min=1)] = 10_000,
    split: Annotated[str, Option(help="train, valid or test; no sentence is in two of them.")] = "train",
    min_words: Annotated[int, Option(help="The shortest sentence in words.")] = 2,
    max_words: Annotated[int, Option(help="The longest sentence in words.")] = 60,
    seed: Annotated[int, Option(help="The seed of the sentences.")] = 1,
    discourse: Annotated[bool, Option("--discourse", help="Write passages of two to four sentences instead.")] = False,
    overwrite: option.Overwrite = False,
) -> None:
    """Write sentence pairs of the built-in English-Spanish phrasebook.

    With --discourse, --count is the number of passages. The translation of the last sentence of a passage depends on an
    earlier one: a record of OUT.jsonl says on which words (`antecedent`) and has a wrong translation (`contrast`).

    **Examples**

        translucid data phrasebook train.tsv --count 50000

        translucid data phrasebook long.jsonl --split test --count 500 --min-words 30

        translucid data phrasebook passages.jsonl --discourse --count 20000
    """
    splits = ("train", "valid", "test")
    if split not in splits:
        raise UserError(f"there is no split {split!r}", fix=nearest(split, splits))
    if out.suffix not in (".tsv", ".jsonl"):
        raise UserError("ends in neither .tsv nor .jsonl", file=out, fix="Name the file so.")
    if discourse and out.suffix == ".tsv":
        raise UserError("has no place for antecedents", file=out, fix="Name a file .jsonl, or leave out --discourse.")
    if discourse and (min_words, max_words) != (2, 60):
        raise UserError("--min-words and --max-words are for single sentences", fix="Leave out one of the options.")
    refuse_to_replace(out, overwrite)
    lines = []
    with progress_bar(Console(stderr=True), "writing", count) as advance:
        records = _passages(count, split, seed) if discourse else _sentences(count, split, seed, min_words, max_words)
        for document in records:
            for record in document:
                if out.suffix == ".tsv":
                    lines.append(f"{record['source']}\t{record['target']}\n")
                else:
                    lines.append(json.dumps(record, ensure_ascii=False) + "\n")
            advance(1)
    write_output(out, "".join(lines).encode())


def _sentences(count: int, split: str, seed: int, min_words: int, max_words: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the record of each sentence, which is a document of its own."""
    from translucid.corpora.phrasebook import generate
    from translucid.evaluation.alignment_error import to_pharaoh

    phrases = generate(count, split=split, seed=seed, min_words=min_words, max_words=max_words)  # type: ignore[arg-type]
    for number, phrase in enumerate(phrases, 1):
        alignment = to_pharaoh(phrase.alignment)
        yield [{**phrase._asdict(), "alignment": alignment, "document": f"sentence {split} {seed} {number}"}]


def _passages(count: int, split: str, seed: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of each passage."""
    from translucid.corpora.phrasebook.discourse import generate_passages

    for number, passage in enumerate(generate_passages(count, split=split, seed=seed), 1):  # type: ignore[arg-type]
        yield passage.records(f"passage {split} {seed} {number}")


@app.command()
def scenes(
    out: Annotated[Path, Argument(metavar="OUT", help="The folder to write.")],
    count: Annotated[int, Option(help="Training scenes; other splits have a tenth, at most 1,000.", min=1)] = 1000,
    size: Annotated[int, Option(help="The width and height of a picture in pixels.", min=32, max=1024)] = 96,
    shapes: Annotated[int | None, Option(help="The number of shapes; default: all 85.", min=2, max=83)] = None,
    seed: Annotated[int, Option(help="The seed of the scenes.")] = 1,
    overwrite: option.Overwrite = False,
) -> None:
    """Write pictures of the built-in scenes, each with five captions and gold boxes of what the words refer to.

    OUT holds images.tar, gold.jsonl, and picture TAB caption in train.tsv, valid.tsv, test.tsv and composition.tsv. No
    scene is in two splits. Scenes of composition.tsv combine a colour with a shape that no other split combines.

    **Examples**

        translucid data scenes scenes --count 8000

        translucid data scenes large --count 100 --size 224
    """
    try:
        from translucid.corpora.scenes.words import SHAPES
        from translucid.corpora.scenes.writing import FILES, sizes, write_corpus
    except ModuleNotFoundError as error:
        raise missing_package("painting", error.name, "vision") from error

    for name in FILES if out.exists() else ():
        refuse_to_replace(out / name, overwrite)
    with progress_bar(Console(stderr=True), "painting", sum(sizes(count).values())) as advance:
        write_corpus(out, count, seed=seed, size=size, shapes=shapes or len(SHAPES), on_done=advance)
