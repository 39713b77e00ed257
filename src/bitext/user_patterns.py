"""Regular expressions of users for protected spans (`data.protected`), limited so that a search takes linear time."""

from __future__ import annotations

import re
import re._constants as regex_codes  # type: ignore[import-not-found]
import re._parser as regex_parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from functools import partial
from math import inf
from typing import Any

MAX_PATHS = 5_000
"""The most ways in which a pattern of a user may match at one character: they bound the time of the search."""
MAX_LENGTH = 5_000
"""The most characters that a pattern of a user may match."""
_UNLIMITED = 1000, 200, 64
"""The number of repetitions that `*` and `+` in a pattern of a user allow: the first for which it is fast enough."""
_QUANTIFIER = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\]){0,300}\]|(?P<sign>[*+]|\{(?P<least>\d*),\})(?P<suffix>[?+]?)", re.DOTALL
)


def bounded_pattern(pattern: str) -> str:
    """Return a regular expression of a user with limits in place of unlimited repetitions.

    Raises:
        ValueError: the expression is invalid, or searching for it may take too long.
    """
    if len(pattern) > 300:
        raise ValueError(f"{pattern[:50]!r}… has more than 300 characters: divide it")
    for limit in _UNLIMITED:
        bounded = _QUANTIFIER.sub(partial(_limited, limit=limit), pattern)
        try:
            re.compile(f"(?:{bounded})")
            parsed = regex_parser.parse(f"(?:{bounded})")
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
        shortest, longest = parsed.getwidth()
        if shortest == 0:
            raise ValueError(f"{pattern!r} also matches nothing: write + instead of *, or leave the ? out")
        if parsed.state.groupdict:
            raise ValueError(f"{pattern!r} has a group with a name: write (?:…)")
        if longest <= MAX_LENGTH and _paths(parsed) <= MAX_PATHS:
            return bounded
    raise ValueError(
        f"{pattern!r} could take very long: it repeats what already repeats, refers to a group, or has more than two"
        " parts that may repeat; write limits such as {1,8}"
    )


def _limited(match: re.Match[str], limit: int) -> str:
    """Return a quantifier with a limit; other parts of a pattern stay."""
    if match["sign"] is None:
        return match[0]
    least = int(match["least"] or 0) if match["sign"][0] == "{" else int(match["sign"] == "+")
    return f"{{{least},{least + limit}}}{match['suffix']}"


def _paths(pattern: Iterable[tuple[Any, Any]]) -> float:
    """Return the number of ways in which a parsed pattern may match a text: the product over its parts."""
    paths = 1.0
    for code, argument in pattern:
        if code in (regex_codes.MAX_REPEAT, regex_codes.MIN_REPEAT):
            least, most, part = argument
            inner = _paths(part)
            if inner == 1:
                paths *= most - least + 1
            elif most > 50:  # Long repetitions of a part with choices exceed any limit.
                paths *= inf
            else:
                paths *= sum(inner**count for count in range(least, most + 1))
        elif code is regex_codes.POSSESSIVE_REPEAT:
            # Only a single character may be repeated possessively: Python 3.11.2 matches groups wrongly.
            part = argument[2]
            paths *= 1 if len(part) == 1 and _paths(part) == 1 and part.getwidth() == (1, 1) else inf
        elif code is regex_codes.BRANCH:
            paths *= sum(map(_paths, argument[1]))
        elif code is regex_codes.SUBPATTERN:
            paths *= _paths(argument[3])
        elif code in (regex_codes.ASSERT, regex_codes.ASSERT_NOT):
            paths *= 1 + _paths(argument[1])
        elif code in (regex_codes.ATOMIC_GROUP, regex_codes.GROUPREF, regex_codes.GROUPREF_EXISTS):
            return inf
    return paths
