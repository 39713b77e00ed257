"""The table of official test sets: which pairs are unseen, and its published scores."""

from benchmarks.official_tests import SYSTEMS, TESTS, unseen
from bitext.pair import Pair
from translucid.data.seen_sentences import SeenSentences, SeenSentencesBuilder, hashes_of


def test_a_pair_is_unseen_if_neither_side_is_in_the_training_text(tmp_path):
    builder = SeenSentencesBuilder()
    builder.add(hashes_of(["It  rains.", ""]), hashes_of(["Llueve.", "Nieva."]))
    builder.write(tmp_path, "text")
    index = SeenSentences.of_runs([tmp_path])
    pairs = [
        Pair("it rains.", "Está lloviendo."),
        Pair("Rain!", "LLUEVE."),
        Pair("It snows.", "Nieva."),
        Pair("a", "b"),
    ]
    assert unseen(pairs, index) == [False, False, False, True]


def test_published_scores_have_a_column_each_and_the_last_one_is_the_best():
    for test in TESTS.values():
        assert len(test.published) == len(SYSTEMS)
        assert test.published[-1] == max(score for score in test.published if score is not None)
