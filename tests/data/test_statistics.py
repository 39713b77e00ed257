"""Counting what is in a corpus."""

from collections import Counter

from translucid.data.filtering import Filter
from translucid.data.readers.corpus import Pair
from translucid.data.statistics import Overlap, SideStatistics, SplitStatistics, script

TRAIN = [Pair("a b c", "x"), Pair("a b c", "x"), Pair("a b c", "y z"), Pair("", "x"), Pair("d", "w " * 9)]


def read(pairs):
    split = SplitStatistics("train")
    assert sum(split.read(pairs, Filter())) == len(pairs)
    return split


def test_sizes_and_duplicates():
    split = read(TRAIN)
    assert (split.pairs, split.duplicate_pairs, split.duplicate_sources) == (5, 1, 2)
    assert split.faults == Counter(empty=1)
    found = split.summary()
    assert found["source"]["words"] == 10
    assert found["source"]["distinct_words"] == 4
    assert found["source"]["mean_words"] == 2
    assert found["target"]["p100_words"] == 9


def test_white_space_around_either_side_makes_no_other_pair():
    train = read([Pair("a", "x"), Pair(" a ", "x"), Pair("a", " x "), Pair("b", "y ")])
    assert (train.duplicate_pairs, train.duplicate_sources) == (2, 2)
    assert Overlap.find("test", [Pair("a", "x  "), Pair("b ", "y")], train).pairs == 2


def test_percentiles_are_lengths_that_so_many_do_not_exceed():
    side = SideStatistics(lengths=Counter({1: 90, 5: 9, 40: 1}))
    assert [side.percentile(share) for share in (0.5, 0.9, 0.95, 0.99, 1.0)] == [1, 1, 5, 5, 40]


def test_overlap_finds_each_side():
    train = read(TRAIN)
    test = [Pair("a b c", "new"), Pair("new", "x"), Pair(" a b c ", "x"), Pair("q", "r")]
    overlap = Overlap.find("test", test, train)
    assert (overlap.pairs, overlap.sources, overlap.targets) == (1, 2, 2)
    assert overlap.examples == [(1, "a b c"), (3, " a b c ")]


def test_scripts():
    assert script("ñ") == script("Z") == "LATIN"
    assert script("ж") == "CYRILLIC"
    assert script("漢") == "CJK"
    assert script("\x07") == "control"
    assert script("\ue000") == "private"
    assert script("1") is script(" ") is script("¿") is script("º") is None


def test_characters_of_other_scripts_are_told_with_their_first_line():
    split = read([Pair("one", "uno"), Pair("twо", "dos"), Pair("three\x07", "tres")])  # the о is Cyrillic
    assert split.source.unexpected() == [("CYRILLIC", 1, "о", 2), ("control", 1, "\x07", 3)]
    assert split.target.unexpected() == []
