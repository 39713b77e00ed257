"""`translucid compare`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli.arguments import EngineOption, SourceOption, TargetOption, TokenizeOption, pair_up
from translucid.data.readers.corpus import Pair
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.runs.data_options import DataOptions

_System = typer.Argument(
    help="A run folder, a folder of Hugging Face, or a file with the translations of --test, one a line."
)


def compare(
    a: Annotated[Path, _System],
    b: Annotated[Path, _System],
    test: Annotated[list[str], typer.Option("--test", metavar="FILES", help="Sentence pairs to compare on.")],
    reference: Annotated[
        list[str] | None, typer.Option("--reference", metavar="FILES", help="More references, one a line.")
    ] = None,
    frequencies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES",
            help="What makes words rare: sentence pairs, whose targets count, or .txt; the references if not given.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    beam: Annotated[int | None, typer.Option(help="Beam width of runs; 1 is greedy.")] = None,
    tokenize: TokenizeOption = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    significance: Annotated[bool, typer.Option(help="Test whether chance explains the differences.")] = True,
    samples: Annotated[
        int,
        typer.Option(help="Show so many sentences on which B gains most, and so many on which it loses most.", min=0),
    ] = 3,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
) -> None:
    """Compare two systems on a test set: scores, significance, sentence lengths, rare words, differences.

    BLEU, chrF and TER are sacreBLEU's, and so are the two tests of their differences: paired bootstrap resampling with
    1,000 samples and approximate randomisation with 10,000. A p-value is how often a difference as large would come of
    systems that are equally good. Runs translate each line as it is, as `translucid evaluate` lets them.

    A word counts as right as often as both translation and reference have it; F1 is given by how often the text of
    --frequencies has the word, best the text that the systems have learned from.

    **Examples**

        translucid compare runs/first runs/second --test test.tsv --frequencies train.tsv

        translucid compare theirs.txt runs/es --test 'test.{en,es}' --samples 10

        translucid compare beam1.txt beam5.txt --test test.tsv --json > compared.json
    """
    from translucid.data.readers.corpus import read_lines
    from translucid.data.readers.standard_input import refuse_twice
    from translucid.evaluation.comparing import compare as compared
    from translucid.evaluation.metrics import bleu_tokenizer, without_blank
    from translucid.evaluation.rare_words import frequencies as counted
    from translucid.evaluation.rare_words import split_words
    from translucid.ground.errors import UserError
    from translucid.interop.run_resolution import resolve_run
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.data_options import DataOptions

    refuse_twice(test, reference, frequencies)
    files = pair_up(test)
    names = str(a), str(b)
    a, b = resolve_run(a), resolve_run(b)
    data = [_data(path) for path in (a, b) if path.is_dir()]
    if len({one.reverse for one in data}) > 1:
        raise UserError("translates the other way round than A", file=names[1], fix="Give runs of the same direction.")
    reading = data[0] if data else DataOptions()
    backwards = reading.reverse
    reading = reading.between(source_language, target_language)
    pairs = list(pairs_of(reading, *files))
    if not pairs:
        raise UserError("holds no sentence pairs", file=files[0], fix="Check the file.")
    sets = [[pair.target for pair in pairs], *(list(read_lines(file)) for file in reference or [])]
    references = without_blank(sets)
    tokenize = tokenize or bleu_tokenizer(reading.languages[1], references)
    words = split_words(tokenize=tokenize, lowercase=lowercase)
    log = Console(stderr=True)
    languages = source_language, target_language
    texts = [_output(path, pairs, beam, languages, device, engine, log) for path in (a, b)]
    with log.status("comparing"):
        rare = _texts(frequencies, backwards) if frequencies else chain.from_iterable(sets)
        found = compared(
            [pair.source for pair in pairs],
            [*zip(names, texts, strict=True)],
            references,
            counted(rare, words),
            words,
            significance=significance,
            samples=samples,
            tokenize=tokenize,
            lowercase=lowercase,
        )
    if as_json:
        print(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
        return
    console = Console()
    for part in found.render():
        console.print(part)


def _data(run: Path) -> DataOptions:
    from translucid.runs.run_folder import RunFolder

    configuration = RunFolder(run).configuration()
    configuration.refuse_other_reader("text", run)
    return configuration.data


def _output(
    path: Path,
    pairs: Sequence[Pair],
    beam: int | None,
    languages: tuple[str | None, str | None],
    device: str,
    engine: EngineOption,
    log: Console,
) -> list[str]:
    """Let a run translate, or read what another system has written."""
    from translucid.api.scoring import translated
    from translucid.api.translator import Translator
    from translucid.data.readers.corpus import read_lines
    from translucid.ground.errors import UserError

    if not path.is_dir():
        lines = list(read_lines(path))
        if len(lines) != len(pairs):
            what = f"has {len(lines):,} lines, the test set {len(pairs):,} sentences"
            raise UserError(what, file=path, fix="Give one translation a line, or a run folder.")
        return lines
    source, target = languages
    translator = Translator.load(path, device, engine, source=source, target=target)
    options = translator.configuration.searching({"beam": beam})
    return translated(translator, [pair.source for pair in pairs], options, console=log)


def _texts(files: Sequence[str], backwards: bool) -> Iterator[str]:
    """Yield the texts of the target language that stand in files."""
    from translucid.data.readers.corpus import read_lines, read_pairs

    plain = [file for file in files if file.removesuffix(".gz").endswith(".txt")]
    for file in plain:
        yield from read_lines(file)
    pairs = read_pairs(*pair_up([file for file in files if file not in plain]))
    yield from (pair.source if backwards else pair.target for pair in pairs)
