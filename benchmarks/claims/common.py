"""Shared by the claims: cached training runs, scores with intervals, tables and plots."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from scipy.stats import t as student

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.atomic import write_atomically
from translucid.kernels.devices import configure_process
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import run_experiment

DATA = Path(os.environ.get("TRANSLUCID_DATA", "data"))
"""The folder of the corpora, which docs/claims/reproducing.md lists."""
DOCS = Path(__file__).resolve().parents[2] / "docs" / "claims"


def train_once(folder: Path, configuration: Configuration, train: Sequence[Pair], valid: Sequence[Pair]) -> RunFolder:
    """Train a run, resume an interrupted one, or return a finished one."""
    configure_process()  # as our command does
    run, result_file = RunFolder(folder), folder / "done.json"
    if not result_file.exists():
        position, _ = run_experiment(configuration, folder, corpora=Corpora.of(train, valid), resume=run.exists)
        write_atomically(result_file, json.dumps({"steps": position.step, "minutes": position.seconds / 60}).encode())
    return run


def facts(run: RunFolder) -> dict[str, Any]:
    """Return parameters, updates, minutes, the median of tokens per second, and the validation records."""
    rows = run.metrics()
    configuration = run.configuration()
    model = run.load_model(configuration, run.tokenizer())
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tokens_per_second": statistics.median(row["tokens_per_second"] for row in rows if row["kind"] == "training"),
        "validations": [row for row in rows if row["kind"] == "validation"],
        **json.loads((run.path / "done.json").read_text()),
    }


def translations(run: RunFolder, pairs: Sequence[Pair], beam: int) -> list[str]:
    """Translate the sources of some pairs."""
    options, sources = DecodingOptions(beam=beam), [pair.source for pair in pairs]
    return [translation.text for translation in Translator.load(run.path).translate(sources, options, split=False)]


def scored(hypotheses: Sequence[str], pairs: Sequence[Pair]) -> tuple[float, float, float]:
    """Return BLEU, half the width of its 95 % bootstrap interval (1,000 resamplings), and chrF."""
    references = [[pair.target for pair in pairs]]
    bleu = BLEU().corpus_score(list(hypotheses), references, n_bootstrap=1000)
    return bleu.score, bleu._ci, CHRF().corpus_score(list(hypotheses), references).score


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over seeds and half the width of its 95 % interval (Student's t); nan for one seed."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan
    quantile = float(student.ppf(0.975, len(values) - 1))
    return mean, quantile * statistics.stdev(values) / math.sqrt(len(values))


def show(mean: float, half: float, digits: int = 1) -> str:
    """Format a mean with its interval."""
    return f"{mean:.{digits}f}" if math.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write(name: str, text: str, docs: Path) -> None:
    """Print a page of results, write it, and print its path."""
    docs.mkdir(parents=True, exist_ok=True)
    write_atomically(docs / name, text.encode())
    print(f"{text}\nwritten: {docs / name}")
