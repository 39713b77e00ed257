"""Sentence chrF of each of some texts against each other, from n-grams that are counted once a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDER = 6
"""Characters of the longest n-grams."""
BETA = 2.0
"""How much more recall weighs than precision."""


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return sacreBLEU's sentence chrF, 0 to 100, of text i as translation and text j as reference, [N, N].

    chrF (Popović 2015, section 2): white space is left out, precision and recall are averaged over the orders that
    both texts have n-grams of. Matches of an order are sums of min(c_i, c_j) over n-grams, and min(c_i, c_j) is the
    number of k >= 1 that neither count is below: so they come of products of matrices of zeros and ones.
    """
    squeezed = ["".join(text.split()) for text in texts]
    count = len(squeezed)
    precision, recall, orders = (np.zeros((count, count)) for _ in range(3))
    for n in range(1, ORDER + 1):
        sizes = np.array([max(len(text) - n + 1, 0) for text in squeezed], float)
        counts = _counts(squeezed, n)
        matches = np.zeros((count, count))
        for k in range(1, int(counts.max(initial=0)) + 1):
            has = (counts[:, (counts >= k).any(0)] >= k).astype(np.float32)
            matches += has @ has.T
        both = (sizes[:, None] > 0) & (sizes > 0)
        precision += np.divide(matches, sizes[:, None], out=np.zeros_like(matches), where=both)
        recall += np.divide(matches, sizes, out=np.zeros_like(matches), where=both)
        orders += both
    precision, recall = (x / np.maximum(orders, 1) for x in (precision, recall))
    below = BETA**2 * precision + recall
    return 100 * np.divide((1 + BETA**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0)


def _counts(texts: Sequence[str], n: int) -> NDArray[np.int64]:
    """Return how often each text has each n-gram of any of them [N, n-grams]."""
    number: dict[str, int] = {}
    places = [[number.setdefault(text[i : i + n], len(number)) for i in range(len(text) - n + 1)] for text in texts]
    counts = np.zeros((len(texts), len(number)), np.int64)
    for row, of_text in zip(counts, places, strict=True):
        np.add.at(row, of_text, 1)
    return counts
