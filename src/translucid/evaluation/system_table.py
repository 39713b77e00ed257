"""Tables of several systems: on one test set, or of multilingual systems in each direction.

A system is a row, and its runs may have several seeds. Differences between systems are tested by paired bootstrap
resampling (Koehn 2004). Each sample draws sentences, the same ones for all systems, and for a system with several seeds
also as many of its runs, with replacement; its score is the mean over these runs. So p counts both the choice of
sentences and that of seeds. For systems with one run, intervals and p are those of sacreBLEU. The table of directions
has trained and zero-shot directions apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import RenderableType

from translucid.evaluation.comparing import FEWEST_TESTED, refuse_too_many
from translucid.evaluation.metrics import DEFAULT, METRICS, ReferenceSets, corpus_scores, metrics
from translucid.ground.console import table_of, unbroken

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sacrebleu.metrics.base import Metric


SAMPLES = 1000
"""The number of bootstrap samples, as in sacreBLEU."""
_LATEX = {
    **dict.fromkeys("&%$#_{}", r"\{}"),
    "\\": r"\textbackslash{{}}",
    "~": r"\textasciitilde{{}}",
    "^": r"\textasciicircum{{}}",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
}


class System(NamedTuple):
    """A system with the translations of each of its runs."""

    name: str
    outputs: Sequence[Sequence[str]]
    """The translations of the test set by each run; the runs differ in nothing but their seed."""


@dataclass(frozen=True)
class Score:
    """The score of one system by one metric."""

    value: float
    """The mean over the runs."""
    deviation: float | None = None
    """The sample standard deviation over the runs; None for a single one."""
    interval: float | None = None
    """Half of the 95 % confidence interval by bootstrap resampling; None if significance is not tested."""
    p_value: float | None = None
    """The p-value of the difference to the first system; None for the first system, for one with the same score, and if
    too few sentences differ."""
    runs: tuple[float, ...] = ()
    """The score of each run."""
    samples: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    """The score of each bootstrap sample."""

    def to_json(self) -> dict[str, Any]:
        """Return everything but the samples as plain values."""
        values = {"value": self.value, "deviation": self.deviation, "interval": self.interval, "p_value": self.p_value}
        return {**values, "runs": list(self.runs)}

    @property
    def text(self) -> str:
        """The value with the deviation over the seeds, or else with the confidence interval."""
        margin = self.interval if self.deviation is None else self.deviation
        return f"{self.value:.2f}" if margin is None else f"{self.value:.2f} ± {margin:.2f}"


class Row(NamedTuple):
    """The scores of a system by metric."""

    name: str
    runs: int
    scores: dict[str, Score]

    @property
    def label(self) -> str:
        """The name, with the number of seeds if there are several."""
        return f"{self.name} ({self.runs} seeds)" if self.runs > 1 else self.name


@dataclass(frozen=True)
class SystemTable:
    """The scores of several systems."""

    sentences: int
    systems: list[Row]
    signatures: dict[str, str]
    """sacreBLEU's signatures by metric."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        systems = []
        for row in self.systems:
            by_metric = {metric: score.to_json() for metric, score in row.scores.items()}
            systems.append({"name": row.name, "seeds": row.runs, "scores": by_metric})
        return {"sentences": self.sentences, "systems": systems, "signatures": self.signatures}

    def _all_scores(self) -> Iterator[Score]:
        for row in self.systems:
            yield from row.scores.values()

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table."""
        tested = any(score.p_value is not None for score in self._all_scores())
        header = ["system"]
        for metric in self.signatures:
            header += [metric, "p"] if tested else [metric]
        rows = []
        for system in self.systems:
            row = [system.label]
            for score in system.scores.values():
                row.append(score.text)
                if tested:
                    row.append("" if score.p_value is None else f"{score.p_value:.4f}")
            rows.append(row)
        return header, rows

    def notes(self) -> list[str]:
        """Return what the figures of the table mean."""
        several = any(row.runs > 1 for row in self.systems)
        return [f"{self.sentences:,} sentences", *notes_of(list(self._all_scores()), several), *signed(self.signatures)]

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and notes for people."""
        yield text_table(*self.cells())
        yield ""
        yield from map(unbroken, self.notes())

    def markdown(self) -> str:
        """Return the table in Markdown, with its notes below."""
        return f"{markdown_table(*self.cells())}\n{'; '.join(self.notes())}\n"

    def latex(self) -> str:
        """Return the table in LaTeX for the package booktabs, with its notes in comments."""
        return "".join(f"% {note}\n" for note in self.notes()) + latex_table(*self.cells())


def notes_of(scores: Sequence[Score], several_seeds: bool) -> list[str]:
    """Return what ± and p of some scores mean."""
    notes = []
    if any(score.interval is not None and score.deviation is None for score in scores):
        notes.append(f"± of a single run: half of the 95 % confidence interval (bootstrap, {SAMPLES:,} samples)")
    if several_seeds:
        notes.append("± of several seeds: standard deviation over the seeds")
    if any(score.p_value is not None for score in scores):
        over = "sentences and seeds" if several_seeds else "sentences"
        notes.append(f"p: paired bootstrap resampling over {over} against the first system")
    return notes


def signed(signatures: dict[str, str]) -> list[str]:
    """Return signatures with the names of their metrics."""
    return [f"{metric}|{signature}" for metric, signature in signatures.items()]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Return a table for people."""
    name, *figures = header
    table = table_of(name, figures=figures)
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(map(_markdown, line))} |\n" for line in lines)


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in LaTeX for the package booktabs."""
    head, *body = [f"{' & '.join(map(_latex, line))} \\\\" for line in (header, *rows)]
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule", head, r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def system_table(
    systems: Sequence[System],
    references: ReferenceSets,
    *,
    significance: bool = True,
    tokenize: str = DEFAULT,
    lowercase: bool = False,
) -> SystemTable:
    """Score the translations of systems, and test their differences to the first one.

    Args:
        systems: the systems, with the translations of each run.
        references: sets of references with one reference per sentence.
        significance: whether the differences are tested.
        tokenize: sacreBLEU's tokenizer for BLEU.
        lowercase: whether case is ignored.

    Raises:
        UserError: there is nothing to compare, sets have unequal lengths, the tokenizer is unknown, or there are too
            many sentences to test.
    """
    first = systems[0]
    count = len(first.outputs[0])
    if significance:
        refuse_too_many(count)
    scorers = dict(zip(METRICS, metrics(tokenize=tokenize, lowercase=lowercase), strict=True))
    bootstrap = _Bootstrap(count, references) if significance else None
    signatures: dict[str, str] = {}
    rows: list[Row] = []
    for system in systems:
        by_run = []
        for output in system.outputs:
            run_scores = corpus_scores(output, references, tokenize=tokenize, lowercase=lowercase)
            by_run.append({score.name: score.value for score in run_scores})
            signatures = {score.name: score.signature for score in run_scores}
        scores = {}
        for metric in signatures:
            samples = bootstrap.samples(scorers[metric], system.outputs) if bootstrap else None
            score = score_of([values[metric] for values in by_run], samples)
            if rows and differing_sentences(first, system) >= FEWEST_TESTED:
                score = with_p_value(score, rows[0].scores[metric])
            scores[metric] = score
        rows.append(Row(system.name, len(system.outputs), scores))
    if bootstrap:
        for metric, signature in signatures.items():
            signatures[metric] = bootstrap.signed(signature)
    return SystemTable(count, rows, signatures)


def score_of(runs: Sequence[float], samples: NDArray[np.float64] | None = None) -> Score:
    """Return the score of a system, given those of its runs and of its bootstrap samples."""
    deviation = stdev(runs) if len(runs) > 1 else None
    interval = None
    if samples is not None:
        ordered = np.sort(samples)
        # 2.5 % of the samples are below, and as many are above.
        outside = len(ordered) // 40
        interval = float(ordered[-1 - outside] - ordered[outside]) / 2
    return Score(fmean(runs), deviation, interval, runs=tuple(runs), samples=samples)


def with_p_value(score: Score, first: Score) -> Score:
    """Return a score with the p-value of its difference to that of the first system, as sacreBLEU computes it."""
    if score.samples is None or first.samples is None or score.value == first.value:
        return score
    differences = np.abs(score.samples - first.samples)
    larger = int(np.sum(differences - differences.mean() > abs(score.value - first.value)))
    return replace(score, p_value=(larger + 1) / (len(differences) + 1))


def differing_sentences(first: System, second: System) -> int:
    """Return the number of sentences that any two runs of two systems translate differently."""
    count = 0
    for texts in zip(*first.outputs, *second.outputs, strict=True):
        count += len(set(texts)) > 1
    return count


class _Bootstrap:
    """The bootstrap samples of a test set; all systems have the same ones."""

    def __init__(self, sentences: int, references: ReferenceSets) -> None:
        seed = os.environ.get("SACREBLEU_SEED", "12345")  # of sacreBLEU, whose results these are for single runs
        self.seed = None if seed.lower() == "none" else int(seed)
        self.references = references
        self.indices = np.random.default_rng(self.seed or None).choice(sentences, size=(SAMPLES, sentences))

    def samples(self, metric: Metric, outputs: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the score of each sample [SAMPLES]: the mean over as many runs as there are, with replacement."""
        by_run = np.array([self._samples_of_run(metric, output) for output in outputs])
        if len(outputs) == 1:
            return by_run[0]
        draws = np.random.default_rng(self.seed or None).integers(len(outputs), size=(len(outputs), SAMPLES))
        means: NDArray[np.float64] = np.take_along_axis(by_run, draws, axis=0).mean(axis=0)
        return means

    def _samples_of_run(self, metric: Metric, output: Sequence[str]) -> NDArray[np.float64]:
        # sacreBLEU takes None for a missing reference, though its types do not say so.
        statistics = metric._extract_corpus_statistics(output, self.references)  # type: ignore[arg-type]
        by_sentence = np.array(statistics, dtype="float32")
        scores = []
        for indices in self.indices:
            scores.append(metric._compute_score_from_stats(by_sentence[indices].sum(0)).score)
        return np.array(scores)

    def signed(self, signature: str) -> str:
        """Return a signature of sacreBLEU with the number of samples and the seed, as it writes them."""
        parts = signature.split("|")
        parts[1:1] = [f"bs:{SAMPLES}", f"seed:{str(self.seed).lower()}"]
        return "|".join(parts)


def _markdown(cell: str) -> str:
    return cell.replace("|", r"\|")


def _latex(cell: str) -> str:
    return "".join(_LATEX.get(character, "{}").format(character) for character in cell)


SIGNIFICANT = 0.05
"""The p-value below which a score is marked."""
SHOWN = METRICS[:3]
"""The metrics of the printed tables."""


@dataclass(frozen=True)
class DirectionTable:
    """The scores of several systems in several directions."""

    directions: Mapping[str, SystemTable]
    """The scores in each direction, such as `en-fr`; each has the same systems."""
    zero_shot: Mapping[str, Sequence[str]]
    """The systems for which a direction is zero-shot, by direction; others have learned it."""

    def groups(self) -> dict[str, list[str]]:
        """Return the directions that all systems have learned, and the others."""
        groups: dict[str, list[str]] = {"trained": [], "zero-shot": []}
        for direction in self.directions:
            groups["zero-shot" if self.zero_shot.get(direction) else "trained"].append(direction)
        return {name: directions for name, directions in groups.items() if directions}

    def mean(self, metric: str, directions: Sequence[str]) -> list[Score]:
        """Return the mean of each system over some directions, with its interval and p-value."""
        means: list[Score] = []
        tables = [self.directions[direction] for direction in directions]
        for number in range(len(tables[0].systems)):
            scores = [table.systems[number].scores[metric] for table in tables]
            by_run = zip(*(score.runs for score in scores), strict=True)
            runs = list(map(fmean, by_run))
            samples = [score.samples for score in scores if score.samples is not None]
            score = score_of(runs, np.mean(samples, axis=0) if samples else None)
            tested = any(score.p_value is not None for score in scores)
            means.append(with_p_value(score, means[0]) if means and tested else score)
        return means

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        means: dict[str, Any] = {}
        names = [row.name for row in next(iter(self.directions.values())).systems]
        for group, directions in self.groups().items():
            by_system: dict[str, dict[str, Any]] = {name: {} for name in names}
            for metric in METRICS:
                for name, score in zip(names, self.mean(metric, directions), strict=True):
                    by_system[name][metric] = score.to_json()
            means[group] = by_system
        directions_json = {name: table.to_json() for name, table in self.directions.items()}
        zero_shot = {name: list(systems) for name, systems in self.zero_shot.items() if systems}
        return {"directions": directions_json, "zero_shot": zero_shot, "mean": means}

    def cells(self, metric: str) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table of a metric: a row for each direction and each mean."""
        systems = next(iter(self.directions.values())).systems
        header = [metric, "sentences", *(row.label for row in systems)]
        rows = []
        for group, directions in self.groups().items():
            for direction in directions:
                table = self.directions[direction]
                scores = [row.scores[metric] for row in table.systems]
                rows.append([self._name(direction), f"{table.sentences:,}", *map(_cell, scores)])
            if len(directions) > 1:
                means = map(_cell, self.mean(metric, directions))
                rows.append([f"mean of {len(directions)} {group}", "", *means])
        return header, rows

    def _name(self, direction: str) -> str:
        """Return a direction with the systems for which it is zero-shot."""
        systems = self.zero_shot.get(direction, ())
        if not systems:
            return direction
        if len(systems) == len(self.directions[direction].systems):
            return f"{direction} (zero-shot)"
        return f"{direction} (zero-shot for {', '.join(systems)})"

    def notes(self) -> list[str]:
        """Return what the figures mean, and the signatures of each direction, which may differ in the tokenizer."""
        scores: list[Score] = []
        for table in self.directions.values():
            for row in table.systems:
                scores += row.scores.values()
        several = any(row.runs > 1 for row in next(iter(self.directions.values())).systems)
        notes = notes_of(scores, several)
        if any(score.p_value is not None for score in scores):
            notes.append(f"*: p < {SIGNIFICANT}")
        by_signature: dict[str, list[str]] = {}
        for direction, table in self.directions.items():
            for metric in SHOWN:
                by_signature.setdefault(f"{metric}|{table.signatures[metric]}", []).append(direction)
        for signature, directions in by_signature.items():
            everywhere = len(directions) == len(self.directions)
            notes.append(signature if everywhere else f"{signature} ({', '.join(directions)})")
        return notes

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and notes for people."""
        for metric in SHOWN:
            yield text_table(*self.cells(metric))
            yield ""
        yield from map(unbroken, self.notes())

    def markdown(self) -> str:
        """Return the tables in Markdown, with the notes below."""
        tables = [markdown_table(*self.cells(metric)) for metric in SHOWN]
        return "\n".join([*tables, f"{'; '.join(self.notes())}\n"])

    def latex(self) -> str:
        """Return the tables in LaTeX for the package booktabs, with the notes in comments."""
        notes = "".join(f"% {note}\n" for note in self.notes())
        return notes + "\n".join(latex_table(*self.cells(metric)) for metric in SHOWN)


def _cell(score: Score) -> str:
    """Return a score with its margin, marked if it differs from that of the first system."""
    is_significant = score.p_value is not None and score.p_value < SIGNIFICANT
    return f"{score.text}*" if is_significant else score.text
