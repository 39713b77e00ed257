"""A tuned lens that is trained on sentence pairs and saved in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bitext.languages import Languages
from translucid.api.fitting.confidence_fitting import pairs_to_fit
from translucid.api.translator import Translator
from translucid.engines.run_files import save_tuned_lens
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.lens import UPDATES, divergences, learn_tuned_lens, state_points
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""The least number of pairs for training and evaluation."""
HELD_OUT = 10
"""One pair in so many is held out."""
SENTENCES = 5000
"""The largest number of pairs."""


class FittedLens(NamedTuple):
    """The result of training a tuned lens."""

    pairs: int
    """The number of training pairs."""
    held_out: int
    """The number of pairs that were held out for evaluation."""
    layers: list[str]
    """The names of the layers but the last."""
    before: list[float]
    """The mean of KL(p_last || p_l) for each layer with the logit lens, on held-out pairs, in nats."""
    after: list[float]
    """The same with the tuned lens."""


def fit_lens(
    run: Path,
    *,
    console: Console,
    valid: Sequence[str] = (),
    sentences: int = SENTENCES,
    languages: Languages = (None, None),
    device: str = "auto",
) -> FittedLens:
    """Train a tuned lens for a run, and save it.

    Args:
        run: the run folder.
        console: shows the progress.
        valid: files of pairs; the run's own validation pairs by default.
        sentences: the largest number of pairs.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        device: auto, cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: the run or a file is damaged, the model is no Transformer, or there are too few pairs.
    """
    t = Translator.load(run, device, "torch", source=languages[0], target=languages[1])
    *layers, _ = state_points(t.model, "decoder")
    folder = RunFolder(run)
    texts = pairs_to_fit(folder, t, valid)[:sentences]
    usable = t.pipeline.short_pairs(texts)
    if len(usable) < FEWEST:
        raise UserError(f"there are {len(usable)} pairs to learn from", fix=f"Give {FEWEST} or more with `valid`.")
    # Those held out are spread over the files, whose parts may come from different texts.
    held_out = usable[::HELD_OUT]
    training_pairs = [pair for i, pair in enumerate(usable) if i % HELD_OUT]
    before = divergences(t.model, held_out, None, t.device)
    with progress_bar(console, "training the tuned lens", UPDATES) as advance:
        lens = learn_tuned_lens(t.model, training_pairs, t.device, advance)
    after = divergences(t.model, held_out, lens, t.device)
    save_tuned_lens(folder, lens, t.configuration.data.chosen_languages)
    return FittedLens(len(training_pairs), len(held_out), layers, before, after)
