"""The scores of a multilingual model in several directions, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from translucid.evaluation.report import Evaluation
from translucid.ground.console import table_of, unbroken


@dataclass(frozen=True)
class DirectionScore:
    """The scores of one direction."""

    name: str
    """The name of the direction, such as `en-fr`."""
    evaluation: Evaluation
    off_target: float | None
    """The share of translations in another language of the model; None if it can't be identified."""
    references_off_target: float | None
    """The same share of the references, which are right: the error of the identification."""
    zero_shot: bool = False
    """Whether no training pair has this direction."""

    def value(self, metric: str) -> float:
        """Return the score of a metric, such as `BLEU`."""
        return next(score.value for score in self.evaluation.scores if score.name == metric)


@dataclass(frozen=True)
class DirectionScores:
    """The scores of several directions."""

    scores: Sequence[DirectionScore]
    languages: Sequence[str]
    """The languages among which those of translations are identified."""

    def means(self) -> dict[str, float | None]:
        """Return the means over the directions by name."""
        rates = [score.off_target for score in self.scores if score.off_target is not None]
        means: dict[str, float | None] = {}
        for metric in ("BLEU", "chrF"):
            means[metric] = fmean(score.value(metric) for score in self.scores)
        return {**means, "off_target": fmean(rates) if rates else None}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        directions = {}
        for score in self.scores:
            rates = {"off_target": score.off_target, "references_off_target": score.references_off_target}
            directions[score.name] = {**score.evaluation.to_json(), **rates, "zero_shot": score.zero_shot}
        return {"directions": directions, "mean": self.means(), "languages": list(self.languages)}

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and texts for people."""
        table = table_of("direction", figures=("sentences", "BLEU", "chrF", "off-target", "references"))
        for score in self.scores:
            name = Text(score.name, "bold")
            if score.zero_shot:
                name.append(" zero-shot", "dim")
            rates = _percent(score.off_target), _percent(score.references_off_target)
            quality = f"{score.value('BLEU'):.2f}", f"{score.value('chrF'):.2f}"
            table.add_row(name, f"{score.evaluation.sentences:,}", *quality, *rates)
        means = self.means()
        rate = _percent(means["off_target"])
        table.add_row(Text("mean", "bold"), "", f"{means['BLEU']:.2f}", f"{means['chrF']:.2f}", rate, "")
        yield table
        yield Text(f"off-target: the language identified among {', '.join(self.languages)} is another one", "dim")
        for text in dict.fromkeys(signature(score.evaluation) for score in self.scores):
            yield unbroken(text)
        seconds = sum(score.evaluation.seconds for score in self.scores)
        count = sum(score.evaluation.sentences for score in self.scores)
        # Directions that no training pair has consider other pieces.
        engines = "; ".join(dict.fromkeys(score.evaluation.engine for score in self.scores))
        yield f"{count:,} sentences in {seconds:.1f} s ({count / max(seconds, 1e-9):,.0f} a second) by {engines}"


def signature(evaluation: Evaluation) -> str:
    """Return sacreBLEU's signatures of BLEU and chrF."""
    signatures = {score.name: score.signature for score in evaluation.scores}
    return f"BLEU {signatures['BLEU']}; chrF {signatures['chrF']}"


def _percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{rate:.1%}"
