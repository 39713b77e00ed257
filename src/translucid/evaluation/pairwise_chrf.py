"""Sentence chrF of all pairs of some texts; the n-grams of each text are counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDER = 6
"""The length of the longest n-grams, in characters."""
BETA = 2.0
"""The weight of recall relative to precision."""


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return sacreBLEU's sentence chrF, 0 to 100, of text i as translation and text j as reference, [N, N].

    chrF (Popović 2015, section 2) ignores white space, and averages precision and recall over the orders of which both
    texts have n-grams. The matches of an order are sums of min(c_i, c_j) over n-grams, and min(c_i, c_j) is the number
    of k >= 1 with c_i >= k and c_j >= k, so that products of matrices of zeros and ones compute them.
    """
    squeezed = ["".join(text.split()) for text in texts]
    count = len(squeezed)
    precision, recall, orders = np.zeros((3, count, count))
    for n in range(1, ORDER + 1):
        sizes = np.array([max(len(text) - n + 1, 0) for text in squeezed], float)
        counts = _counts(squeezed, n)
        matches = np.zeros((count, count))
        for k in range(1, int(counts.max(initial=0)) + 1):
            # Counts are small integers, which float32 represents exactly.
            present = (counts[:, (counts >= k).any(0)] >= k).astype(np.float32)
            matches += present @ present.T
        # Text i has the precision, as the translation, and text j the recall.
        both = (sizes[:, None] > 0) & (sizes > 0)
        precision += np.divide(matches, sizes[:, None], out=np.zeros_like(matches), where=both)
        recall += np.divide(matches, sizes, out=np.zeros_like(matches), where=both)
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    denominator = BETA**2 * precision + recall
    numerator = (1 + BETA**2) * precision * recall
    return 100 * np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def _counts(texts: Sequence[str], n: int) -> NDArray[np.int64]:
    """Return the counts of all n-grams in each text [N, n-grams]."""
    numbers: dict[str, int] = {}
    by_text = []
    for text in texts:
        grams = [text[i : i + n] for i in range(len(text) - n + 1)]
        by_text.append([numbers.setdefault(gram, len(numbers)) for gram in grams])
    counts = np.zeros((len(texts), len(numbers)), np.int64)
    for row, text_grams in zip(counts, by_text, strict=True):
        np.add.at(row, text_grams, 1)
    return counts
