"""Proposals that are shared are those that the model would make anew, and settings at equal lagging."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bitext.pair import Pair
from translucid.live.continuation import Continuations, Piece

sys.path.insert(0, str(Path(__file__).parent))
import shared_continuations
from live import Measured, Setting, Test, at_goal, rival
from shared_continuations import SharedContinuations

END = 2
HYPOTHESES = {(5,): [10, 11, 12, END], (5, 6): [10, 11, 13, 14, END]}
"""The greedy translation of each source."""
CONTINUING = 12
"""A piece that continues a word."""


@pytest.fixture
def shared(monkeypatch):
    """Continuations of a model that writes `HYPOTHESES`; `searches` are the targets after which it was asked."""
    searches = []

    def after(self, source, written, draft):
        pieces = []
        for token in HYPOTHESES[source][len(written) :]:
            if token != CONTINUING or not written:  # after a written word, no piece continues it
                pieces.append(Piece(token, -1.0, None))
        return SimpleNamespace(source=source, written=list(written), pieces=iter(pieces))

    def pieces_of(continuation):
        searches.append((continuation.source, continuation.written))
        yield from continuation.pieces

    monkeypatch.setattr(shared_continuations, "pieces_of", pieces_of)
    monkeypatch.setattr(Continuations, "after", after)
    vocabulary = SimpleNamespace(continuing=torch.tensor([CONTINUING]))
    return SharedContinuations(None, None, None, vocabulary), searches


def tokens(pieces):
    return [piece.token for piece in pieces.pieces]


def test_a_beginning_of_a_hypothesis_needs_no_search(shared):
    continuations, searches = shared
    first = continuations.after((5, 6), [])
    assert next(first.pieces).token == 10 and next(first.pieces).token == 11
    assert tokens(continuations.after((5, 6), [10])) == [11, 13, 14, END]
    assert tokens(continuations.after((5, 6), [10, 11])) == [13, 14, END]
    assert tokens(first) == [13, 14, END]
    assert searches == [((5, 6), [])]


def test_other_targets_and_pieces_that_continue_a_word_are_searched(shared):
    continuations, searches = shared
    assert tokens(continuations.after((5,), [])) == [10, 11, 12, END]
    assert tokens(continuations.after((5,), [10, 11])) == [END], "the next piece would continue the word"
    assert tokens(continuations.after((5, 6), [10])) == [11, 13, 14, END]
    assert searches == [((5,), []), ((5,), [10, 11]), ((5, 6), [10])]


def test_rivals_never_have_less_time():
    pairs = [Pair("a b c d e f", "A B C D E F")]

    def outputs(*delays):
        return [("A B C D E F", list(delays))]

    measured = Measured(
        Test("test", ""),
        pairs,
        {
            Setting("alignatt", 1): outputs(1, 2, 3, 4, 5, 6),
            Setting("alignatt", 2): outputs(3, 4, 5, 6, 6, 6),
            Setting("alignatt", 8): outputs(6, 6, 6, 6, 6, 6),
            Setting("wait-k", 2): outputs(2, 3, 4, 5, 6, 6),
            Setting("wait-k", 4): outputs(4, 5, 6, 6, 6, 6),
            Setting("edatt", 1): outputs(1, 2, 3, 4, 5, 6),
        },
    )
    assert at_goal(measured) == Setting("alignatt", 2)
    assert rival(measured, Setting("alignatt", 2), "wait-k") == Setting("wait-k", 4)
    assert rival(measured, Setting("alignatt", 2), "edatt") is None
    assert measured.p_value(Setting("alignatt", 2), Setting("wait-k", 4)) == 1, "their outputs are the same"
