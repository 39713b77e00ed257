"""Statistics of a corpus."""

from collections import Counter
from hashlib import blake2b

from bitext.pair import Pair
from translucid.data.filtering import Filter
from translucid.data.statistics import Overlap, SideStatistics, SplitStatistics, digest, digest_pair, script

TRAIN = [Pair("a b c", "x"), Pair("a b c", "x"), Pair("a b c", "y z"), Pair("", "x"), Pair("d", "w " * 9)]


def read(pairs):
    split = SplitStatistics("train")
    assert sum(split.read(pairs, Filter())) == len(pairs)
    return split


def test_sizes_and_duplicates():
    split = read(TRAIN)
    assert (split.pairs, split.duplicate_pairs, split.duplicate_sources) == (5, 1, 2)
    assert split.faults == Counter(empty=1)
    summary = split.summary()
    assert summary["source"]["words"] == 10
    assert summary["source"]["distinct_words"] == 4
    assert summary["source"]["mean_words"] == 2
    assert summary["target"]["p100_words"] == 9


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


def test_all_figures_of_a_split():
    lines = ["Ein Würfel", "пять слов на русском языке", "fünf m² und …", *["² …  ²"] * 5, "a\x07 \ue000 b\x07", ""]
    pairs = [Pair(line, "x " * number) for number, line in enumerate(lines)]
    summary = read(pairs).summary()
    assert summary == {
        "pairs": 10,
        "documents": 0,
        "duplicate_pairs": 0,
        "duplicate_sources": 4,
        "skipped": {"empty": 2},
        "source": {
            "words": 2 + 5 + 4 + 5 * 3 + 3,
            "characters": 10 + 26 + 13 + 5 * 6 + 7,
            "distinct_words": 2 + 5 + 4 + 1 + 3,
            "mean_words": 2.9,
            "median_words": 3,
            "p95_words": 5,
            "p99_words": 5,
            "p100_words": 5,
            "unexpected": [
                {"script": "LATIN", "count": 19, "characters": "nfüEiWrelm", "first_line": 1},
                {"script": "control", "count": 2, "characters": "\x07", "first_line": 9},
                {"script": "private", "count": 1, "characters": "\ue000", "first_line": 9},
            ],
            "normalization_changes": {"…": 6},
            "normalization_leaves_alone": {"²": 11},
        },
        "target": summary["target"],
    }
    assert summary["target"]["mean_words"] == 4.5 and summary["target"]["median_words"] == 4
    assert read([Pair("a b c", "x")]).summary()["source"]["mean_words"] == 3
    assert SplitStatistics("none").summary()["source"]["mean_words"] == 0


def test_percentiles_of_nothing_and_at_the_limits():
    assert SideStatistics().percentile(0.5) == 0
    side = SideStatistics(lengths=Counter({7: 1, 2: 1}))
    assert [side.percentile(share) for share in (0.5, 0.51, 1.0)] == [2, 7, 7]


def test_hashes_of_texts():
    expected = blake2b("é ?".encode(), digest_size=8).digest()
    assert digest(" é \ud800 ").to_bytes(8, "big") == expected
    assert digest("é\u00a0\u00a0?") == digest("e\u0301 ?") != digest("é?")
    assert digest_pair(Pair(" a  c", "b ")) == digest_pair(Pair("a c", "b")) != digest_pair(Pair("b", "a c"))
    assert digest_pair(Pair("a", "c b")) != digest_pair(Pair("a c", "b"))


def test_scripts_of_letters_alone():
    assert [script(letter) for letter in "ªaー々ʰ\u0378\udc00٣"] == [
        *(None, "LATIN", "KATAKANA", "IDEOGRAPHIC"),
        *("MODIFIER", "private", "private", None),
    ]


def test_three_examples_of_an_overlap_are_listed():
    train = read([Pair("a", "x"), Pair("b", "y")])
    test = [Pair("new", "y"), *[Pair("a", "z")] * 4, Pair("b", "x")]
    assert Overlap.find("test", test, train).to_json() == {
        "split": "test",
        "pairs": 0,
        "sources": 5,
        "targets": 2,
        "examples": [(2, "a"), (3, "a"), (4, "a")],
    }
