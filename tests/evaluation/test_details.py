"""Limits, bins and order of scores, checked by hand."""

import math
import random

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from translucid.evaluation.alignment_error import read_gold, spread, to_pharaoh
from translucid.evaluation.breakdown import FREQUENCIES, LENGTHS, by_frequency, by_length, frequencies, interval_names
from translucid.evaluation.comparing import compare
from translucid.evaluation.confidence import Measurements, bins, detached, feature_matrix, lift
from translucid.evaluation.metrics import pairwise_chrf
from translucid.evaluation.quality_checks import QualityChecks, _alike, _is_copy, restarted
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.language.text_classifier import calibration_error, classification_scores


def test_the_intervals_of_lengths_and_frequencies():
    assert interval_names(LENGTHS) == ["1-5", "6-10", "11-15", "16-20", "21-30", "31-40", "41-60", "61+"]
    assert interval_names(FREQUENCIES) == ["0", "1", "2", "3", "4", "5-9", "10-99", "100-999", "1000+"]


def test_every_length_is_in_its_interval():
    lengths = [1, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 40, 41, 60, 61, 500]
    rows = by_length(["w " * length for length in lengths], ["a b"] * 16, [["a b c d"] * 16])
    assert [(row.words, row.sentences, row.length_ratio) for row in rows] == [
        (name, 2, 0.5) for name in interval_names(LENGTHS)
    ]
    assert by_length([""], ["a"], [["a"]]) == [], "a source without words is in no interval"


def test_every_frequency_is_in_its_interval():
    counts = {str(count): count for count in (1, 2, 3, 4, 5, 9, 10, 99, 100, 999, 1000, 5000)}
    text = " ".join([*counts, "new"])
    rows = by_frequency([text], [text], counts, str.split)
    assert [(row.times, row.words, row.written, row.right, row.f1) for row in rows] == [
        (name, words, words, words, 100)
        for name, words in zip(interval_names(FREQUENCIES), [1, 1, 1, 1, 1, 2, 2, 2, 2], strict=True)
    ]
    assert frequencies(["a b a", "b c"], str.split) == {"a": 2, "b": 2, "c": 1}


def test_links_of_groups_are_spread_over_their_words():
    links = [(0, 1, 1.0), (1, 0, 0.5)]
    assert spread(links, [[2, 1], [1, 2]]) == [
        (0, 1, 0.5),
        (0, 2, 0.5),
        (1, 1, 0.5),
        (1, 2, 0.5),
        (2, 0, 0.5),
    ]
    assert to_pharaoh([(0, 0), (1, 2)]) == "0-0 1-2"


def test_the_first_wrong_link_of_a_line_is_named(tmp_path):
    from bitext.pair import Pair

    (tmp_path / "a.txt").write_text("0-0 2-0 0-3 1-2\n")
    with pytest.raises(UserError, match="links 0-3, but the pair has 2 and 3 words"):
        read_gold(tmp_path / "a.txt", [Pair("a b", "x y z")])


def test_chrf_of_all_pairs_is_that_of_sacrebleu_for_texts_of_any_length():
    rng, metric = random.Random(1), CHRF()
    texts = ["", "a", "ab", "aaaa aaaa", "b a"]
    texts += ["".join(rng.choices("ab ", k=rng.randint(1, 12))) for _ in range(12)]
    matrix = pairwise_chrf(texts)
    for i, text in enumerate(texts):
        for j, reference in enumerate(texts):
            expected = metric.sentence_score(text, [reference]).score
            assert matrix[i, j] == pytest.approx(expected, abs=1e-6), (text, reference)


def test_calibration_has_fifteen_bins_whose_upper_edges_belong_to_them():
    """1/15 is in the first bin and slightly more in the second, so their errors can't cancel."""
    edge = 1 / 15
    assert calibration_error(np.array([edge, edge]), np.array([False, True])) == pytest.approx(0.5 - edge)
    around = np.array([edge - 1e-6, edge + 1e-6])
    assert calibration_error(around, np.array([False, True])) == pytest.approx((edge + 1 - edge) / 2, abs=1e-5)
    assert calibration_error(np.array([0.0, 1.0]), np.array([True, False])) == 1
    scores = classification_scores(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]), ["a", "b"])
    assert scores.cross_entropy == pytest.approx(30 * math.log(10) / 2), "a probability of 0 counts as 1e-30"


def test_a_comparison_shows_three_gains_and_three_losses_the_largest_first():
    references = ["abcdef ghijkl mnopqr"] * 10
    broken = [reference[: 20 - 2 * i] for i, reference in enumerate(references)]
    best, worst = [references[0]] * 10, broken
    a, b = [*best[:5], *worst[5:9], "same"], [*worst[:5], *best[5:9], "same"]
    comparison = compare(["s"] * 10, [("a", a), ("b", b)], [references], {}, str.split, significance=False)
    assert [sentence.number for sentence in comparison.apart] == [9, 8, 7, 5, 4, 3]
    assert (comparison.equal, comparison.sentences) == (2, 10)
    swapped = ["ab", "ba"]
    equal = compare(
        ["s"] * 2, [("a", swapped), ("b", swapped[::-1])], [["xy", "xy"]], {}, str.split, significance=False
    )
    assert equal.apart == [], "neither is better"


def test_attention_is_summed_over_target_tokens_and_counts_from_a_fifth():
    attention = np.array([[0.2, 0.1, 0.1, 0.5, 0.1], [0.2, 0.1, 0.0, 0.6, 0.1], [0.2] * 5])
    measurements = Measurements("a b c", "x y", 3, -1.0, attention=attention, opening=1)
    # 0.2 of the first word counts, 0.1 of the second does not, 1.1 of the third does.
    assert feature_matrix([measurements], ["coverage", "elsewhere"]).tolist() == [
        [pytest.approx(2 / 3), pytest.approx(0.3)]
    ]


def test_the_usual_entropy_of_attention_is_the_line_through_all_and_the_limit_is_rare():
    """Uniform attention over S tokens has the entropy log S: offset 0, slope 1, and no deviation."""
    uniform = [
        Measurements("a", "b", 2, -1.0, attention=np.full((2, length), 1 / length)) for length in (2, 3, 5, 8, 13)
    ]
    fitted = detached([*uniform, Measurements("a", "b", 1, -1.0)])
    assert (fitted.offset, fitted.slope, fitted.limit) == pytest.approx((0, 1, 0), abs=1e-9)
    # The limit is the 99.5 % quantile: 4 outliers of 1004 do not raise it, 6 of 1006 do.
    peaked = [Measurements("a", "b", 2, -1.0, attention=np.array([[1.0, 0.0], [1.0, 0.0]]))] * 1000
    spread_out = Measurements("a", "b", 2, -1.0, attention=np.full((2, 2), 0.5))
    assert detached([*peaked, *[spread_out] * 4]).limit < 0.01 < detached([*peaked, *[spread_out] * 6]).limit


def test_bins_are_of_similar_size_and_the_least_confident_come_first():
    confidence = np.array([0.9, 0.1, 0.5, 0.3, 0.7])
    good = np.array([True, False, True, False, False])
    rows = [(interval.mean_confidence, interval.share_good, interval.count) for interval in bins(confidence, good, 2)]
    assert rows == [(pytest.approx(0.3), pytest.approx(1 / 3), 3), (pytest.approx(0.8), 0.5, 2)]
    assert len(bins(np.linspace(0, 1, 100), np.ones(100, bool))) == 10
    assert lift(np.array([0.1, 0.2]), np.array([True, False])) == 2, "the fifth has one translation or more"
    assert lift(np.array([0.1, 0.2]), np.array([False, False])) == 0


ALPHABET = " ".join(["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        # A word of more than three letters is repeated within four words and followed by a similar word.
        ("word", "solo cas solo casa", "solo cas solo casa"),
        ("word", "solo cas x y solo casa", "solo cas x y solo casa"),
        ("word", "solo cas x y z solo casa", None),
        ("word", "sol cas sol casa", None),
        ("word", "solo cas solo cbsa", None),
        ("word", "solo cas solo cas", "solo cas solo cas"),
        # A sequence of two to eight words is repeated immediately.
        ("word", f"{ALPHABET[:23]} {ALPHABET[:23]}", f"{ALPHABET[:23]} {ALPHABET[:23]}"),
        ("word", f"{ALPHABET} {ALPHABET}", None),
        ("word", "x ab cd Ab CD", "ab cd Ab CD"),
        ("word", "ab ab", None),
        # If a source repeats a word of two letters or more, its translation may do so.
        ("word word", "solo cas solo casa", None),
        ("a a", "solo cas solo casa", "solo cas solo casa"),
        # A name is preceded by a prefix of itself.
        ("See Acmes", "Vea Acm Acmes", "Acm"),
        ("See Acmes", "Vea Ac Acmes", None),
        ("See Acmes, Acm", "Vea Acm Acmes", None),
        ("See acmes", "Vea acm acmes", None),
        ("See it", "Vea Acm Acmes", None),
    ],
)
def test_a_translation_that_begins_again_by_hand(source, target, expected):
    assert restarted(source, target) == expected


def test_words_are_alike_by_two_letters_or_by_one_if_a_word_has_no_more():
    pairs = [("abc", "abd"), ("abc", "acd"), ("a", "ab"), ("ab", "a"), ("ab", "ab"), ("", "a"), ("a", "")]
    assert [_alike(*pair) for pair in pairs] == [True, False, True, True, False, False, False]


def test_a_copy_is_of_words_of_two_letters_or_more():
    assert _is_copy("ab cd ef gh", "ab cd ef gh")
    assert not _is_copy("ab cd ef g", "ab cd ef g")


class Capitals:
    """A vocabulary without A, b and %, but with a and B."""

    source_opening = target_opening = ()
    source_size = 4

    def encode_source(self, texts):
        return [list(map(self._id, text)) for text in texts]

    def _id(self, letter):
        return SPECIAL.unknown if letter in "Ab%" else 9

    def source_pieces(self, ids):
        return ["ab"] * len(ids)


def test_characters_that_only_the_other_case_of_is_known_are_a_matter_of_capitals():
    checks = QualityChecks(Capitals(), "en", "es")
    assert checks.about("A b % cd", [9, 1], "x y", [9, 9], 0.0) == [
        "capitals: the model has never seen A",
        "lower case: the model has never seen b",
        "unknown characters: %",
    ]
    assert checks.about("cd", [9], "x", [9], 0.0) == []
