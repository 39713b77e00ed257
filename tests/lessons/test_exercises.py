"""Exercises: every check accepts the right answer and names typical mistakes, and the notebooks are valid."""

import json

import nbformat
import numpy as np
import pytest
import torch

from translucid.cli.main import run
from translucid.ground.errors import UserError
from translucid.inspection.rendering.message_catalogs import file_messages
from translucid.lessons import LESSONS, Verdict, check
from translucid.lessons.exercises import EXERCISES


def test_each_lesson_has_an_exercise():
    assert [exercise.name for exercise in EXERCISES] == [lesson.exercise for lesson in LESSONS]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_right_answer_is_accepted_and_each_mistake_is_named(exercise):
    assert check(exercise.right) == Verdict(True, f"{exercise.name}: right, for 20 random arguments.")
    assert check(exercise.right, "es").text == f"{exercise.name}: correcta, con 20 argumentos aleatorios."
    assert len(exercise.mistakes) >= 3
    for text, mistake in exercise.mistakes.items():

        def answer(*arguments, mistake=mistake):
            return mistake(*arguments)

        answer.__name__ = exercise.name
        assert check(answer) == Verdict(False, f"{exercise.name}: {text}.")


ENGLISH = [
    json.dumps(message.source, ensure_ascii=False)[1:-1]
    for message in file_messages()
    if message.files[0].startswith("lessons/")
]


def attention(Q, K, V):
    return torch.from_numpy(_numpy_attention(*(x.double().numpy() for x in (Q, K, V))))


def _numpy_attention(Q, K, V):
    exponentials = np.exp(Q @ K.T / np.sqrt(K.shape[1]))
    return exponentials / exponentials.sum(-1, keepdims=True) @ V


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda out: out.numpy(), "right, for 20 random arguments."),
        (lambda out: out.float().requires_grad_(), "right, for 20 random arguments."),
        (lambda out: out[:2], "the shape is [2, 6], not [4, 6]."),
        (lambda out: out + 1, "the shape is right, but the number at [0, 0] is "),
        (lambda out: None, "it returns None, not tensor("),
        (lambda out: out @ out, "RuntimeError: "),
    ],
)
def test_other_answers_are_described(change, text):
    def answer(*arguments):
        return change(attention(*arguments))

    answer.__name__ = "attention"
    assert text in str(check(answer))


def test_functions_without_an_exercise_are_rejected():
    def atention(Q, K, V):
        return Q

    with pytest.raises(UserError, match=r"'atention'.*Did you mean 'attention'"):
        check(atention)


def test_notebooks_of_exercises_are_valid_and_not_yet_solved(tmp_path, capsys):
    folder = tmp_path / "exercises"
    assert run(["learn", "--exercises", str(folder), "--language", "es"]) == 0
    assert run(["learn", "--exercises", str(folder)]) == 2  # the answers of the reader are not replaced
    assert "--overwrite" in capsys.readouterr().err
    files = sorted(folder.glob("*.ipynb"))
    assert len(files) == len(LESSONS)
    for file in files:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        names = {}
        _, answer, last = notebook.cells
        exec(answer.source, names)
        *imports, call = last.source.splitlines()
        exec("\n".join(imports), names)
        assert str(eval(call, names)).endswith(": todavía sin escribir.")
        assert not {text for text in ENGLISH if text in json.dumps(notebook, ensure_ascii=False)}
