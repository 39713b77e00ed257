"""A sentence to search for, and waiting for the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ctranslate2

from bitext.cancellation import between_steps, is_cancellable


def wait_for(answer: Any) -> Any:
    """Wait for a result, and check meanwhile whether it was cancelled."""
    pause = 0.0005
    while is_cancellable() and not answer.done():
        between_steps()
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    return answer.result()


@dataclass
class Task:
    """A sentence to search for."""

    number: int
    """The index of the sentence in the results."""
    ids: list[int]
    limit: int
    """The largest number of tokens of an output, without the end token."""
    banned: list[list[str]] = field(default_factory=list)
    """The loops of earlier outputs, which later ones may not have."""
    needs_torch: bool = False
    """Whether an output breaks a rule that CTranslate2 applies in another way, so that PyTorch has to search."""


Search: TypeAlias = tuple[Task, ctranslate2.AsyncTranslationResult]
