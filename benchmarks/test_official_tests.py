"""The table of official test sets: which pairs are unseen, and its published scores."""

from benchmarks.official_tests import SYSTEMS, TESTS, training_text, unseen
from bitext.pair import Pair
from translucid.runs.data_options import DataOptions


def test_a_pair_is_unseen_if_neither_side_is_in_the_training_text(tmp_path):
    (tmp_path / "train.tsv").write_text("It  rains.\tLlueve.\n")
    (tmp_path / "mono.txt").write_text("Nieva.\n")
    text = training_text(DataOptions(train=[f"{tmp_path}/train.tsv"], target_text=[f"{tmp_path}/mono.txt"]))
    pairs = [
        Pair("it rains.", "Está lloviendo."),
        Pair("Rain!", "LLUEVE."),
        Pair("It snows.", "Nieva."),
        Pair("a", "b"),
    ]
    assert unseen(pairs, text) == [False, False, False, True]


def test_published_scores_have_a_column_each_and_the_last_one_is_the_best():
    for test in TESTS.values():
        assert len(test.published) == len(SYSTEMS)
        assert test.published[-1] == max(score for score in test.published if score is not None)
