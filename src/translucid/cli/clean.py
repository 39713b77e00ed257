"""`translucid data clean`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple, cast

from rich.text import Text
from typer import Argument, Option

from bitext.languages import Languages
from translucid.cli import option
from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.cli.printing import print_json
from translucid.data.readers.corpus_names import CorpusName, label
from translucid.ground.atomic import output
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from bitext.pair import Pair
    from translucid.data.cleaning.cleaner import JudgedPair, Report
    from translucid.data.cleaning.gain import CrossEntropy

ENDINGS = (".tsv", ".gz")
SHOWN = 120
"""The maximum number of characters of an example."""


class Rules(NamedTuple):
    """Rules."""

    without: Annotated[list[str] | None, Option(metavar="RULES", help="Rules that are not applied.")] = None
    exclude: Annotated[list[str] | None, option.files("Pairs, such as test files: no sentence of them is kept.")] = None
    source_language: Annotated[str | None, Option(metavar="CODE", help="The source language, if not detected.")] = None
    target_language: Annotated[str | None, Option(metavar="CODE", help="The target language, if not detected.")] = None


class Models(NamedTuple):
    """Models."""

    forward: Annotated[Path | None, option.run("A translator that scores each pair, with --backward.")] = None
    backward: Annotated[Path | None, option.run("A translator of the reverse direction.")] = None
    min_gain: Annotated[float | None, Option(help="The share of surprisal to be removed (0.22).", min=0, max=1)] = None
    device: option.Device = "auto"


class Output(NamedTuple):
    """Output."""

    out: Annotated[Path, Option(metavar="OUT.tsv", help="The clean pairs; .tsv.gz is compressed.")]
    rejected: Annotated[Path | None, Option(metavar="OUT.tsv", help="The rejected pairs; OUT.rejected.tsv.")] = None
    overwrite: option.Overwrite = False
    as_json: option.Json = False

    def files(self) -> tuple[Path, Path]:
        """Return the files of clean and of rejected pairs.

        Raises:
            UserError: they are the same, or one of them can't be written.
        """
        stem = self.out.name.removesuffix(".gz").removesuffix(".tsv")
        rejected = self.rejected or self.out.with_name(f"{stem}.rejected.tsv")
        if rejected == self.out:
            raise UserError("is the file of what is kept, too", file=rejected, fix="Choose another --rejected.")
        for file in (self.out, rejected):
            refuse_to_replace(file, self.overwrite, ENDINGS)
        return self.out, rejected


def clean(
    files: Annotated[list[str], Argument(metavar="FILES", help="Sentence pairs of any kind.")],
    *,
    output: Output,
    rules: Rules,
    models: Models,
) -> None:
    """Split a corpus into clean and rejected pairs, with the reason for each rejection.

    The rules, in order: `excluded`, `empty`, `too-long`, `encoding`, `script`, `untranslated`, `language`, `length`,
    `placeholders`, `numbers`, `duplicate`, `near-duplicate`, and `model` if there are models. The first rule that
    applies decides. Rejected pairs have the columns source, target, rule, reason and place.

    **Examples**

        translucid data clean memory.tmx --out clean.tsv

        translucid data clean memory.tmx:en-fr --out clean.en-fr.tsv

        translucid data clean 'crawled.{en,es}.gz' --out clean.tsv.gz --without near-duplicate numbers

        translucid data clean crawled.tsv --out clean.tsv --forward runs/en-es --backward runs/es-en

        translucid data clean train.tsv --out clean.tsv --exclude dev.tsv test.tsv
    """
    from translucid.data.cleaning.cleaner import MODEL, RULES, Cleaner, CorpusReader
    from translucid.data.cleaning.gain import MIN_GAIN, judge_by_gain
    from translucid.data.readers.corpus import read_pairs

    without, forward, backward = rules.without or [], models.forward, models.backward
    for name in without:
        if name not in RULES:
            raise UserError(f"there is no rule {name!r}", fix=nearest(name, RULES))
    if (forward is None) != (backward is None) or (models.min_gain is not None and forward is None):
        raise UserError("models are asked in both directions", fix="Give --forward RUN and --backward RUN.")
    clean_file, rejected_file = output.files()
    surprises = None
    if forward and backward and MODEL not in without:
        surprises = surprise_of(forward, models.device), surprise_of(backward, models.device)
    log = Console(stderr=True)
    reader = CorpusReader(pair_up(files), _languages(pair_up(files), rules))
    # A first pass over the corpus learns its languages and scripts, and typical lengths.
    with progress_bar(log, "looking", None) as advance:
        profile = reader.profile(advance)
    languages = " to ".join(code or "an unknown language" for code in profile.languages)
    log.print(f"{reader.count:,} pairs, {languages}", soft_wrap=True)
    excluded = read_pairs(*pair_up(rules.exclude)) if rules.exclude else ()
    judgements = reader.judged(Cleaner(profile, without, excluded=excluded))
    if surprises:
        judgements = judge_by_gain(judgements, *surprises, MIN_GAIN if models.min_gain is None else models.min_gain)
    report, interruption = _sort(judgements, clean_file, rejected_file, reader.count, log)
    if output.as_json:
        print_json(report.to_json())
    else:
        _print(Console(), report)
    message = f"kept: {clean_file}; rejected, with the reasons: {rejected_file}"
    if interruption:
        message += f"; of the first {report.pairs:,} pairs alone"
    log.print(message, soft_wrap=True)
    if interruption:
        raise interruption


def _languages(files: Sequence[str], rules: Rules) -> Languages:
    """Return the languages that the options or the file names specify; None for a language that neither specifies.

    Raises:
        UserError: the files are of several pairs of languages.
    """
    file_languages = {CorpusName.parse(file).languages for file in files} - {None}
    if len(file_languages) > 1:
        pairs = ", ".join(sorted(label(languages) for languages in file_languages if languages))
        raise UserError(f"the files are of several pairs of languages: {pairs}", fix="Clean one pair after the other.")
    source, target = file_languages.pop() or (None, None) if file_languages else (None, None)
    return rules.source_language or source, rules.target_language or target


def _sort(
    judgements: Iterator[JudgedPair], clean_file: Path, rejected_file: Path, count: int, log: Console
) -> tuple[Report, KeyboardInterrupt | None]:
    """Write each pair to one of two files. After Ctrl-C, the files hold the pairs judged so far."""
    from translucid.data.cleaning.cleaner import Report, column, row

    report = Report()
    with (
        _pair_file(clean_file) as clean_stream,
        _pair_file(rejected_file) as rejected_stream,
        progress_bar(log, "cleaning", count) as advance,
    ):
        try:
            for judged in judgements:
                report.add(judged)
                if judged.rule:
                    rejected_stream.write(row(judged).encode())
                else:
                    clean_stream.write("\t".join(map(column, judged.pair)).encode() + b"\n")
                advance(1)
        except KeyboardInterrupt as interruption:
            # The files are completed, and Ctrl-C takes effect after the summary.
            return report, interruption
    return report, None


def surprise_of(run: Path, device: str) -> CrossEntropy:
    """Return a function from pairs to their negative log-probabilities; None for a pair that can't be scored."""
    from translucid.api.translator import Translator
    from translucid.decoding.pair_scores import score_pairs

    translator = Translator.load(run, device, "torch")

    def surprise(pairs: Sequence[Pair]) -> list[float | None]:
        surprises: list[float | None] = []
        for score in score_pairs(translator.model, translator.pipeline, pairs, translator.device):
            # A string says why there is no score.
            surprises.append(None if isinstance(score, str) else -score.log_probability)
        return surprises

    return surprise


@contextmanager
def _pair_file(file: Path) -> Iterator[BinaryIO]:
    """Write a file atomically, compressed if it ends in .gz."""
    with output(file) as stream:
        if file.suffix == ".gz":
            # Without a time, the same pairs give the same bytes.
            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as compressed:
                yield cast(BinaryIO, compressed)
        else:
            yield stream


def _print(console: Console, report: Report) -> None:
    table = table_of("rule", figures=("pairs", "of all"))
    table.add_column("for example", overflow="fold")
    for rule, rejections in report.to_json()["rules"].items():
        count = rejections["rejected"]
        # Only the first example of a rule stands beside its name.
        cells: tuple[Text | str, ...] = Text(rule, "bold"), f"{count:,}", _share(count, report)
        for example in rejections["examples"]:
            place = f"{Path(example['file']).name}:{example['line']} "
            table.add_row(*cells, Text.assemble((place, "dim"), (example["what"], "yellow")))
            cells = "", "", ""
            for side in ("source", "target"):
                if example[side].strip():
                    table.add_row(*cells, Text(example[side][:SHOWN]))
    table.add_row(Text("kept", "bold"), f"{report.kept:,}", _share(report.kept, report), "")
    console.print(table)


def _share(count: int, report: Report) -> str:
    return f"{100 * count / max(report.pairs, 1):.2f} %"
