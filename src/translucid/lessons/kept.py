"""Figures of the lessons, made once for the models that there are."""

from __future__ import annotations

from pathlib import Path

from translucid.ground.atomic import write_atomically
from translucid.lessons.lessons import LESSONS
from translucid.lessons.models import Models
from translucid.lessons.pages import as_json
from translucid.lessons.recording import LESSON


def record_of(models: Models, name: str) -> str:
    """Return the figures of a lesson as JSON; they are kept beside the runs until one of these is trained anew."""
    file = models.runs / "lessons" / f"{name}.json"
    newest = max(path.stat().st_mtime for path in models.files())
    if not file.exists() or file.stat().st_mtime < newest:
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, as_json(LESSON[name](models)).encode())
    return file.read_text(encoding="utf-8")


def records_of(runs: Path) -> dict[str, str]:
    """Return the figures of all lessons as JSON, by name; models that are not there are trained."""
    models = Models(runs)
    models.load()
    return {lesson.name: record_of(models, lesson.name) for lesson in LESSONS}
