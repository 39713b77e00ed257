"""N-best lists without repeated texts."""

import pytest

from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, distinct_texts


def listed(*scored):
    """Hypotheses of texts and scores; the text of tokens [n, ..] is the letter n."""
    return [Hypothesis(["abcdefghij".index(text), i], score, score) for i, (text, score) in enumerate(scored)]


def letter(number, hypothesis):
    return "abcdefghij"[hypothesis.tokens[0]]


OPTIONS = DecodingOptions(beam=3, nbest=3)


def test_a_wider_search_fills_what_was_dropped_and_the_best_stays():
    asked = []

    def search(numbers, wider):
        asked.append((numbers, wider.beam, wider.nbest))
        # A wider beam finds something better too; the best of the beam that was asked for stays the best.
        return [listed(("j", -0.5), ("a", -1), ("c", -1.5), ("a", -2), ("d", -3), ("b", -4))] * len(numbers)

    first = [listed(("a", -1), ("a", -2), ("b", -3)), listed(("a", -1), ("b", -2), ("c", -3))]
    found = distinct_texts(first, OPTIONS, letter, search)
    assert [[letter(0, one) for one in each] for each in found] == [["a", "c", "b"], ["a", "b", "c"]]
    assert [one.score for one in found[0]] == [-1, -1.5, -3]
    assert asked == [([0], 6, 6)]


def test_it_goes_on_while_there_is_more_and_no_longer():
    asked = []

    def search(numbers, wider):
        asked.append(wider.beam)
        return [listed(*[("a", -1)] * (wider.beam if wider.beam < 12 else 5))]

    (found,) = distinct_texts([listed(*[("a", -1)] * 3)], OPTIONS, letter, search)
    assert len(found) == 1
    assert asked == [6, 12]


@pytest.mark.parametrize(
    ("first", "options"),
    [
        (listed(("a", -1)), OPTIONS),  # the search has found all that there is
        (listed(("a", -1), ("a", -2), ("b", -3)), OPTIONS.model_copy(update={"sample": True})),
        (listed(("a", -1)), DecodingOptions(beam=3)),
    ],
)
def test_no_search_is_made_again(first, options):
    (found,) = distinct_texts([first], options, letter, None)
    assert len({letter(0, one) for one in found}) == len(found)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_alternatives_are_distinct_and_as_many_as_asked_for(small_run, engine, monkeypatch):
    translator = Translator.load(small_run, engine=engine)
    tokenizer, plain = translator.tokenizer, translator.tokenizer.decode
    # What comes after two tokens is not spelled, so that most lists have texts twice.
    monkeypatch.setattr(tokenizer, "decode", lambda ids: plain(ids[:2]))
    sources = [pair.source for pair in generate(3, split="test", max_words=5)]
    sources.append(" ".join(sources[:2]))  # of several sentences, combinations are ranked
    limits = {"max_length_ratio": 0.0, "max_length_extra": 6}
    best = [one.text for one in translator.stream(sources, DecodingOptions(beam=4, **limits))]
    for found, first in zip(translator.stream(sources, DecodingOptions(beam=4, nbest=3, **limits)), best, strict=True):
        assert len(set(found.alternatives)) == 3
        assert found.text == first
        assert [one.score for one in found.nbest] == sorted((one.score for one in found.nbest), reverse=True)
