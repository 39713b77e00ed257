"""Whatever is long, repeated or in itself in a small document: its cost grows with the size, not with a product.

`tests/probes/grown.py` derives the documents; run as a program, it also measures documents of 1 MB.
"""

from pathlib import Path

import pytest

from bitext.documents.document import KINDS
from tests.growth import assert_linear_seconds
from tests.probes.grown import (
    FEW,
    LETTERS,
    SEEDS,
    Seed,
    accepted,
    cost,
    exponential_nestings,
    large,
    multiplied_characters,
    multiplied_output,
    quadratic_steps,
)

MOST = 10
"""The most strings, parts and nestings of a document that are tried; the program tries more."""


def thinned(changes):
    """Return at most `MOST` of the changes, from all over the document."""
    return changes[:: -(-len(changes) // MOST)] if changes else []


def test_each_reader_has_a_document_to_derive_from():
    endings = {Path(name).suffix for name in SEEDS}
    missing = [kind.name for kind in KINDS if endings.isdisjoint(kind.endings)]
    assert not missing


@pytest.mark.parametrize("name", SEEDS)
def test_documents_grow_with_sums_and_not_with_products(name):
    seed = Seed(name)
    strings, units, nested = map(thinned, seed.changes())
    long, repeated = accepted(seed, strings, LETTERS), accepted(seed, units, FEW)
    assert long and repeated
    assert not quadratic_steps(seed, repeated)
    if not name.endswith(".csv"):  # `MOST_CELLS` limits the cells that translations add to short rows
        assert not multiplied_output(seed, repeated)
    assert not multiplied_characters(seed, long, repeated)
    assert not exponential_nestings(seed, nested)

    def seconds(size):
        measured = cost(name, large(seed, long, repeated, size))
        assert "FAULT" not in measured.result and measured.mebibytes < 100, measured
        return measured.seconds

    assert_linear_seconds(seconds, 7_500, 60_000)
