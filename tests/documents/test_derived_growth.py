"""Whatever is long, repeated or in itself in a small document: its cost grows with the size, not with a product.

`tests/probes/grown.py` derives the documents; run as a program, it also measures documents of 1 MB.
"""

from functools import cache
from pathlib import Path

import pytest

from bitext.documents.document import KINDS
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


@cache
def derived(name):
    """Return a document, its strings that may be long, its parts that may be repeated, and its nestings."""
    seed = Seed(name)
    long, repeated, nested = seed.changes()
    return seed, accepted(seed, long, LETTERS), accepted(seed, repeated, FEW), nested


def test_each_reader_has_a_document_to_derive_from():
    endings = {Path(name).suffix for name in SEEDS}
    missing = [kind.name for kind in KINDS if endings.isdisjoint(kind.endings)]
    assert not missing


@pytest.mark.parametrize("name", SEEDS)
def test_documents_grow_with_sums_and_not_with_products(name):
    seed, long, repeated, nested = derived(name)
    assert long and repeated
    assert not quadratic_steps(seed, repeated)
    if not name.endswith(".csv"):  # `MOST_CELLS` limits the cells that translations add to short rows
        assert not multiplied_output(seed, repeated)
    assert not multiplied_characters(seed, long, repeated)
    assert not exponential_nestings(seed, nested)
    measured = cost(name, large(seed, long, repeated, 60_000))
    assert "FAULT" not in measured.result, measured
    assert measured.seconds < 5 and measured.mebibytes < 100, measured
