"""The phrasebook: distinct pairs of a split and a length, the same for the same arguments."""

from itertools import islice
from random import Random

import pytest

from translucid.corpora.phrasebook import Phrase, generate, split_of
from translucid.corpora.phrasebook.generation import draw, normalise
from translucid.ground.errors import UserError

BOOK = {"i like soccer": "me gusta el fútbol"} | {
    "i like soccer and also going to the beach": "me gusta el fútbol y también ir a la playa"
}


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Phrase]]:
    return {
        "train": list(generate(3_000, split="train")),
        "valid": list(generate(600, split="valid")),
        "test": list(generate(600, split="test")),
    }


def test_the_same_arguments_give_the_same_sentences():
    assert list(generate(50, seed=3)) == list(generate(50, seed=3))
    assert list(generate(50, seed=3)) != list(generate(50, seed=4))
    assert list(generate(50, seed=3)) == list(islice(generate(500, seed=3), 50))


def test_sentences_are_distinct_and_as_many_as_asked(splits):
    assert [len(phrases) for phrases in splits.values()] == [3_000, 600, 600]
    for phrases in splits.values():
        assert len({normalise(phrase.source) for phrase in phrases}) == len(phrases)
    assert list(generate(0)) == []


def normalised(phrases: list[Phrase], side: int) -> set[str]:
    """Return the normalised sentences of a side: 0 is the source, 1 the target."""
    return {normalise(phrase[side]) for phrase in phrases}


def test_no_split_knows_a_sentence_of_another_on_either_side(splits):
    for side in (0, 1):
        train, valid, test = (normalised(phrases, side) for phrases in splits.values())
        assert not train & valid and not train & test and not valid & test


def test_an_english_sentence_has_one_translation(splits):
    known: dict[str, str] = {}
    for phrase in (phrase for phrases in splits.values() for phrase in phrases):
        target = normalise(phrase.target)
        assert known.setdefault(normalise(phrase.source), target) == target


def test_the_sentences_of_the_book_belong_to_test(splits):
    for target in BOOK.values():
        for variant in (target, target.capitalize() + ".", f"¿{target.capitalize()}?", target.upper()):
            assert split_of(variant) == "test"
    assert not BOOK.keys() & {normalise(phrase.source) for phrase in splits["train"] + splits["valid"]}
    assert not set(BOOK.values()) & {normalise(phrase.target) for phrase in splits["train"] + splits["valid"]}


def test_the_parts_of_the_book_are_common_in_train(splits):
    sources = [normalise(phrase.source) for phrase in splits["train"]]
    for part in ("soccer", "to the beach", "and also going to the", "i like", "like soccer"):
        assert sum(part in source for source in sources) >= 3, part


def test_the_book_can_be_drawn():
    test = {normalise(phrase.source): normalise(phrase.target) for phrase in generate(250, split="test", max_words=4)}
    assert set(test.values()) & set(BOOK.values())


@pytest.mark.parametrize(("low", "high", "count"), [(2, 3, 50), (2, 60, 300), (9, 11, 50), (20, 30, 50), (50, 60, 10)])
@pytest.mark.parametrize("split", ["train", "test"])
def test_both_sides_keep_to_the_range(low, high, count, split):
    phrases = list(generate(count, split=split, min_words=low, max_words=high))
    assert len(phrases) == count
    assert all(low <= len(text.split()) <= high for phrase in phrases for text in phrase[:2])


def test_most_sentences_are_of_natural_length_and_some_are_long(splits):
    lengths = sorted(len(phrase.source.split()) for phrase in splits["train"])
    assert 5 <= lengths[len(lengths) // 2] <= 9
    assert 0.02 < sum(length > 20 for length in lengths) / len(lengths) < 0.1


def test_a_fair_share_goes_without_final_punctuation(splits):
    for side in (0, 1):
        bare = sum(phrase[side][-1] not in ".?!" for phrase in splits["train"])
        assert 0.1 < bare / len(splits["train"]) < 0.25


@pytest.mark.parametrize(("low", "high"), [(0, 5), (7, 6), (2, 61), (-1, 1), (61, 70)])
def test_a_range_that_cannot_be_is_refused_at_once(low, high):
    with pytest.raises(UserError, match="2 to 60"):
        generate(1, min_words=low, max_words=high)


def test_an_unknown_split_is_refused_at_once():
    with pytest.raises(UserError, match="train, valid, test"):
        generate(1, split="dev")  # type: ignore[arg-type]


def test_a_range_with_too_few_sentences_says_how_many_there_are(monkeypatch):
    monkeypatch.setattr("translucid.corpora.splits.PATIENCE", 500)
    with pytest.raises(UserError, match=r"only \d+ of 100000 test sentences of 2 to 2 words"):
        list(generate(100_000, split="test", max_words=2))


def test_far_more_than_a_hundred_thousand_sentences_can_be_drawn():
    """Capture and recapture: n draws from N sentences repeat n^2 / 2N times, or more often if some are likelier."""
    rng = Random("reach")
    draws = (draw(rng, 5, 60) for _ in range(6_000))
    sources = [phrase.source for phrase in draws if phrase]
    repeats = len(sources) - len(set(sources))
    assert len(sources) ** 2 / (2 * max(repeats, 1)) > 300_000
