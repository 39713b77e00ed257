"""Claim 20: one model for six directions, or six models, in the same time.

    python benchmarks/claims/directions.py tatoeba-many/ [--minutes 120] [--only NAME ...] [--quick]

The folder contains English with French, German and Spanish, and two test sets without English. One model learns all
directions (recipes/tatoeba-many.yaml); each of six others learns one of them with the same settings, in a sixth of the
time. Pairs without English are translated without a detour, and through English.

Runs are cached in runs/claims/directions; an interrupted command resumes. `--only` trains some of the models and
writes no page, so that several processes can share the work; the page needs all of them.

--quick trains for a minute and six times ten seconds; its figures mean nothing and are written beside the runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

from common import DOCS, scored, table, write
from rich.console import Console

from bitext.pair import Pair
from translucid.api.pivot_translator import PivotTranslator
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.data.readers.corpus import read_pairs, sources_of, targets_of
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.quality_checks import off_target_rate
from translucid.ground.atomic import write_atomically

OTHERS = {"fr": "eng-fra", "de": "eng-deu", "es": "eng-spa"}
"""The languages beside English, and the names of their files."""
PAIRS = [pair for language in OTHERS for pair in (("en", language), (language, "en"))]
WITHOUT_ENGLISH = [("es", "fr", "spa-fra"), ("fr", "es", "spa-fra"), ("de", "es", "deu-spa"), ("es", "de", "deu-spa")]
CODES = {"spa": "es", "deu": "de"}
"""The first languages of their files."""
MANY = "many"
COMMAND = "python benchmarks/claims/directions.py tatoeba-many/"


def main() -> None:
    names = [MANY, *("-".join(pair) for pair in PAIRS)]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="the folder with eng-fra.train.tsv.gz and the others")
    parser.add_argument("--minutes", type=float, default=120, help="training minutes of the multilingual model")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/directions"))
    parser.add_argument("--only", nargs="+", choices=names, help="train these models and write no page")
    parser.add_argument("--quick", action="store_true", help="a minute, figures not written to docs")
    arguments = parser.parse_args()
    minutes, runs, docs = arguments.minutes, arguments.runs, DOCS
    if arguments.quick:
        minutes, runs, docs = 1, arguments.runs / "quick", arguments.runs / "quick"
    for name in arguments.only or names:
        Console(stderr=True).rule(name)
        train(runs / name, arguments.corpus, name, minutes)
    if not arguments.only:
        write("20-directions.md", page(runs, arguments.corpus, minutes), docs)


def train(run: Path, corpus: Path, name: str, minutes: float) -> None:
    """Train the model of all directions, or of one; resume an interrupted training, or leave a finished one."""
    result_file = run / "done.json"
    if result_file.exists():
        return
    if name == MANY:
        languages = list(OTHERS)
        settings: list[str] = []
    else:
        source, target = name.split("-")
        languages = [target if source == "en" else source]
        settings = ["data.both_directions=false", f"data.reverse={str(source != 'en').lower()}", "data.temperature=1"]
        minutes /= len(PAIRS)
    if run.exists():
        arguments = ["--resume", "--out", str(run)]
    else:
        train_files = [files_of(corpus, "train", language) for language in languages]
        valid_files = [files_of(corpus, "dev", language) for language in languages]
        arguments = ["tatoeba-many", "--train", *train_files, "--valid", *valid_files, "--out", str(run)]
        for setting in [*settings, f"training.max_minutes={minutes}"]:
            arguments += ["--set", setting]
    if run_command(["train", *arguments]):
        raise SystemExit(f"the training of {name} failed")
    write_atomically(result_file, json.dumps({"minutes": minutes}).encode())


def files_of(corpus: Path, split: str, language: str) -> str:
    """Return the file of a split with its languages, as `--train` and similar options expect it."""
    return f"{corpus / OTHERS[language]}.{split}.tsv.gz:en-{language}"


def page(runs: Path, corpus: Path, minutes: float) -> str:
    """Return the page of claim 20."""
    tests = [files_of(corpus, "test", language) for language in OTHERS]
    of_many = evaluated(runs / MANY, tests)["directions"]
    rows, multilingual, bilingual = [], [], []
    for source, target in PAIRS:
        name = f"{source}-{target}"
        scores = of_many[name]
        of_one = evaluated(runs / name, [files_of(corpus, "test", target if source == "en" else source)])
        multilingual.append(scores["BLEU"]["value"])
        bilingual.append(of_one["BLEU"]["value"])
        rates = percent(scores["off_target"]), percent(scores["references_off_target"])
        rows.append([name, f"{scores['sentences']:,}", f"{multilingual[-1]:.1f}", f"{bilingual[-1]:.1f}", *rates])
    rows.append(["**mean**", "", f"**{fmean(multilingual):.1f}**", f"**{fmean(bilingual):.1f}**", "", ""])
    head = ["direction", "sentences", "one model, BLEU", "six models, BLEU", "one model, off-target %", "references"]
    return f"""# Claim 20: six directions in one model

English to and from French, German and Spanish (tatoeba-many): one model with {minutes:g} minutes of training, and six
models with the same settings and {minutes / len(PAIRS):g} minutes each. BLEU on the test sets, beam 5, one seed.
*Off-target* is the share of translations that are identified as another one of the four languages; *references* is
the same share of the references: the error of the identification.

{table(head, rows)}
For directions without training pairs, the multilingual model translates in one step (zero-shot), or through English,
with both steps by the same model.

{without_english(runs / MANY, corpus)}
To reproduce: `{COMMAND}`
"""


def without_english(run: Path, corpus: Path) -> str:
    """Return the table of the directions without training pairs."""
    languages, options = ["en", *OTHERS], DecodingOptions(beam=5)
    rows = []
    for source, target, name in WITHOUT_ENGLISH:
        pairs = list(read_pairs(corpus / f"{name}.test.tsv.gz"))
        if CODES[name[:3]] != source:
            pairs = [Pair(pair.target, pair.source) for pair in pairs]
        direct = Translator.load(run, source=source, target=target)
        scores, rates = [], []
        for translator in (direct, PivotTranslator.through(direct, "en")):
            texts = [translation.text for translation in translator.translate(sources_of(pairs), options, split=False)]
            scores.append(f"{scored(texts, pairs)[0]:.1f}")
            rates.append(percent(off_target_rate(texts, target, languages)))
        rates.append(percent(off_target_rate(targets_of(pairs), target, languages)))
        rows.append([f"{source}-{target}", f"{len(pairs):,}", *scores, *rates])
    head = ["direction", "sentences", "zero-shot, BLEU", "through English, BLEU"]
    return table([*head, "zero-shot, off-target %", "through English", "references"], rows)


def evaluated(run: Path, files: Sequence[str], *options: str) -> dict[str, Any]:
    """Return the scores of a run by `translucid evaluate`."""
    output = StringIO()
    with redirect_stdout(output):
        code = run_command(
            ["evaluate", str(run), "--beam", "5", "--lines", "whole", "--json", "--test", *files, *options]
        )
    if code:
        raise SystemExit(f"the evaluation of {run} failed")
    scores: dict[str, Any] = json.loads(output.getvalue())
    return scores


def percent(share: float | None) -> str:
    """Format a share in percent."""
    return "" if share is None else f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
