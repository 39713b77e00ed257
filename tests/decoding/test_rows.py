"""Rows are immutable: each operation returns new rows."""

import torch

from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.rows import Finished, Rows

BOS, EOS = 2, 3


def two_sentences():
    """Return rows of two sentences, two rows each, one token long."""
    rows = Rows.begin(2, 2, BOS, torch.device("cpu"))
    return rows.extended(torch.tensor([4, 5, 6, 7]), torch.tensor([-1.0, -2.0, -3.0, -4.0]))


def test_rows_begin_with_the_start_token_sentence_by_sentence():
    rows = Rows.begin(2, 3, BOS, torch.device("cpu"))
    assert (len(rows), rows.length) == (6, 0)
    assert rows.sentence.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows.slot.tolist() == [0, 1, 2, 0, 1, 2]
    assert rows.tokens.tolist() == [[BOS]] * 6
    assert rows.history.shape == rows.token_log_probs.shape == (6, 0)
    assert rows.log_prob.tolist() == [0] * 6


def test_rows_grow_by_a_token_and_its_log_probability():
    rows = two_sentences()
    extended = rows.extended(torch.tensor([5, 5, 5, 5]), torch.tensor([-0.5] * 4))
    assert extended.tokens.tolist() == [[BOS, 4, 5], [BOS, 5, 5], [BOS, 6, 5], [BOS, 7, 5]]
    assert extended.history.tolist() == [[4, 5], [5, 5], [6, 5], [7, 5]]
    assert extended.last.tolist() == [5, 5, 5, 5]
    assert extended.token_log_probs[:2].tolist() == [[-1, -0.5], [-2, -0.5]]
    assert extended.log_prob.tolist() == [-1.5, -2.5, -3.5, -4.5]
    assert (extended.length, rows.length) == (2, 1)


def test_select_takes_every_field_along():
    selected = two_sentences().select(torch.tensor([3, 0, 0]))
    assert selected.sentence.tolist() == [1, 0, 0]
    assert selected.slot.tolist() == [1, 0, 0]
    assert selected.tokens.tolist() == [[BOS, 7], [BOS, 4], [BOS, 4]]
    assert selected.token_log_probs.tolist() == [[-4], [-1], [-1]]
    assert selected.log_prob.tolist() == [-4, -1, -1]


def test_finished_rows_become_hypotheses_best_first_and_each_once():
    finished, end_tokens = Finished(2), torch.full((4,), EOS)
    finished_rows = two_sentences().extended(end_tokens, torch.zeros(4))
    finished.add(finished_rows, torch.tensor([-3.0, -1.0, -2.0, -2.0]))
    finished.add(finished_rows.select(torch.tensor([0])), torch.tensor([-0.1]))  # the same output again
    first, second = finished.best(2)
    assert first == [Hypothesis([5], -2.0, -1.0, [-2.0, 0.0]), Hypothesis([4], -1.0, -3.0, [-1.0, 0.0])]
    assert [hypothesis.tokens for hypothesis in second] == [[6], [7]]
    assert [len(hypotheses) for hypotheses in finished.best(1)] == [1, 1]
