"""Coroutines that wait for steps of work, of which those of several coroutines are computed together.

A coroutine awaits a `Step`. `run` computes the steps of one coroutine alone; whoever has several coroutines calls
`compute_steps` until none of them waits, and may add others in between.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Self, TypeVar

Result = TypeVar("Result")


class Step:
    """Work that a coroutine waits for; `await step` lets it be computed."""

    def __await__(self) -> Generator[Self, None, None]:
        """Wait until the step has been computed."""
        yield self

    def joins(self, other: Step) -> bool:
        """Return whether both steps can be computed together."""
        raise NotImplementedError

    def compute(self, steps: Sequence[Any]) -> None:
        """Compute this step and others that it joins: all or, with an exception, none."""
        raise NotImplementedError


class Running(Generic[Result]):
    """A coroutine, and the step that it waits for."""

    def __init__(self, coroutine: Coroutine[Step, None, Result]) -> None:
        """Begin with a coroutine; `go_on` runs it until its first step."""
        self.future: Future[Result] = Future()
        """The result."""
        self.step: Step | None = None
        """The step that the coroutine waits for; None before it has begun and after it has ended."""
        self._coroutine = coroutine

    def go_on(self, error: Exception | None = None) -> None:
        """Continue the coroutine until its next step or its end; an error is raised where it waits."""
        try:
            self.step = self._coroutine.throw(error) if error else self._coroutine.send(None)
        except StopIteration as end:
            self.step = None
            self.future.set_result(end.value)
        except BaseException as exception:
            self.step = None
            self.future.set_exception(exception)

    def close(self) -> None:
        """End a coroutine that has not begun."""
        self._coroutine.close()


def compute_steps(waiting: Sequence[Running[Any]]) -> None:
    """Compute the steps that coroutines wait for, together where possible, and continue them.

    An error in a step of several coroutines is raised only in those whose step alone has it, too.
    """
    groups: list[list[Running[Any]]] = []
    for running in waiting:
        for group in groups:
            if _step(running).joins(_step(group[0])):
                group.append(running)
                break
        else:
            groups.append([running])
    for group in groups:
        steps = [_step(running) for running in group]
        try:
            steps[0].compute(steps)
        except Exception as error:
            if len(group) == 1:
                group[0].go_on(error)
            else:
                for running in group:
                    compute_steps([running])
        else:
            for running in group:
                running.go_on()


def run(coroutine: Coroutine[Step, None, Result]) -> Result:
    """Run one coroutine to its end, and return its result."""
    running = Running(coroutine)
    running.go_on()
    while running.step:
        compute_steps([running])
    return running.future.result()


def _step(running: Running[Any]) -> Step:
    assert running.step
    return running.step
