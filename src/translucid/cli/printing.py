"""Help texts, and results on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import cleandoc
from typing import TYPE_CHECKING, Protocol, TypeVar

from translucid.ground.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from rich.console import RenderableType

    from bitext.pair import Pair


Command = TypeVar("Command", bound=Callable[..., None])


def with_examples(module_docstring: str | None) -> Callable[[Command], Command]:
    """Return a decorator that adds the examples of a module's docstring to that of a command, which is its help."""
    _, heading, examples = cleandoc(module_docstring or "").partition("**Examples**")

    def add(command: Command) -> Command:
        command.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{heading}{examples}"
        return command

    return add


class Scores(Protocol):
    """The scores of a test set."""

    def to_json(self) -> dict[str, Any]:
        """Return the scores for programs."""

    def render(self) -> Iterable[RenderableType]:
        """Return the scores for people."""


def print_json(record: object) -> None:
    """Print a record as JSON over several lines."""
    print(json.dumps(record, ensure_ascii=False, indent=2))


def print_scores(scores: Scores, *, as_json: bool = False) -> None:
    """Print scores as tables, or as JSON."""
    if as_json:
        print_json(scores.to_json())
        return
    console = Console()
    for section in scores.render():
        console.print(section)


def evenly_spread(limit: int, count: int) -> list[int]:
    """Return at most `limit` numbers below a count, evenly spread."""
    size = min(limit, count)
    return [number * count // size for number in range(size)]


def print_samples(limit: int, pairs: Sequence[Pair], texts: Sequence[str]) -> None:
    """Print some pairs, evenly spread, with the translations of their sources."""
    console = Console()
    for i in evenly_spread(limit, len(pairs)):
        console.print(f"\nsource      {pairs[i].source}\nreference   {pairs[i].target}\nhypothesis  {texts[i]}")
