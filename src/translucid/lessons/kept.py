"""Figures of the lessons: of the models that are there, made once for them, or those that come with the package."""

from __future__ import annotations

from translucid.ground.atomic import write_atomically
from translucid.lessons.lessons import Lesson
from translucid.lessons.models import Models
from translucid.lessons.pages import as_json, recorded
from translucid.lessons.recording import LESSON


def record_of(models: Models, lesson: Lesson) -> str:
    """Return the figures of a lesson as JSON; of our models they are kept until one of these is trained anew."""
    if not models.has(lesson):
        return recorded(lesson.name)
    file = models.runs / "lessons" / f"{lesson.name}.json"
    newest = max((models.runs / name / "model.safetensors").stat().st_mtime for name in lesson.runs)
    if not file.exists() or file.stat().st_mtime < newest:
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, as_json(LESSON[lesson.name](models)).encode())
    return file.read_text(encoding="utf-8")
