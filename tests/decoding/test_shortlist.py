"""The candidates of a batch, and the text of a shortlist."""

from translucid.decoding.shortlist import Shortlist, listed
from translucid.ground.special import SPECIAL

LISTED = Shortlist([4, 6], {10: [7], 11: [8, 9]})


def test_a_sentence_has_no_candidates_of_another():
    candidates, of_each = LISTED.of_batch([[10, 3], [11, 10], [12]], opening=[5])
    always = [*range(len(SPECIAL)), 4, 5, 6]
    assert candidates.tolist() == [*always, 7, 8, 9]
    assert [candidates[row].tolist() for row in of_each] == [[*always, 7], [*always, 7, 8, 9], always]


def test_candidates_that_no_source_changes_are_those_of_all():
    candidates, of_each = Shortlist([4, 6], {}).of_batch([[10], [11]])
    assert (candidates.tolist(), of_each) == ([*range(len(SPECIAL)), 4, 6], None)


def test_special_pieces_and_pieces_with_white_space_are_not_listed():
    assert listed([1, 3, 4, 5, 6], ["<pad>", "<s>", "</s>", "<unk>", "a", "b\tc", "▁d"]) == "a ▁d"
