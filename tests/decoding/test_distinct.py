"""N-best lists without repeated texts."""

import pytest

from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, distinct_texts


def listed(*pairs):
    """Return hypotheses with these texts and scores; the text of tokens [n, ..] is the letter n."""
    return [Hypothesis(["abcdefghij".index(text), i], score, score) for i, (text, score) in enumerate(pairs)]


def letter(number, hypothesis):
    return "abcdefghij"[hypothesis.tokens[0]]


def letters(hypotheses):
    return "".join(letter(0, hypothesis) for hypothesis in hypotheses)


OPTIONS = DecodingOptions(beam=3, nbest=3)


def test_a_wider_search_fills_what_was_dropped_and_the_best_stays():
    requests = []

    def search(numbers, options):
        requests.append((numbers, options.beam, options.nbest))
        # A wider beam also finds a better text; the best text of the requested beam stays first.
        return [listed(("j", -0.5), ("a", -1), ("c", -1.5), ("a", -2), ("d", -3), ("b", -4))] * len(numbers)

    first = [listed(("a", -1), ("a", -2), ("b", -3)), listed(("a", -1), ("b", -2), ("c", -3))]
    nbest_lists = distinct_texts(first, OPTIONS, letter, search)
    assert list(map(letters, nbest_lists)) == ["acb", "abc"]
    assert [hypothesis.score for hypothesis in nbest_lists[0]] == [-1, -1.5, -3]
    assert requests == [([0], 6, 6)]


def test_it_goes_on_while_there_is_more_and_no_longer():
    requests = []

    def search(numbers, options):
        requests.append(options.beam)
        return [listed(*[("a", -1)] * (options.beam if options.beam < 12 else 5))]

    (hypotheses,) = distinct_texts([listed(*[("a", -1)] * 3)], OPTIONS, letter, search)
    assert len(hypotheses) == 1
    assert requests == [6, 12]


@pytest.mark.parametrize(
    ("first", "options"),
    [
        (listed(("a", -1)), OPTIONS),  # the search has found all outputs
        (listed(("a", -1), ("a", -2), ("b", -3)), OPTIONS.model_copy(update={"sample": True})),
        (listed(("a", -1)), DecodingOptions(beam=3)),
    ],
)
def test_no_search_is_made_again(first, options):
    (hypotheses,) = distinct_texts([first], options, letter, None)
    assert len(set(letters(hypotheses))) == len(hypotheses)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_alternatives_are_distinct_and_as_many_as_asked_for(small_run, engine, monkeypatch):
    translator = Translator.load(small_run, engine=engine)
    tokenizer, decode = translator.tokenizer, translator.tokenizer.decode
    # Texts stop after two tokens, so that most n-best lists contain duplicates.
    monkeypatch.setattr(tokenizer, "decode", lambda ids: decode(ids[:2]))
    sources = [pair.source for pair in generate(3, split="test", max_words=5)]
    sources.append(" ".join(sources[:2]))  # for several sentences, combinations are ranked
    limits = {"max_length_ratio": 0.0, "max_length_extra": 6}
    best_texts = [hypothesis.text for hypothesis in translator.stream(sources, DecodingOptions(beam=4, **limits))]
    for translation, expected in zip(
        translator.stream(sources, DecodingOptions(beam=4, nbest=3, **limits)), best_texts, strict=True
    ):
        assert len(set(translation.alternatives)) == 3
        assert translation.text == expected
        assert [hypothesis.score for hypothesis in translation.nbest] == sorted(
            (hypothesis.score for hypothesis in translation.nbest), reverse=True
        )
