"""`translucid data`: corpus statistics, cleaning, the built-in corpora, and back-translation."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, cast

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from bitext.languages import Languages
from bitext.readers.file_kinds import refuse_as_texts
from bitext.readers.lines import DAMAGED, damaged, refuse_twice, unpacked
from translucid.cli import option
from translucid.cli.arguments import input_bytes, pair_up, refuse_to_replace
from translucid.cli.printing import print_json, print_scores
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.data.readers.corpus import BadLines, CorpusName, label, read_pairs
from translucid.ground.atomic import output, write_output
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from bitext.pair import Pair
    from translucid.corpora.phrasebook import Phrase
    from translucid.data.cleaning import CrossEntropy, JudgedPair, Report
    from translucid.data.statistics import Overlap, SideStatistics, SplitStatistics


ENDINGS_OF_CLEANED = (".tsv", ".gz")
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
            refuse_to_replace(file, self.overwrite, ENDINGS_OF_CLEANED)
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
    from translucid.data.cleaning import MIN_GAIN, MODEL, RULES, Cleaner, CorpusReader, judge_by_gain
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
        _print_report(Console(), report)
    message = f"kept: {clean_file}; rejected, with the reasons: {rejected_file}"
    if interruption:
        message += f"; of the first {report.pairs:,} pairs alone"
    log.print(message, soft_wrap=True)
    if interruption:
        raise interruption


def _languages(files: Sequence[str], rules: Rules) -> Languages:
    """Return the languages that the options or the file names specify; None for a language that neither specifies."""
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
    from translucid.data.cleaning import Report, column, row

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
    from translucid.decoding.pair_scores import score_pairs

    translator = translator_of(run, (None, None), device, "torch")

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


def _print_report(console: Console, report: Report) -> None:
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


class Files(NamedTuple):
    """Files."""

    text: Annotated[Path, Option(metavar="FILE", help="Text of the target language, one sentence per line.")]
    out: Annotated[Path, Option(metavar="OUT.tsv", callback=option.to_write(".tsv"), help="The synthetic pairs.")]
    overwrite: option.Overwrite = False
    skip_bad: option.SkipBad = False
    lines: option.Lines = "sentences"


def back_translate(
    run: option.Run,
    *,
    files: Files,
    search: option.Search,
    sampling: option.Sampling,
    languages: option.Languages,
    execution: option.Execution,
) -> None:
    """Make sentence pairs from monolingual text of the target language: a model of the reverse direction translates it.

    OUT has `source TAB target` for each line. Lines that are empty, too long or unreadable are left out and counted,
    and so are translations that are empty, of a very different length, or repetitive. Repeat a command that was killed:
    it continues where it stopped.

    `translucid train --synthetic OUT` puts a tag before each of these sources, by which the model distinguishes them
    from real ones. The tag is no text: it is in no file, and no text to translate can contain it.

    **Examples**

        translucid train low-resource --train pairs.tsv --out runs/reverse --set data.reverse=true

        translucid data back-translate runs/reverse --text target.txt.gz --out synthetic.tsv

        translucid data back-translate runs/reverse --text target.txt --out drawn.tsv --top-k 10 --workers 8

        translucid train low-resource --train pairs.tsv --synthetic synthetic.tsv --out runs/mine
    """
    from translucid.jobs.back_translating import BackTranslationJob, pair_summary
    from translucid.jobs.running import executor_of, run_with_progress

    text, out = files.text, files.out
    refuse_as_texts(str(text))
    configuration = configuration_of(run, "text").between(*languages)
    options = configuration.decoding_with({**search._asdict(), **sampling.settings()})
    job = BackTranslationJob(
        run,
        options,
        device=execution.device,
        engine=execution.engine,
        split_sentences=files.lines == "sentences",
        configuration=configuration,
    )
    executor = executor_of(job, execution.workers)
    try:
        with input_bytes(text) as stream:
            lines = unpacked(stream, text.suffix.lower())
            bad = run_with_progress(job, lines, out, executor, "translating back", summary=pair_summary)
    except DAMAGED as error:
        raise damaged(text, error) from error
    if out.is_file() and not out.stat().st_size:
        raise UserError("gave no pair at all", file=text, fix="Is this the right file?")
    if bad and not files.skip_bad:
        fix = "That is fine with --skip-bad; else convert it, as with iconv -f latin1 -t utf-8."
        raise UserError(f"{bad} lines are not UTF-8, or hold NUL bytes, and were left out", file=text, fix=fix)


app = typer.Typer(
    no_args_is_help=True,
    help="Inspect corpora, clean them, write the built-in ones, and back-translate monolingual text.",
    rich_markup_mode="markdown",
)
app.command("back-translate")(back_translate)
app.command("clean")(clean)

Corpora = Annotated[list[str] | None, option.files("Sentence pairs.")]


@app.command()
def stats(
    train: Corpora = None,
    valid: Corpora = None,
    test: Corpora = None,
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
        _print_statistics(Console(), list(splits.values()), overlaps)
        if train_pairs:
            advice, *_ = advice_for_size(train_pairs)
            command = (
                f"translucid train {advice.name}" if advice.is_recipe else f"translucid train --model {advice.name}"
            )
            Console().print(f"\nadvice: {train_pairs:,} pairs to train on: {command} ({advice.reason})", soft_wrap=True)
    for overlap in overlaps:
        if overlap.sources:
            _warn_of_overlap(overlap, log)


@app.command()
def overlap(
    train: Annotated[str, Argument(metavar="TRAIN", help="Training pairs.")],
    test: Annotated[str, Argument(metavar="TEST", help="Test pairs.")],
    skip_bad: option.SkipBad = False,
    as_json: option.Json = False,
) -> None:
    """Show how many test sentences are in the training text, or within one or two words of a sentence of it.

    Case and spaces do not count, in near copies also no punctuation. `data clean --exclude TEST` removes equal
    sentences from training files. With --json, each hit has its line and that of the training sentence. `evaluate`
    reports what a run has seen without these files.

    **Examples**

        translucid data overlap train.tsv test.tsv

        translucid data overlap 'train.{en,de}.gz' 'test.{en,de}' --json
    """
    from translucid.data.near_copies import Overlap

    refuse_twice([train], [test])
    bad = BadLines() if skip_bad else None
    pairs = list(read_pairs(test, on_bad=bad))
    log = Console(stderr=True)
    with progress_bar(log, "comparing", None) as advance:
        found = Overlap.find(lambda: read_pairs(train, on_bad=bad), pairs, advance)
    if bad and bad.count:
        log.print(f"{bad.count:,} lines are no sentence pairs and were skipped", soft_wrap=True)
    print_scores(found, as_json=as_json)


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


def _print_statistics(console: Console, splits: list[SplitStatistics], overlaps: list[Overlap]) -> None:
    console.print(_pairs_table(splits))
    console.print()
    console.print(_sides_table(splits))
    for split in splits:
        for name, side in _sides_of(split):
            _print_unexpected(console, f"{split.name} {name}", side)
            _print_normalization(console, f"{split.name} {name}", side)
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


def _print_normalization(console: Console, where: str, side: SideStatistics) -> None:
    """Print which characters normalization changes, so that a vocabulary lacks them, and which it keeps."""
    from translucid.data.tokenizing.normalization import ADAPTIVE, described

    if changed := side.not_ascii.changed(ADAPTIVE):
        console.print(f"  {where}: normalization changes {described(changed)}", soft_wrap=True)
    if unchanged := side.preserved_characters():
        advice = "data.tokenizer.normalization=nmt_nfkc would change them"
        console.print(f"  {where}: normalization leaves alone {described(unchanged)}; {advice}", soft_wrap=True)


@app.command()
def phrasebook(
    out: Annotated[
        Path,
        Argument(metavar="OUT.tsv", callback=option.to_write(), help="The file to write; .jsonl adds gold alignments."),
    ],
    count: Annotated[int, Option(help="The number of sentence pairs, or passages.", min=1)] = 10_000,
    split: Annotated[str, Option(help="train, valid or test; no sentence is in two of them.")] = "train",
    min_words: Annotated[int, Option(help="The shortest sentence in words.")] = 2,
    max_words: Annotated[int, Option(help="The longest sentence in words.")] = 60,
    seed: Annotated[int, Option(help="The seed of the sentences.")] = 1,
    discourse: Annotated[bool, Option("--discourse", help="Write passages of two to four sentences instead.")] = False,
    labels: Annotated[
        bool, Option("--labels", help="Add the labels of each word to OUT.jsonl: gender, role, …")
    ] = False,
    formality: Annotated[
        bool, Option("--formality", help="Address the reader with tú or usted; OUT.jsonl says with which.")
    ] = False,
    both_forms: Annotated[
        bool, Option("--both-forms", help="Write each sentence that addresses the reader in both forms (--formality).")
    ] = False,
    overwrite: option.Overwrite = False,
) -> None:
    """Write sentence pairs of the built-in English-Spanish phrasebook.

    With --discourse, --count is the number of passages. The translation of the last sentence of a passage depends on an
    earlier one: a record of OUT.jsonl says on which words (`antecedent`) and has a wrong translation (`contrast`).

    With --labels, `source_labels` and `target_labels` have what is known of each word: part of speech, gender, number,
    person, tense, sense, role, antecedent and topic.

    With --formality, half of the sentences with *you* are formal. A record of OUT.jsonl has the `formality` of the
    target, and the translation with the other form of address (`contrast`); `train --set data.formality=0.5` learns it.
    With --both-forms, that translation is a record, too.

    **Examples**

        translucid data phrasebook train.tsv --count 50000

        translucid data phrasebook long.jsonl --split test --count 500 --min-words 30

        translucid data phrasebook passages.jsonl --discourse --count 20000

        translucid data phrasebook labeled.jsonl --labels --split test --count 2000

        translucid data phrasebook addressed.jsonl --formality --count 20000
    """
    splits = ("train", "valid", "test")
    if split not in splits:
        raise UserError(f"there is no split {split!r}", fix=nearest(split, splits))
    if out.suffix not in (".tsv", ".jsonl"):
        raise UserError("ends in neither .tsv nor .jsonl", file=out, fix="Name the file so.")
    if discourse and out.suffix == ".tsv":
        raise UserError("has no place for antecedents", file=out, fix="Name a file .jsonl, or leave out --discourse.")
    if labels and out.suffix == ".tsv":
        raise UserError("has no place for labels", file=out, fix="Name a file .jsonl, or leave out --labels.")
    if formality and out.suffix == ".tsv":
        raise UserError("has no place for the formality", file=out, fix="Name a file .jsonl.")
    if formality and (discourse or labels):
        other = "--discourse" if discourse else "--labels"
        raise UserError(f"--formality and {other} do not go together", fix="Leave out one of the options.")
    if both_forms and not formality:
        raise UserError("--both-forms is for sentences that address the reader", fix="Add --formality.")
    if discourse and (min_words, max_words) != (2, 60):
        raise UserError("--min-words and --max-words are for single sentences", fix="Leave out one of the options.")
    lines = []
    with progress_bar(Console(stderr=True), "writing", count) as advance:
        if discourse:
            records = _passages(count, split, seed, labels)
        elif formality:
            records = _addressed(count, split, seed, min_words, max_words, both_forms)
        else:
            records = _sentences(count, split, seed, min_words, max_words, labels)
        for document in records:
            for record in document:
                if out.suffix == ".tsv":
                    lines.append(f"{record['source']}\t{record['target']}\n")
                else:
                    lines.append(json.dumps(record, ensure_ascii=False) + "\n")
            advance(1)
    write_output(out, "".join(lines).encode())


def _sentences(
    count: int, split: str, seed: int, min_words: int, max_words: int, labels: bool
) -> Iterator[list[dict[str, Any]]]:
    """Yield the record of each sentence, which is a document of its own."""
    from translucid.corpora.phrasebook import generate

    phrases = generate(
        count,
        split=split,  # type: ignore[arg-type]
        seed=seed,
        min_words=min_words,
        max_words=max_words,
        labels=labels,
    )
    for number, phrase in enumerate(phrases, 1):
        record = _sentence_record(phrase, f"sentence {split} {seed} {number}")
        if phrase.labels:
            record |= {"source_labels": phrase.labels.source, "target_labels": phrase.labels.target}
        yield [record]


def _addressed(
    count: int, split: str, seed: int, min_words: int, max_words: int, both_forms: bool
) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of each sentence, with their formality."""
    from translucid.corpora.phrasebook import generate_addressed

    addressed = generate_addressed(
        count,
        split=split,  # type: ignore[arg-type]
        seed=seed,
        min_words=min_words,
        max_words=max_words,
        both_forms=both_forms,
    )
    for number, (_, forms) in enumerate(groupby(addressed, lambda form: form.phrase.source), 1):
        records = []
        for phrase, formality, contrast in forms:
            record = _sentence_record(phrase, f"sentence {split} {seed} {number}")
            if formality:
                record |= {"formality": formality, "contrast": contrast}
            records.append(record)
        yield records


def _sentence_record(phrase: Phrase, document: str) -> dict[str, Any]:
    """Return the record of a sentence, without labels."""
    from translucid.evaluation.alignment_error import to_pharaoh

    links = to_pharaoh(phrase.alignment)
    return {"source": phrase.source, "target": phrase.target, "alignment": links, "document": document}


def _passages(count: int, split: str, seed: int, labels: bool) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of each passage."""
    from translucid.corpora.phrasebook.discourse import generate_passages

    passages = generate_passages(count, split=split, seed=seed, labels=labels)  # type: ignore[arg-type]
    for number, passage in enumerate(passages, 1):
        yield passage.records(f"passage {split} {seed} {number}")
