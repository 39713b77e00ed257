"""Checking an answer to an exercise: shapes, then numbers, then what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from translucid.ground.errors import UserError, nearest
from translucid.inspection.rendering.message_catalogs import gettext_in
from translucid.lessons.exercises import EXERCISES, Exercise

DRAWS = 20
"""The number of random arguments that an answer is checked with."""


@dataclass(frozen=True)
class Verdict:
    """What a check says of an answer; a notebook shows it as text."""

    is_right: bool
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def check(answer: Callable[..., Any], language: str = "en") -> Verdict:
    """Check a function that answers an exercise, which its name tells.

    The answer is compared with the right one on random arguments, then with mistakes that are often made. Exceptions of
    the answer are reported, not raised.

    Args:
        answer: the function.
        language: the code of the language of the verdict.

    Raises:
        UserError: there is no exercise of this name, or no catalog of the language.
    """
    exercises = {exercise.name: exercise for exercise in EXERCISES}
    name = getattr(answer, "__name__", str(answer))
    if name not in exercises:
        raise UserError(f"no exercise is a function named {name!r}", fix=nearest(name, exercises))
    is_right, text = _checked(exercises[name], answer, gettext_in(language))
    return Verdict(is_right, f"{name}: {text}.")


def _checked(exercise: Exercise, answer: Callable[..., Any], gettext: Callable[..., str]) -> tuple[bool, str]:
    draws = [_arguments(exercise, seed) for seed in range(DRAWS)]
    try:
        results = [_called(answer, arguments) for arguments in draws]
    except NotImplementedError:
        return False, gettext("not written yet")
    except Exception as error:  # the reader's own code
        return False, gettext("it raises {error}", error=f"{type(error).__name__}: {error}")
    expected = [_called(exercise.right, arguments) for arguments in draws]
    if all(_is_same(*pair) for pair in zip(results, expected, strict=True)):
        return True, gettext("right, for {count} random arguments", count=DRAWS)
    for text, mistake in exercise.mistakes.items():
        mistaken = [_called(mistake, arguments) for arguments in draws]
        if all(_is_same(*pair) for pair in zip(results, mistaken, strict=True)):
            return False, gettext(text)
    texts = (_difference(*pair, gettext) for pair in zip(results, expected, strict=True) if not _is_same(*pair))
    return False, next(texts)


def _arguments(exercise: Exercise, seed: int) -> tuple[Any, ...]:
    return exercise.arguments(torch.Generator().manual_seed(seed))


def _called(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, list[Tensor]]:
    """Return what a function returns, and its tensors afterwards, which it must not change."""
    given = [argument if callable(argument) else deepcopy(argument) for argument in arguments]
    result = function(*given)
    return _plain(result), [argument for argument in given if isinstance(argument, Tensor)]


def _plain(value: Any) -> Any:
    """Return a value with tensors for NumPy arrays, without gradients, and with lists for tuples."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return torch.as_tensor(value) if hasattr(value, "__array__") else value


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two results are the same up to rounding; NaN is the same as NaN."""
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_is_same, first, second))
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.shape != second.shape:
            return False
        return torch.allclose(first.double(), second.double(), rtol=1e-4, atol=1e-5, equal_nan=True)
    return type(first) is type(second) and bool(first == second)


def _difference(result: tuple[Any, Any], expected: tuple[Any, Any], gettext: Callable[..., str]) -> str:
    """Return how a result differs from the right one."""
    (value, _), (right, _) = result, expected
    if _is_same(value, right):
        return gettext("the result is right, but an argument is changed: work on a copy")
    if isinstance(right, list) and isinstance(value, list) and len(right) == len(value):
        parts = [
            (part, right_part) for part, right_part in zip(value, right, strict=True) if not _is_same(part, right_part)
        ]
        value, right = parts[0]
    if not isinstance(value, Tensor) or not isinstance(right, Tensor):
        return gettext("it returns {value}, not {right}", value=repr(value), right=repr(right))
    if value.shape != right.shape:
        return gettext("the shape is {shape}, not {right}", shape=list(value.shape), right=list(right.shape))
    differs = ~torch.isclose(value.double(), right.double(), rtol=1e-4, atol=1e-5)
    place = differs.nonzero()[0].tolist()
    numbers = {"value": f"{value[tuple(place)]:.4f}", "right": f"{right[tuple(place)]:.4f}"}
    if not place:
        return gettext("the shape is right, but the number is {value}, not {right}", **numbers)
    return gettext("the shape is right, but the number at {place} is {value}, not {right}", place=place, **numbers)
