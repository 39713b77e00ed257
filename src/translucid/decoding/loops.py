"""The same run of tokens time and again ("the house of the house of the house of .."), which models fall into."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_LOOP = 6
"""Tokens in the longest run that is looked for."""


def find_loop(tokens: Sequence[int], times: int, word_starts: Sequence[bool]) -> Sequence[int] | None:
    """Return a run and its first token once more, where the rule `NoLoops` forbids that token; None if it never does.

    `times` in a row are allowed; `word_starts` [V] is True where a piece begins a word.
    """
    repeated = len(tokens) - len(set(tokens))
    for n in range(1, LONGEST_LOOP + 1):
        if repeated <= n * (times - 1):  # fewer than there are equal tokens in any such loop
            break
        equal = 0
        for i in range(n, len(tokens)):
            equal = equal + 1 if tokens[i] == tokens[i - n] else 0
            # The run has stood there once before the first equal token, and `times` times before the one too many.
            if equal > n * (times - 1) and any(word_starts[token] for token in tokens[i - n : i]):
                return tokens[i - n * times : i + 1]
    return None
