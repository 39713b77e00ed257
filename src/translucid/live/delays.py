"""How far a translation stays behind its source: average lagging, length-adaptive average lagging, average proportion.

The delay d_i of target word i, counted from 1, is the number of source words that were read before it was written, or
the time. |x|, |y| and |r| are the words of the source, the output and a reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Latency(NamedTuple):
    """The latency of a sentence, or the means over the sentences of a corpus."""

    al: float
    """Average lagging (Ma et al. 2019, arXiv 1810.08398, equation 8), with |r| for the length of the target."""
    laal: float
    """Length-adaptive average lagging (Papi et al. 2022, arXiv 2206.05807, equation 3)."""
    ap: float
    """Average proportion (Cho and Esipova 2016, arXiv 1606.02012, section 3)."""


def latency(delays: Sequence[float], source: float, reference: int | None = None) -> Latency | None:
    """Return the latency of one sentence; None if its output is empty, for which it is undefined.

        AL = 1/tau sum_{i <= tau} (d_i - (i - 1) |x| / |r|)     LAAL: max(|y|, |r|) in place of |r|
        AP = sum_i d_i / (|x| |y|)
        tau = the first i with d_i = |x|; |y| if there is none

    Args:
        delays: d_i of each target word, which do not decrease: source words, or seconds since the source began.
        source: |x|, the number of source words; for seconds, the time at which the source ended.
        reference: |r|; that of the output by default.

    Raises:
        ValueError: there are delays, and the source is empty.
    """
    if not delays:
        return None
    if source <= 0:
        raise ValueError(f"a source of length {source} has no latency")
    length = len(delays)
    reference = reference or length
    at_end = [i for i, delay in enumerate(delays, 1) if delay >= source]
    tau = at_end[0] if at_end else length
    return Latency(
        al=_lagging(delays[:tau], source / reference),
        laal=_lagging(delays[:tau], source / max(length, reference)),
        ap=sum(delays) / (source * length),
    )


def _lagging(delays: Sequence[float], rate: float) -> float:
    """Return the mean distance to an ideal translator, which writes a word after each `rate` source words."""
    return sum(delay - i * rate for i, delay in enumerate(delays)) / len(delays)


def mean_latency(latencies: Iterable[Latency | None]) -> tuple[Latency | None, int]:
    """Return the means over the sentences of a corpus, and the number of sentences for which latency is undefined."""
    rows = list(latencies)
    defined = [row for row in rows if row is not None]
    if not defined:
        return None, len(rows)
    means = [sum(values) / len(defined) for values in zip(*defined, strict=True)]
    return Latency(*means), len(rows) - len(defined)
