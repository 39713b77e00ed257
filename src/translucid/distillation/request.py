"""The inputs of a distillation: runs, files and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bitext.languages import Languages
from bitext.reading import digest
from translucid.data.readers.corpus import sides
from translucid.distillation.report import UNBOUNDED, Bounds
from translucid.engines.choosing import EngineName
from translucid.engines.noisy_channel import reverse_configuration
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.data_options import DataOptions
from translucid.runs.directions import languages_of
from translucid.runs.run_folder import DISTILLATION, RunFolder

Choice: TypeAlias = Literal["nearest", "best", "mbr", "sample"]
"""nearest: the hypothesis that is nearest to the reference, and without one the most probable hypothesis; best: the
most probable one; mbr: that of minimum Bayes risk; sample: a random sample."""
CANDIDATES = 8
"""The default length of the n-best list."""
WORST = 0.05
"""The default share of pairs that are removed because of their score by the reverse run."""
SMALL = 1_000_000
"""Up to this number of pairs, the student learns from the real translations, too, if the user does not decide."""


@dataclass(frozen=True)
class Request:
    """The inputs of a distillation."""

    teachers: tuple[Path, ...]
    """The runs of the teachers, whose probabilities are averaged."""
    out: Path
    """The run folder of the student."""
    pairs: tuple[str, ...] = ()
    """Parallel corpora, whose sources are translated."""
    text: tuple[str, ...] = ()
    """Text of the source language."""
    target_text: tuple[str, ...] = ()
    """Text of the target language, which the reverse run translates into sources."""
    valid: tuple[str, ...] = ()
    """Validation pairs; by default, some of the pairs are held out."""
    test: tuple[str, ...] = ()
    """Test pairs, for the report."""
    reverse: Path | None = None
    """A run of the reverse direction."""
    languages: Languages = (None, None)
    choose: Choice = "nearest"
    candidates: int = CANDIDATES
    """The length of the n-best list, or the number of candidates of minimum Bayes risk."""
    search: tuple[tuple[str, Any], ...] = ()
    """The decoding options of the teacher that differ from those of its run."""
    keep_references: bool | None = None
    """Whether the student also learns from the pairs themselves; by default up to `SMALL` pairs."""
    filter_worst: float = WORST
    align: bool = True
    """Whether one head of the student learns links between words (guided alignment)."""
    bounds: Bounds = UNBOUNDED
    """The bounds on the time and the size of the student."""
    preset: str | None = None
    config: Path | None = None
    word_level: float | None = None
    """The share of the loss that is the cross-entropy with the predictions of the teachers. The student then has their
    vocabulary; None if it learns one of its own."""
    settings: tuple[str, ...] = ()
    """Settings of the student, as `key=value`."""
    device: str = "auto"
    engine: EngineName = "auto"
    workers: int | None = None

    @property
    def folder(self) -> Path:
        """The folder of the stages."""
        return self.out / DISTILLATION

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration of the first teacher, between the languages of the student.

        Raises:
            UserError: it is no translator, or one of several languages that were not chosen.
        """
        run = self.teachers[0]
        configuration = RunFolder(run).configuration("text")
        languages = self.languages
        if configuration.data.tokenizer.languages and not any(languages):
            codes = configuration.data.tokenizer.languages
            named = {languages_of(name, codes) for name in self.corpora}
            if len(named) == 1:
                languages = named.pop() or languages
        configuration = configuration.between(*languages)
        if configuration.data.tokenizer.languages and None in configuration.data.languages:
            fix = "Choose two of them with `source` and `target`."
            raise UserError("translates between several languages", file=run, fix=fix)
        if configuration.data.context:
            fix = "Choose a teacher that was trained without data.context."
            raise UserError("reads document context, and a student learns from single sentences", file=run, fix=fix)
        return configuration

    @cached_property
    def reverse_configuration(self) -> Configuration | None:
        """The configuration of the reverse run, if there is one.

        Raises:
            UserError: it is no translator, or translates in the direction of the teacher.
        """
        return reverse_configuration(self.reverse, self.configuration) if self.reverse else None

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of all files of pairs."""
        return (*self.pairs, *self.valid, *self.test)

    @cached_property
    def data(self) -> DataOptions:
        """The options by which the corpora are read, in the direction of the teacher.

        Raises:
            UserError: a file has other languages than the teacher, or the teacher has none and files have several.
        """
        teacher = self.configuration.data
        options = DataOptions(
            source_language=teacher.source_language,
            target_language=teacher.target_language,
            tokenizer=teacher.tokenizer,
            reverse=teacher.reverse,
            filter=teacher.filter,
            skip_bad=True,
        )
        # The options of a training with these files would be checked, and files of both orders train two directions.
        options = options.model_copy(update={"train": list(self.pairs), "valid": list(self.valid)})
        directions = set[Languages]()
        for name in self.corpora:
            corpora = options.corpora([name])
            if not corpora:
                source, target = teacher.languages
                fix = "Leave it out, or choose the languages with `source` and `target`."
                raise UserError(f"has other languages than the teacher, {source} and {target}", file=name, fix=fix)
            directions.update(corpus.direction for corpus in corpora if languages_of(name))
        if len(directions) > 1:
            fix = "Choose the languages with `source` and `target`."
            raise UserError("the files have several directions", fix=fix)
        return options

    def check(self) -> None:
        """Check, before any work, that everything that is needed was given.

        Raises:
            UserError: something is missing, or does not go together.
        """
        if not (self.pairs or self.text or self.target_text):
            fix = "Give `pairs=FILES`, `text=FILES` or both."
            raise UserError("there is nothing that the teacher could translate", fix=fix)
        if not (self.pairs or self.valid):
            raise UserError(
                "there are no pairs to validate the student on", fix="Give `valid=FILES`, or `pairs=FILES`."
            )
        if self.target_text and not self.reverse:
            raise UserError("`target_text` is translated by a reverse run", fix="Give it with `reverse=RUN`.")
        for file in (*self.pairs, *self.text, *self.target_text, *self.valid, *self.test):
            if file == "-":
                fix = "Give files: an interrupted distillation reads them again."
                raise UserError("standard input can't be read twice", fix=fix)
        if any(setting.startswith("data.context") for setting in self.settings):
            raise UserError("a student learns from single sentences", fix="Leave data.context out.")
        if self.word_level is not None and any(setting.startswith("data.tokenizer") for setting in self.settings):
            fix = "Leave data.tokenizer out, or `word_level`."
            raise UserError("the vocabulary of the teacher can't be changed", fix=fix)
        for run in (*self.teachers, *filter(None, [self.reverse])):
            if self.out.exists() and self.out.samefile(run):
                raise UserError("is a run that is needed, and would be replaced", file=run, fix="Choose another `out`.")
        assert self.configuration and self.data  # all are checked when they are read
        assert self.reverse_configuration or not self.reverse

    def digests(self, files: Sequence[str]) -> list[str]:
        """Return the SHA-256 of corpus files.

        Raises:
            UserError: a file can't be read.
        """
        return [digest(file) for file in chain.from_iterable(map(sides, files))]
