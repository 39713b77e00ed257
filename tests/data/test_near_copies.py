"""Near copies: distances in words, compared with dynamic programming over all pairs of sentences."""

from random import Random

from bitext.pair import Pair
from translucid.data import near_copies
from translucid.data.near_copies import FARTHEST, Overlap, words_of


def distance(first, second):
    """Return the Levenshtein distance."""
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, 1):
        new = [i]
        for j, other in enumerate(second, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (word != other)))
        row = new
    return row[-1]


def test_distances_are_those_of_all_pairs(monkeypatch):
    monkeypatch.setattr(near_copies, "_ENTRIES", 5000)  # several passes
    monkeypatch.setattr(near_copies, "_VARIANTS", 500)
    draw = Random(1)

    def sentence():
        return " ".join(draw.choices("abcd", k=draw.randrange(9)))

    train = [Pair(sentence(), sentence()) for _ in range(80)]
    test = [Pair(sentence(), sentence()) for _ in range(200)]
    overlap = Overlap.find(lambda: train, test)
    for index, side in enumerate((overlap.sources, overlap.targets)):
        seen = set()
        for pair, found, line in zip(test, side.distances.tolist(), side.lines.tolist(), strict=True):
            words = pair[index].split()
            distances = [distance(words, other[index].split()) for other in train if other[index]]
            nearest = min([FARTHEST + 1, *distances]) if words else FARTHEST + 1
            seen.add(nearest)
            assert found == nearest
            assert line == 0 if nearest > FARTHEST else distance(words, train[line - 1][index].split()) == nearest
        assert seen == {0, 1, 2, 3}


def test_case_spaces_and_punctuation():
    train = [Pair("Come in, Tom!", "¡Entra, Tom!"), Pair("I sing.", "Canto.")]
    test = [
        Pair("come in,  TOM!", "¡entra, Tom!"),
        Pair("Come in Tom", "Canto"),
        Pair("!?", ""),
        Pair("word " * 200, "我们唱歌"),
    ]
    overlap = Overlap.find(lambda: train, test)
    assert overlap.sources.equal.tolist() == [True, False, False, False]
    assert overlap.sources.distances.tolist() == [0, 0, 3, 3]
    assert overlap.targets.distances.tolist() == [0, 0, 3, 3]
    assert overlap.pairs.tolist() == [True, False, False, False]
    assert words_of("我们 sing") == ["我", "们", "sing"]
