"""Labels guessed for texts that have none: against NumPy, and against texts whose labels are known."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from translucid.data.filtering import draw
from translucid.data.guessing import LabelGuesser, Right
from translucid.data.readers.corpus import Pair
from translucid.ground.errors import UserError

GOOD, BAD = ("good", "fine", "lovely", "bright", "warm"), ("bad", "awful", "dull", "grey", "cold")
REST = ["the", "film", "of", "a", "man", "who", "was", "in", "it", "and", "so", "on", "with", "some"]


def text(words, chance, *more):
    parts = [*more, *chance.choices(words, k=3), *chance.choices(REST, k=6)]
    chance.shuffle(parts)
    return " ".join(parts)


@pytest.fixture(scope="module")
def texts():
    """Of both kinds; even places are good."""
    chance = random.Random(1)
    return [text((GOOD, BAD)[place % 2], chance) for place in range(600)]


@pytest.fixture(scope="module")
def labelled():
    """Texts with no word about what they are but the first one of each kind."""
    chance = random.Random(2)
    return [Pair(text(((GOOD, BAD)[place % 2])[:1], chance), ("pos", "neg")[place % 2]) for place in range(20)]


def test_words_that_no_labelled_text_has_are_known_by_their_company(labelled, texts):
    guesser = LabelGuesser.learn(labelled, texts, share=1.0, dimensions=4)
    found = guesser.guess(["lovely warm film", "dull cold film", "bright lovely man", "awful grey man"])
    assert [guess.label for guess in found] == ["pos", "neg", "pos", "neg"]
    assert guesser.labels == ["neg", "pos"]
    assert guesser.right == Right(1.0, 1.0, 20)


def test_directions_are_those_of_numpy(labelled, texts):
    some = texts[:120]
    space = LabelGuesser.learn(labelled, some, dimensions=2).space
    words = space[0].get_feature_names_out()
    tokens = [one.split() for one in some]
    counts = np.array([Counter([*one, *map(" ".join, pairwise(one))]) for one in tokens])
    x = np.array([[1 + np.log(of[word]) if of[word] else 0.0 for word in words] for of in counts])
    x *= 1 + np.log((1 + len(some)) / (1 + (x > 0).sum(0)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    z = x @ np.linalg.svd(x, full_matrices=False)[2][:2].T
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    found = space.transform(some)
    assert abs(z @ z.T - found @ found.T).max() < 0.02  # each axis may point either way; the decomposition is drawn


def test_the_surest_share_counts(labelled, texts):
    everything = LabelGuesser.learn(labelled, texts, share=1.0, dimensions=4).guess(texts)
    surest = LabelGuesser.learn(labelled, texts, share=0.25, dimensions=4).guess(texts)
    for label in ("pos", "neg"):
        sure = [guess.probability for guess in everything if guess.label == label]
        kept = [guess.probability for guess in surest if guess and guess.label == label]
        assert len(kept) == pytest.approx(len(sure) / 4, abs=2)
        assert kept and sorted(kept) == sorted(sure)[-len(kept) :]


def test_a_label_that_is_wrong_is_guessed_by_the_others(labelled, texts):
    wrong = [labelled[0]._replace(target="neg"), *labelled[1:]]
    assert LabelGuesser.learn(wrong, texts, share=1.0, dimensions=4).right.all == pytest.approx(0.95)


def test_of_any_number_of_texts_each_has_the_same_chance():
    counts = Counter(one for seed in range(600) for one in draw(map(str, range(12)), 4, seed))
    assert len(counts) == 12 and all(150 < count < 250 for count in counts.values())
    assert draw(iter("ab"), 4, 1) == ["a", "b"]


@pytest.mark.parametrize(
    ("labelled", "texts", "what"),
    [
        ([Pair("a b", "x"), Pair("b c", "x")], ["a b"], "no two labels"),
        ([], ["a b"], "no two labels"),
        ([Pair("a b", "x"), Pair("b c", "x"), Pair("c", "y")], ["a b"], "'y' stands at one text only"),
        ([Pair(one, label) for one in "ab" for label in "xy"], ["a b"] * 60, "too few texts"),
        ([Pair(one, label) for one in "ab" for label in "xy"], [], "too few texts"),
    ],
)
def test_what_cannot_be_learned_from_is_told(labelled, texts, what):
    with pytest.raises(UserError, match=what):
        LabelGuesser.learn(labelled, texts)
