"""The models of the lessons, each loaded when a lesson first needs it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.lessons.lessons import Lesson
from translucid.lessons.runs import RECURRENT, context_run, demo_run, finished, recurrent_run


class Models:
    """The Transformer of the demo, recurrent translators by their alignment score, and one with document context."""

    def __init__(self, runs: Path) -> None:
        """`runs`: the folder of the runs; a missing one is trained when it is needed."""
        self.runs = runs
        self._recurrent: dict[str, Translator] = {}

    def has(self, lesson: Lesson) -> bool:
        """Return whether all models of a lesson are trained."""
        return all(map(self._finished, lesson.runs))

    def trained(self) -> list[str]:
        """Return the names of the trained runs."""
        return list(filter(self._finished, ("demo", *RECURRENT.values(), "context")))

    def _finished(self, name: str) -> bool:
        return finished(self.runs / name)

    def load(self) -> None:
        """Load all models; missing ones are trained first."""
        self.demo.model.eval()
        for score in RECURRENT:
            self.recurrent(score)
        self.context.model.eval()

    @cached_property
    def demo(self) -> Translator:
        """The demo with our own search, whose steps the lessons show."""
        return Translator.load(demo_run(self.runs), "cpu", "torch")

    @cached_property
    def context(self) -> Translator:
        """The translator that reads the previous sentence."""
        return Translator.load(context_run(self.runs), "cpu", "torch")

    def recurrent(self, score: str) -> Translator:
        """Return the translator with this alignment score: `none`, `additive`, `dot` or `general`."""
        if score not in self._recurrent:
            self._recurrent[score] = Translator.load(recurrent_run(score, self.runs), "cpu", "torch")
        return self._recurrent[score]


def translated(translator: Translator, text: str) -> tuple[Translation, list[int], list[int]]:
    """Translate a sentence; return the translation, and the ids of source and target with their end tokens.

    Raises:
        UserError: there is nothing to translate, or the text is too long for the model.
    """
    translation = translator.translate(text, split=False)
    # The figures have room for one piece.
    if len(translation.parts) != 1:
        raise UserError("a lesson takes one sentence", fix="Give a short one.")
    ((piece, best),) = translation.parts
    return translation, piece.ids, best.with_end
