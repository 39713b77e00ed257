"""Safe parsing of YAML from strangers: data only, of bounded size and depth, with one class of errors."""

from __future__ import annotations

from typing import Any

import yaml

LONGEST = 1 << 20
"""The most bytes of a file of settings; even a run with ten thousand training files needs fewer."""
DEEPEST = 20
"""The most nested groups; ours need four."""


class _Loader(yaml.SafeLoader):
    """A loader without aliases: ten lines, each with ten aliases of the line before, would be ten billion values."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            problem, place = "aliases (*name) are not known here", self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=place)
        self.depth += 1
        if self.depth > DEEPEST:
            place = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=place)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            # Examples are 2001-99-99, which looks like a date, and a number of 5,000 digits.
            problem = "a value is not of the kind that it looks like"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        yaml.YAMLError: it is not YAML, is nested too deeply, has aliases, or has a value that can't be read.
    """
    try:
        return yaml.load(text, _Loader)
    except RecursionError as error:
        raise yaml.MarkedYAMLError(problem="it is nested too deeply") from error
