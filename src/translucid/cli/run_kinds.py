"""Loading of a run by what its model reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.languages import Languages
    from translucid.api.pivot_translator import FirstStep
    from translucid.captions.captioner import Captioner
    from translucid.language.text_classifier import TextClassifier
    from translucid.runs.configuration import Configuration


def configuration_of(run: Path, reads: str | None = None) -> Configuration:
    """Read the configuration of a run.

    Raises:
        UserError: it is no run, or its model does not read what it should, such as `images`.
    """
    from translucid.runs.run_folder import RunFolder

    configuration = RunFolder(run).configuration()
    if reads:
        configuration.refuse_other_input(reads, run)
    return configuration


def steps_of(run: Path, pivot: str | None, languages: Languages) -> tuple[FirstStep | None, Configuration]:
    """Return the first step of a translation with --pivot, or None without, and the configuration of the run.

    Raises:
        UserError: it is no run, or the runs do not have these languages.
    """
    configuration = configuration_of(run)
    if pivot is None:
        return None, configuration.between(*languages)
    from translucid.api.pivot_translator import steps_through

    configuration.refuse_other_input("text", run)
    return steps_through(pivot, run, configuration, languages)


def captioner_of(run: Path, device: str = "auto") -> Captioner | None:
    """Load a run whose model reads images; None if it reads text.

    Raises:
        UserError: it is no run, or it is damaged.
    """
    if configuration_of(run).model.reads != "images":
        return None
    from translucid.captions.captioner import Captioner

    return Captioner.load(run, device)


def classifier_of(run: Path, device: str = "auto") -> TextClassifier | None:
    """Load a run that classifies texts; None if it does something else.

    Raises:
        UserError: it is no run, or it is damaged.
    """
    if configuration_of(run).model.reads != "texts with labels":
        return None
    from translucid.language.text_classifier import TextClassifier

    return TextClassifier.load(run, device=device)


def refuse_without_context(configuration: Configuration, run: Path, flags: Mapping[str, object]) -> None:
    """Check that a run has document context if an option about it was given.

    Args:
        configuration: the configuration of the run.
        run: the run folder.
        flags: the values of these options by name.

    Raises:
        UserError: it has none.
    """
    given_flags = [name for name, value in flags.items() if value]
    if given_flags and not configuration.data.context:
        what = f"{given_flags[0]} is for runs with document context, and this one was trained without"
        raise UserError(what, file=run, fix="Leave it out, or train a run with data.context.")
