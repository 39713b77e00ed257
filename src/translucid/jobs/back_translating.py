"""The job of back-translation: each line of a text becomes a sentence pair, its source written by a model.

Sennrich et al. 2016 (arXiv 1511.06709): a model of the opposite direction translates text of the target language, and
its output is the source of a synthetic pair. The target was written by a person, so that the decoder learns good
language, however rough the source is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bitext.pair import Pair
from translucid.data.filtering import fault
from translucid.jobs.job import Done, TranslationJob, TranslationModels, as_lines
from translucid.jobs.output import PartRecord
from translucid.jobs.windows import Window, is_utf8

_REJECTED_KINDS = ("repeated", "too short")
"""A translation with a warning of one of these kinds is not made into a pair."""


@dataclass(frozen=True)
class BackTranslationJob(TranslationJob):
    """The job of making pairs from a text."""

    def work(self, models: TranslationModels, window: Window) -> Done:
        """Write `translation TAB line` for the lines of a window that make a pair; warnings say why others do not."""
        limits = models.translator.configuration.data.filter
        bad: list[tuple[int, str]] = []
        left_out: dict[int, str] = {}
        targets: dict[int, str] = {}
        for i, line in enumerate(window.lines):
            if not is_utf8(line) or b"\0" in line:
                bad.append((i, "not UTF-8, or with NUL bytes"))
                continue
            text = line.decode()
            if window.before.lines + i == 0:  # a file may begin with a byte order mark
                text = text.removeprefix("\ufeff")
            target = _cell(text)
            # Before it has a source, a target is checked as both sides of a pair.
            if reason := fault(Pair(target, target), limits):
                left_out[i] = reason
            else:
                targets[i] = target
        options, split = self.options, self.split_sentences
        sources = models.translator.stream(list(targets.values()), options, split=split, first=window.before.lines)
        lines = []
        for (i, target), source in zip(targets.items(), sources, strict=True):
            pair = Pair(_cell(source.text), target)
            if reason := fault(pair, limits) or _rejection(source.warnings):
                left_out[i] = reason
            else:
                lines.append("\t".join(pair))
        return Done(as_lines(lines), sorted(left_out.items()), bad)


def pair_summary(record: PartRecord) -> str:
    """Return a message with the number of pairs, and the reasons why lines were left out."""
    left_out = record.warned.lines + record.bad
    pair_count = f"{record.place.lines - left_out:,} synthetic pairs"
    if not left_out:
        return pair_count
    reasons = {kind: count for kind, (count, _) in record.warned.kinds.items()}
    if record.bad:
        reasons["unreadable"] = record.bad
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(reasons.items(), key=lambda item: -item[1]))
    return f"{pair_count}; left out {left_out:,} of {record.place.lines:,} lines: {counts}"


def _cell(text: str) -> str:
    return text.replace("\t", " ").strip()


def _rejection(warnings: Iterable[str]) -> str | None:
    """Return the kind of the first warning that forbids a pair, if there is one."""
    for warning in warnings:
        kind, _, _ = warning.partition(":")
        if kind in _REJECTED_KINDS:
            return kind
    return None
