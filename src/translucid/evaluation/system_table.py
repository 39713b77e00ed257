"""A table of several systems on one test set: scores, significance, and the mean over runs with different seeds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from rich.console import RenderableType

from translucid.evaluation.comparing import FEWEST_TESTED, refuse_too_many
from translucid.evaluation.metrics import DEFAULT, ReferenceSets, corpus_scores, metrics, plain_name
from translucid.ground.console import table_of

_SEED = re.compile(r"seed-[0-9]+")
"""The name of the run folder of a seed, as `train --seeds` writes it."""
_LATEX = {
    **dict.fromkeys("&%$#_{}", r"\{}"),
    "\\": r"\textbackslash{{}}",
    "~": r"\textasciitilde{{}}",
    "^": r"\textasciicircum{{}}",
    "±": r"$\pm$",
}


class Score(NamedTuple):
    """The score of one system by one metric."""

    value: float
    interval: float | None = None
    """Half of the 95 % confidence interval by bootstrap resampling; None if significance is not tested."""
    p_value: float | None = None
    """The p-value of the difference to the first system by paired bootstrap resampling (Koehn 2004); None for the
    first system, for one with the same score, and if too few sentences differ."""


class Seeds(NamedTuple):
    """Runs that differ in nothing but their seed."""

    name: str
    """Their common folder."""
    runs: int
    scores: dict[str, tuple[float, float]]
    """Mean and sample standard deviation by metric."""


@dataclass(frozen=True)
class SystemTable:
    """The scores of several systems."""

    sentences: int
    systems: list[tuple[str, dict[str, Score]]]
    """Names, and scores by metric."""
    seeds: list[Seeds]
    signatures: dict[str, str]
    """sacreBLEU's signatures by metric."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        systems = []
        for name, scores in self.systems:
            by_metric = {metric: score._asdict() for metric, score in scores.items()}
            systems.append({"name": name, "scores": by_metric})
        seeds = []
        for group in self.seeds:
            by_metric = {metric: {"mean": m, "deviation": s} for metric, (m, s) in group.scores.items()}
            seeds.append({"name": group.name, "runs": group.runs, "scores": by_metric})
        return {"sentences": self.sentences, "systems": systems, "seeds": seeds, "signatures": self.signatures}

    def _all_scores(self) -> Iterator[Score]:
        for _, scores in self.systems:
            yield from scores.values()

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table."""
        tested = any(score.p_value is not None for score in self._all_scores())
        header = ["system"]
        for metric in self.signatures:
            header += [metric, "p"] if tested else [metric]
        rows = []
        for name, scores in self.systems:
            row = [name]
            for score in scores.values():
                row.append(_with_margin(score.value, score.interval))
                if tested:
                    row.append("" if score.p_value is None else f"{score.p_value:.4f}")
            rows.append(row)
        for group in self.seeds:
            row = [f"mean of {group.runs} seeds, {group.name}"]
            for average, deviation in group.scores.values():
                row += [_with_margin(average, deviation), ""][: 1 + tested]
            rows.append(row)
        return header, rows

    def notes(self) -> list[str]:
        """Return what the figures of the table mean."""
        notes = [f"{self.sentences:,} sentences"]
        if any(score.interval is not None for score in self._all_scores()):
            notes.append("± of a system: half of the 95 % confidence interval (bootstrap, 1,000 samples)")
            notes.append("p: paired bootstrap resampling against the first system")
        if self.seeds:
            notes.append("± of a mean: standard deviation over the seeds")
        return notes + list(self.signatures.values())

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and notes for people."""
        (name, *figures), rows = self.cells()
        table = table_of(name, figures=figures)
        for row in rows:
            table.add_row(*row)
        yield table
        yield ""
        yield from self.notes()

    def markdown(self) -> str:
        """Return the table in Markdown, with its notes below."""
        header, rows = self.cells()
        lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
        table = "\n".join(f"| {' | '.join(map(_markdown, line))} |" for line in lines)
        return f"{table}\n\n{'; '.join(self.notes())}\n"

    def latex(self) -> str:
        """Return the table in LaTeX for the package booktabs, with its notes in comments."""
        header, rows = self.cells()
        head, *body = [f"{' & '.join(map(_latex, line))} \\\\" for line in (header, *rows)]
        lines = [f"% {note}" for note in self.notes()]
        lines += [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule", head, r"\midrule", *body]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def system_table(
    systems: Sequence[tuple[str, Sequence[str]]],
    references: ReferenceSets,
    *,
    significance: bool = True,
    tokenize: str = DEFAULT,
    lowercase: bool = False,
) -> SystemTable:
    """Score the translations of systems, and test their differences to the first one.

    Args:
        systems: names and translations. Runs of `train --seeds` in one folder also get a row with their mean.
        references: sets of references with one reference per sentence.
        significance: whether the differences are tested.
        tokenize: sacreBLEU's tokenizer for BLEU.
        lowercase: whether case is ignored.

    Raises:
        UserError: there is nothing to compare, sets have unequal lengths, the tokenizer is unknown, or there are too
            many sentences to test.
    """
    baseline = systems[0][1]
    if significance:
        refuse_too_many(len(baseline))
    signatures: dict[str, str] = {}
    rows: list[tuple[str, dict[str, Score]]] = []
    for name, output in systems:
        scores = corpus_scores(output, references, tokenize=tokenize, lowercase=lowercase)
        signatures = {score.name: score.signature for score in scores}
        rows.append((name, {score.name: Score(score.value) for score in scores}))
    if significance:
        signatures = _test(rows, systems, references, tokenize=tokenize, lowercase=lowercase)
    return SystemTable(len(baseline), rows, _means(rows), signatures)


def _test(
    rows: Sequence[tuple[str, dict[str, Score]]],
    systems: Sequence[tuple[str, Sequence[str]]],
    references: ReferenceSets,
    *,
    tokenize: str,
    lowercase: bool,
) -> dict[str, str]:
    """Add intervals and p-values to the scores of `rows`, and return the signatures of the test by metric."""
    from sacrebleu.significance import PairedTest

    metrics_by_name = {metric.__class__.__name__: metric for metric in metrics(tokenize=tokenize, lowercase=lowercase)}
    outputs = [(str(number), output) for number, (_, output) in enumerate(systems)]
    # sacreBLEU takes None for a missing reference, though its types do not say so.
    signatures, results = PairedTest(outputs, metrics_by_name, references, "bs")()  # type: ignore[arg-type]
    baseline = systems[0][1]
    for number, (_, scores) in enumerate(rows):
        # sacreBLEU's p-value of (nearly) equal outputs, or of equal scores, is meaningless, see `FEWEST_TESTED`.
        differs = len(baseline) - sum(map(eq, baseline, systems[number][1])) >= FEWEST_TESTED
        for name in signatures:
            result: Any = results[name][number]
            metric = plain_name(name)
            p_value = None
            if differs and scores[metric].value != rows[0][1][metric].value:
                p_value = float(result.p_value)
            scores[metric] = scores[metric]._replace(interval=float(result.ci), p_value=p_value)
    return {plain_name(name): str(signature) for name, signature in signatures.items()}


def _means(rows: Sequence[tuple[str, dict[str, Score]]]) -> list[Seeds]:
    """Return the means of runs that `train --seeds` has written into the same folder."""
    groups: dict[Path, list[dict[str, Score]]] = {}
    for name, scores in rows:
        path = Path(name)
        if _SEED.fullmatch(path.name):
            groups.setdefault(path.parent, []).append(scores)
    seeds = []
    for folder, runs in groups.items():
        if len(runs) < 2:
            continue
        by_metric = {}
        for metric in runs[0]:
            values = [scores[metric].value for scores in runs]
            by_metric[metric] = mean(values), stdev(values)
        seeds.append(Seeds(str(folder), len(runs), by_metric))
    return seeds


def with_seeds(systems: Sequence[Path]) -> list[Path]:
    """Return systems, with its runs in the place of each folder that `train --seeds` has written."""
    expanded: list[Path] = []
    for system in systems:
        runs = []
        if system.is_dir() and not (system / "config.yaml").exists():
            runs = [run for run in system.iterdir() if _SEED.fullmatch(run.name) and (run / "config.yaml").exists()]
            # By number, as seed-10 is after seed-9.
            runs.sort(key=lambda run: int(run.name.removeprefix("seed-")))
        expanded += runs or [system]
    return expanded


def _with_margin(value: float, margin: float | None) -> str:
    return f"{value:.2f}" if margin is None else f"{value:.2f} ± {margin:.2f}"


def _markdown(cell: str) -> str:
    return cell.replace("|", r"\|")


def _latex(cell: str) -> str:
    return "".join(_LATEX.get(character, "{}").format(character) for character in cell)
