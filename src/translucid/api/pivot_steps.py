"""The steps of a translation through a pivot language that a command names: another run, or a language of its run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bitext.languages import Languages, find_code
from translucid.api.translator import Translator
from translucid.engines.choosing import EngineName
from translucid.ground.errors import UserError
from translucid.interop.run_resolution import resolve_run
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder


class FirstStep(NamedTuple):
    """The step into the pivot language."""

    run: Path
    """The run folder; that of the second step if one multilingual model does both."""
    configuration: Configuration
    """The configuration of the run, for the languages of this step."""

    def open(
        self, second: Translator, device: str = "auto", engine: EngineName = "auto", threads: int | None = None
    ) -> Translator:
        """Return the translator of this step; that of the second step is loaded."""
        if self.run == Path(second.run):
            return second.between(*self.configuration.data.languages)
        return Translator.open(RunFolder(self.run), self.configuration, device, engine, threads=threads)


def steps_through(
    pivot: str, run: Path, configuration: Configuration, languages: Languages = (None, None)
) -> tuple[FirstStep, Configuration]:
    """Return the first step, and the configuration of the second step.

    Args:
        pivot: a run that translates into the pivot language, or a language of a multilingual run.
        run: the run folder of the second step.
        configuration: its configuration.
        languages: the source and the target language, if multilingual runs do not name them.

    Raises:
        UserError: `pivot` is neither a run nor a language, or the runs do not have these languages.
    """
    source, target = languages
    codes = configuration.data.tokenizer.languages
    language = find_code(pivot, codes) if codes else None
    if language:
        direct = configuration.between(source, target)
        return FirstStep(run, direct.between(None, language)), direct.between(language, None)
    folder = RunFolder(resolve_run(pivot))
    if not folder.config_file.exists():
        what = f"{pivot} is neither a run nor a language of {run}"
        fix = "Give --pivot a run that translates into the language that RUN reads."
        raise UserError(what, fix=fix)
    first_configuration = folder.configuration()
    first_configuration.refuse_other_input("text", folder.path)
    second_source = configuration.data.languages[0]
    if first_configuration.data.tokenizer.languages and not codes:
        first_step = FirstStep(folder.path, first_configuration.between(source, second_source))
        return first_step, configuration.between(None, target)
    first_configuration = first_configuration.between(source, None)
    first_target = first_configuration.data.languages[1] if codes else None
    return FirstStep(folder.path, first_configuration), configuration.between(first_target, target)
