"""The models of the lessons, each loaded when a lesson first asks for it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.lessons.lessons import Lesson
from translucid.lessons.runs import RECURRENT, demo_run, finished, recurrent_run


class Models:
    """A Transformer, the demo, and recurrent translators by their alignment score."""

    def __init__(self, runs: Path) -> None:
        """`runs`: the folder of their runs; what is not there is trained when it is asked for."""
        self.runs = runs
        self._recurrent: dict[str, Translator] = {}

    def has(self, lesson: Lesson) -> bool:
        """Whether all models of a lesson are there."""
        return all(finished(self.runs / name) for name in lesson.runs)

    def there(self) -> list[str]:
        """Return the names of the runs that are there."""
        return [name for name in ("demo", *RECURRENT.values()) if finished(self.runs / name)]

    def load(self) -> None:
        """Load all models; those that are not there are trained first."""
        self.demo.model.eval()
        for score in RECURRENT:
            self.recurrent(score)

    @cached_property
    def demo(self) -> Translator:
        """Searched by our own code: a lesson shows what it does."""
        return Translator.load(demo_run(self.runs), "cpu", "torch")

    def recurrent(self, score: str) -> Translator:
        """Return the translator with this alignment score: `none`, `additive`, `dot` or `general`."""
        if score not in self._recurrent:
            self._recurrent[score] = Translator.load(recurrent_run(score, self.runs), "cpu", "torch")
        return self._recurrent[score]


def translated(translator: Translator, text: str) -> tuple[Translation, list[int], list[int]]:
    """Translate a text in one go: the translation, and the ids of source and target, end tokens included.

    Raises:
        UserError: there is nothing to translate, or it is longer than the model takes in one piece.
    """
    found = translator.translate(text, split=False)
    if len(found.parts) != 1:
        raise UserError("a lesson looks at one sentence", fix="Give a short one.")
    ((piece, best),) = found.parts
    return found, piece.ids, [*best.tokens, SPECIAL.end]
