"""Proposals that are shared are those that the model would make anew, and settings at equal lagging."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bitext.pair import Pair
from translucid.ground.joint_steps import run
from translucid.ground.special import SPECIAL
from translucid.live.continuation import Continuations, ProposedPiece

sys.path.insert(0, str(Path(__file__).parent))
from live import Measured, Setting, Test, at_goal, rival
from shared_continuations import SharedContinuations

END = SPECIAL.end
HYPOTHESES = {(5,): [10, 11, 12, END], (5, 6): [10, 11, 13, 14, END]}
"""The greedy translation of each source."""
CONTINUING = 12
"""A piece that continues a word."""


class Continuation:
    """Pieces of a hypothesis of `HYPOTHESES` after a written target; after a written word, none continues it."""

    def __init__(self, source, written, searches, encodings):
        self.source, self.written, self.searches, self.encodings = source, written, searches, encodings
        self.memory = None
        rest = HYPOTHESES[source][len(written) :]
        self.tokens = [token for token in rest if token != CONTINUING or not written]

    async def next(self):
        if self.searches[-1:] != [(self.source, self.written)]:
            self.searches.append((self.source, self.written))
        if self.memory is None:
            self.memory = f"memory of {self.source}"
            self.encodings.append(self.source)
        return ProposedPiece(self.tokens.pop(0), -1.0, None)


@pytest.fixture
def shared(monkeypatch):
    """Continuations of a model that writes `HYPOTHESES`, the targets after which it was asked, the encoded sources."""
    searches, encodings = [], []

    def after(self, source, written):
        return Continuation(source, list(written), searches, encodings)

    monkeypatch.setattr(Continuations, "after", after)
    vocabulary = SimpleNamespace(continuing=torch.tensor([CONTINUING]))
    return SharedContinuations(None, None, None, vocabulary), searches, encodings


def rest(pieces):
    """Return the tokens that follow those that were taken."""
    tokens = []
    while tokens[-1:] != [END]:
        tokens.append(run(pieces.next()).token)
    return tokens


def test_a_beginning_of_a_hypothesis_needs_no_search(shared):
    continuations, searches, _ = shared
    first = continuations.after((5, 6), [])
    assert run(first.next()).token == 10 and run(first.next()).token == 11
    assert first.target == [10, 11]
    assert rest(continuations.after((5, 6), [10])) == [11, 13, 14, END]
    assert rest(continuations.after((5, 6), [10, 11])) == [13, 14, END]
    run(first.finish())
    assert first.target == [10, 11, 13, 14, END], "all are computed, and those that follow are still to be taken"
    assert rest(first) == [13, 14, END]
    assert searches == [((5, 6), [])]


def test_other_targets_and_pieces_that_continue_a_word_are_searched(shared):
    continuations, searches, encodings = shared
    assert rest(continuations.after((5,), [])) == [10, 11, 12, END]
    assert rest(continuations.after((5,), [10, 11])) == [END], "the next piece would continue the word"
    assert rest(continuations.after((5, 6), [10])) == [11, 13, 14, END]
    assert searches == [((5,), []), ((5,), [10, 11]), ((5, 6), [10])]
    assert encodings == [(5,), (5, 6)], "each source is encoded once"


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
