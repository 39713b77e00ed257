"""How sure a run's translations are: an estimator fitted to what it makes of sentence pairs, and kept in its folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from translucid.api.confidence_features import Part
from translucid.api.translator import Translator
from translucid.data.readers.corpus import Pair
from translucid.engines.confidence_file import save_confidence
from translucid.evaluation.confidence.estimator import Estimator
from translucid.evaluation.confidence.features import KINDS, Kind, Seen
from translucid.evaluation.confidence.fitting import estimator
from translucid.evaluation.metrics import sentence_chrf
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import pairs_of
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""Translations that must be good, and that must be bad, for there to be something to tell apart."""
THRESHOLD = 40.0
"""The chrF from which on a translation is good."""
SENTENCES = 2000
"""Pairs that are translated, at most."""
PART = 64
"""Translations looked at together."""


class Fitted(NamedTuple):
    """What was found."""

    estimator: Estimator
    costs: dict[Kind, float]
    """By kind: the time of a translation whose confidence is told, over that of one without."""


def fit_confidence(
    run: Path,
    *,
    console: Console,
    valid: Sequence[str] = (),
    kind: Kind | None = None,
    threshold: float = THRESHOLD,
    passes: int = 0,
    sentences: int = SENTENCES,
    source: str | None = None,
    target: str | None = None,
) -> Fitted:
    """Translate pairs as the run does, and learn to tell the good translations from the bad ones.

    Args:
        run: its folder.
        console: where progress is shown.
        valid: files of pairs; those that the run was validated with if not given.
        kind: of features to be used; if not given, the cheapest that is as good as the best.
        threshold: chrF against the reference, 0 to 100, from which on a translation is good.
        passes: with dropout, which are tried too; 0 for none.
        sentences: pairs, at most.
        source: code of the source language, for a model that has many; as the run says if not given.
        target: code of the target language.

    Raises:
        UserError: the run is damaged or has nothing that was asked for, or there are too few pairs, good or bad.
    """
    t = Translator.load(run, "cpu", source=source, target=target)
    kinds = _kinds(t, run, kind, passes)
    pairs = _pairs(RunFolder(run), t, valid)[:sentences]
    started = time.perf_counter()
    with counting(console, "translating", len(pairs)) as advance:
        found = list(t.stream([pair.source for pair in pairs], split=False, on_done=advance))
    spent = time.perf_counter() - started
    whole = [i for i, one in enumerate(found) if len(one.parts) == 1]
    parts = [found[i].parts[0] for i in whole]
    chrf = np.array(sentence_chrf([found[i].text for i in whole], [pairs[i].target for i in whole]), np.float64)
    bad = int((chrf < threshold).sum())
    if min(bad, len(chrf) - bad) < FEWEST:
        what = f"of {len(chrf):,} translations {bad:,} have a chrF under {threshold:g}: too few to tell good from bad"
        raise UserError(what, fix="Give more pairs with --valid, or another --threshold.")
    seen, costs = _looked_at(t, parts, kinds, passes, spent, console)
    fitted = estimator(seen, chrf, threshold, kinds, passes=passes)
    data = t.configuration.data
    save_confidence(RunFolder(run), t.tokenizer, data.languages if data.tokenizer.languages else None, fitted)
    return Fitted(fitted, costs)


def _kinds(t: Translator, run: Path, kind: Kind | None, passes: int) -> list[Kind]:
    """Return the kinds of features that are tried, the cheapest first."""
    if kind == "attention" and not t.can_look():
        raise UserError("the model has no attention", file=run, fix="Choose --features tokens.")
    if (kind == "dropout" and not passes) or (passes and kind not in (None, "dropout")):
        raise UserError("--features dropout and --dropout-passes go together", fix="Give both, or the latter alone.")
    if passes and not t.configuration.model.dropout:
        raise UserError("the model has no dropout", file=run, fix="Leave out --dropout-passes.")
    there = {"attention": t.can_look(), "dropout": passes > 0}
    return [kind] if kind else [each for each in KINDS if there.get(each, True)]


def _pairs(folder: RunFolder, t: Translator, files: Sequence[str]) -> list[Pair]:
    """Return pairs to fit to, of files or those that the run was validated with, no source blank."""
    data = t.configuration.data
    chosen = [*files] or data.valid
    if chosen:
        pairs = list(pairs_of(data, *chosen))
    else:
        pairs = folder.held_out() or []
    if not (kept := [pair for pair in pairs if pair.source.strip() and pair.target.strip()]):
        raise UserError("there are no pairs to fit to", fix="Give some with --valid that the run was not trained on.")
    return kept


def _looked_at(
    t: Translator, parts: Sequence[Part], kinds: Sequence[Kind], passes: int, spent: float, console: Console
) -> tuple[list[Seen], dict[Kind, float]]:
    """Return what is to be seen of translations, each kind looked at by itself so that its cost is known."""
    costs: dict[Kind, float] = {}
    seen: list[Seen] = []
    for kind in kinds:
        started = time.perf_counter()
        now: list[Seen] = []
        with counting(console, f"looking: {kind}", len(parts)) as advance:
            for first in range(0, len(parts), PART):
                some = parts[first : first + PART]
                now += t.observer.observed(some, [kind], passes)
                advance(len(some))
        costs[kind] = 1 + (time.perf_counter() - started) / spent
        seen = [one.and_also(other) for one, other in zip(seen, now, strict=True)] if seen else now
    return seen, costs
