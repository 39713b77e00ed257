"""`translucid data`: corpus statistics, cleaning, the built-in corpora, and back-translation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.cli.back_translate import back_translate
from translucid.cli.clean import clean
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.data.statistics import Overlap, SideStatistics, SplitStatistics

app = typer.Typer(
    no_args_is_help=True,
    help="Inspect corpora, clean them, write the built-in ones, and back-translate monolingual text.",
    rich_markup_mode="markdown",
)
app.command("back-translate")(back_translate)
app.command("clean")(clean)

Files = Annotated[list[str] | None, typer.Option(metavar="FILES", help="Sentence pairs.")]


@app.command()
def stats(
    train: Files = None,
    valid: Files = None,
    test: Files = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Count lines that are no sentence pairs.")] = False,
    as_json: bool = typer.Option(False, "--json"),
) -> None:
    """Show sizes, lengths, duplicates, leaks from training into test files, and characters of other scripts.

    **Examples**

        translucid data stats --train train.tsv --valid dev.tsv --test test.tsv

        translucid data stats --train 'train.{en,de}.gz' --json
    """
    from translucid.data.filtering import Filter
    from translucid.data.readers.bad_lines import BadLines
    from translucid.data.readers.corpus import read_pairs
    from translucid.data.readers.standard_input import refuse_twice
    from translucid.data.statistics import Overlap, SplitStatistics
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError

    log = Console(stderr=True)
    refuse_twice(train, valid, test)
    files = {name: pair_up(given) for name, given in (("train", train), ("valid", valid), ("test", test)) if given}
    if not files:
        raise UserError("no files were given", fix="Give --train, --valid or --test FILES.")
    splits = {name: SplitStatistics(name) for name in files}
    with counting(log, "reading", None) as advance:
        for name, split in splits.items():
            bad = BadLines() if skip_bad else None
            for count in split.read(read_pairs(*files[name], on_bad=bad), Filter()):
                advance(count)
            if bad and bad.count:
                split.faults["no pairs"] += bad.count
    ignored = BadLines() if skip_bad else None
    others = {name: read_pairs(*files[name], on_bad=ignored) for name in files if name != "train"}
    overlaps = (
        [Overlap.find(name, pairs, splits["train"]) for name, pairs in others.items()] if "train" in files else []
    )
    if as_json:
        found: dict[str, Any] = {name: split.summary() for name, split in splits.items()}
        print(json.dumps({**found, "overlap": [o.to_json() for o in overlaps]}, ensure_ascii=False, indent=2))
    else:
        _print(Console(), list(splits.values()), overlaps)
    for overlap in overlaps:
        if overlap.sources:
            examples = "; ".join(f"line {line}: {text}" for line, text in overlap.examples)
            what = f" {overlap.sources:,} source sentences of {overlap.split} are in the training files too"
            flatter = f", so scores on it flatter ({examples})"
            log.print(Text.assemble(("warning:", "yellow"), what, flatter), soft_wrap=True)


def _print(console: Console, splits: list[SplitStatistics], overlaps: list[Overlap]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("split", "pairs", "same pair", "same source", "would be skipped"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for split in splits:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in split.faults.most_common()) or "none"
        counts = f"{split.pairs:,}", f"{split.duplicate_pairs:,}", f"{split.duplicate_sources:,}"
        table.add_row(Text(split.name, "bold"), *counts, skipped)
    console.print(table)
    table = Table(box=None, pad_edge=False)
    for column in (
        "side",
        "words",
        "characters",
        "distinct words",
        "words a sentence: mean",
        "median",
        "95 %",
        "99 %",
        "max",
    ):
        table.add_column(column, justify="left" if column == "side" else "right", overflow="fold")
    for split in splits:
        for side, name in ((split.source, "source"), (split.target, "target")):
            s = side.summary(split.pairs)
            sizes = [f"{s[key]:,}" for key in ("words", "characters", "distinct_words")]
            lengths = [str(s[key]) for key in ("mean_words", "median_words", "p95_words", "p99_words", "p100_words")]
            table.add_row(Text.assemble((split.name, "bold"), f" {name}"), *sizes, *lengths)
    console.print()
    console.print(table)
    for split in splits:
        for side, name in ((split.source, "source"), (split.target, "target")):
            for kind, count, characters, line in side.unexpected():
                shown = characters.encode("unicode_escape").decode() if kind in ("control", "private") else characters
                text = f"{split.name} {name}: {count:,} {kind} characters ({shown}), first on line {line:,}"
                console.print(f"  {text}", soft_wrap=True)
            _print_normalisation(console, f"{split.name} {name}", side)
    for o in overlaps:
        console.print(
            f"\n{o.split} shares with train: {o.pairs:,} pairs, {o.sources:,} sources, {o.targets:,} targets",
            soft_wrap=True,
        )


def _print_normalisation(console: Console, where: str, side: SideStatistics) -> None:
    """Say which characters a vocabulary that is learned from a side has not."""
    from translucid.data.tokenizing.normalisation import ADAPTIVE, described

    if changed := side.not_ascii.changed(ADAPTIVE):
        console.print(f"  {where}: normalisation changes {described(changed)}", soft_wrap=True)
    if kept := side.left_alone():
        more = "data.tokenizer.normalisation=nmt_nfkc would change them"
        console.print(f"  {where}: normalisation leaves alone {described(kept)}; {more}", soft_wrap=True)


@app.command()
def phrasebook(
    out: Annotated[Path, typer.Argument(metavar="OUT.tsv", help="The file to write; .jsonl adds gold alignments.")],
    count: Annotated[int, typer.Option(help="Sentence pairs.", min=1)] = 10_000,
    split: Annotated[str, typer.Option(help="train, valid or test; no sentence is in two of them.")] = "train",
    min_words: Annotated[int, typer.Option(help="Shortest sentence, in words.")] = 2,
    max_words: Annotated[int, typer.Option(help="Longest sentence, in words.")] = 60,
    seed: Annotated[int, typer.Option(help="Which sentences.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write sentence pairs of the built-in English-Spanish phrasebook.

    **Examples**

        translucid data phrasebook train.tsv --count 50000

        translucid data phrasebook long.jsonl --split test --count 500 --min-words 30
    """
    from translucid.corpora.phrasebook import generate
    from translucid.evaluation.alignment_error import to_pharaoh
    from translucid.ground.atomic import write_output
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError, nearest

    splits = ("train", "valid", "test")
    if split not in splits:
        raise UserError(f"there is no split {split!r}", fix=nearest(split, splits))
    if out.suffix not in (".tsv", ".jsonl"):
        raise UserError("ends in neither .tsv nor .jsonl", file=out, fix="Name the file so.")
    refuse_to_replace(out, overwrite)
    lines = []
    with counting(Console(stderr=True), "writing", count) as advance:
        for phrase in generate(count, split=split, seed=seed, min_words=min_words, max_words=max_words):  # type: ignore[arg-type]
            record = {**phrase._asdict(), "alignment": to_pharaoh(phrase.alignment)}
            is_tsv = out.suffix == ".tsv"
            lines.append(f"{phrase.source}\t{phrase.target}" if is_tsv else json.dumps(record, ensure_ascii=False))
            advance(1)
    write_output(out, "".join(line + "\n" for line in lines).encode())


@app.command()
def scenes(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    count: Annotated[
        int, typer.Option(help="Scenes to train on; other splits have a tenth, at most 1,000.", min=1)
    ] = 1000,
    size: Annotated[int, typer.Option(help="Pixels of a picture's side.", min=32, max=1024)] = 96,
    shapes: Annotated[
        int | None,
        typer.Option(help="How many shapes there are, all 85 if not given; fewer are learned sooner.", min=2, max=83),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which scenes.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write pictures of the built-in scenes, each with five captions and a gold box for what every word is about.

    OUT holds images.tar, gold.jsonl, and picture TAB caption in train.tsv, valid.tsv, test.tsv and composition.tsv. No
    scene is in two of them; each of the last has a colour on a shape that no other split has it on.

    **Examples**

        translucid data scenes scenes --count 8000

        translucid data scenes large --count 100 --size 224
    """
    from translucid.ground.console import counting
    from translucid.ground.errors import missing_package

    try:
        from translucid.corpora.scenes.words import SHAPES
        from translucid.corpora.scenes.writing import FILES, sizes, write_corpus
    except ModuleNotFoundError as error:
        raise missing_package("painting", error.name, "vision") from error

    for name in FILES if out.exists() else ():
        refuse_to_replace(out / name, overwrite)
    with counting(Console(stderr=True), "painting", sum(sizes(count).values())) as advance:
        write_corpus(out, count, seed=seed, size=size, shapes=shapes or len(SHAPES), on_done=advance)
