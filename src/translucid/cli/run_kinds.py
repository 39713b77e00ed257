"""Loading of a run by what its model reads, and of its translator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.ground.errors import UserError
from translucid.models.kinds import resolved, task_of

if TYPE_CHECKING:
    from bitext.languages import Languages
    from translucid.api.pivot_translator import FirstStep
    from translucid.api.translator import Translator
    from translucid.engines.choosing import EngineName
    from translucid.runs.configuration import Configuration


def configuration_of(run: Path, reads: str | None = None) -> Configuration:
    """Read the configuration of a run.

    Raises:
        UserError: it is no run, or its model does not read what it should, such as `text`.
    """
    from translucid.runs.run_folder import RunFolder

    return RunFolder(run).configuration(reads)


def translator_of(run: Path, languages: Languages, device: str = "auto", engine: EngineName = "auto") -> Translator:
    """Load the translator of a run between two languages; None is the run's own.

    Raises:
        UserError: it is no run that translates, or does not have these languages.
    """
    from translucid.api.translator import Translator

    source, target = languages
    return Translator.load(run, device, engine, source=source, target=target)


def steps_of(run: Path, pivot: str | None, languages: Languages) -> tuple[FirstStep | None, Configuration]:
    """Return the first step of a translation with --pivot, or None without, and the configuration of the run.

    Raises:
        UserError: it is no run, or the runs do not have these languages.
    """
    if pivot is None:
        return None, configuration_of(run).between(*languages)
    from translucid.api.pivot_translator import steps_through

    return steps_through(pivot, run, configuration_of(run, "text"), languages)


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


def view_of(reads: str, command: str) -> Callable[..., Any] | None:
    """Return what a shared command calls for models that read something other than sentences; None if nothing."""
    views = task_of(reads).views
    return resolved(views[command]) if command in views else None
