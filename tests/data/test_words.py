"""Words for term matching: their offsets, and the scripts that write no spaces."""

import pytest

from bitext.words import capitalized, find_sequence, folded, spaced, unspaced, words_in, words_without_signs


def test_words_and_signs_have_their_offsets():
    assert words_in(" Don't go, x_y 我爱Rust! ") == [
        ("Don", 1, 4),
        ("'", 4, 5),
        ("t", 5, 6),
        ("go", 7, 9),
        (",", 9, 10),
        ("x_y", 11, 14),
        ("我", 15, 16),
        ("爱", 16, 17),
        ("Rust", 17, 21),
        ("!", 21, 22),
    ]
    assert folded(words_without_signs("STRAẞE 7, go!")) == ["strasse", "7", "go"]


def test_letters_of_scripts_without_spaces_are_words():
    assert [word.text for word in words_in("ไป日ខកa\U00020000한글 b")] == [
        *("ไ", "ป", "日", "ខ", "ក"),
        *("a", "\U00020000", "한글", "b"),
    ]
    assert unspaced("to 日") and not unspaced("한글 to")
    assert spaced("I 我a") == "I  我 a"
    assert spaced("plain") == "plain"


def test_only_the_first_letter_becomes_a_capital():
    assert [capitalized(text) for text in ("élan vital", "ß", "")] == ["Élan vital", "SS", ""]


@pytest.mark.parametrize(
    ("part", "sequence", "expected"),
    [
        ("ab", "ababb", [0, 2]),
        ("aa", "aaaaa", [0, 2]),
        ("b", "abab", [1, 3]),
        ("ab", "xxab", [2]),
        ("abc", "abc", [0]),
        ("abcd", "abc", []),
        ("", "abc", []),
        ("a", "", []),
    ],
)
def test_a_sequence_of_words_is_found_without_overlaps(part, sequence, expected):
    assert find_sequence(part, list(sequence)) == expected
