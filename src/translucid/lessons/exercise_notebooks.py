"""The notebooks of the exercises: an equation, a function to write, and a cell that checks it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from textwrap import indent
from typing import Any

from translucid.inspection.rendering.message_catalogs import LESSON_CATALOGS, gettext_in
from translucid.lessons.exercises import EXERCISES, Exercise
from translucid.lessons.lessons import LESSONS

MARKER = "1-decoder_state.ipynb", "a folder of exercises"
"""A file by which the folder is recognized, and the name of its kind."""


def write_exercises(folder: Path, language: str = "en") -> None:
    """Write a notebook for each exercise into a folder, with texts in a language.

    Raises:
        UserError: there is no catalog of the language.
    """
    for number, exercise in enumerate(EXERCISES, 1):
        text = json.dumps(notebook(exercise, number, language), ensure_ascii=False, indent=1)
        (folder / f"{number}-{exercise.name}.ipynb").write_text(f"{text}\n", encoding="utf-8")


def notebook(exercise: Exercise, number: int, language: str = "en") -> dict[str, Any]:
    """Return the notebook of an exercise, in version 4.5 of the format."""
    gettext = gettext_in(language)
    title = next(lesson.title for lesson in LESSONS if lesson.exercise == exercise.name)
    title = gettext_in(language, LESSON_CATALOGS)(title)
    task = gettext("Write the function, then run the last cell.")
    statement = f"# {number}. {title}\n\n$${exercise.equation}$$\n\n{task}"
    options = "" if language == "en" else f', language="{language}"'
    cells = [
        _cell("markdown", "statement", statement),
        _cell("code", "answer", f"import torch\n\n\n{stub(exercise, language)}"),
        _cell("code", "check", f"from translucid.lessons import check\n\ncheck({exercise.name}{options})"),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def stub(exercise: Exercise, language: str = "en") -> str:
    """Return the function to write: its parameters and what it returns."""
    parameters = ", ".join(inspect.signature(exercise.right).parameters)
    docstring = indent(gettext_in(language)(inspect.getdoc(exercise.right) or ""), "    ").lstrip()
    if "\n" in docstring:
        docstring += "\n    "
    return f'def {exercise.name}({parameters}):\n    """{docstring}"""\n    raise NotImplementedError'


def _cell(kind: str, name: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
