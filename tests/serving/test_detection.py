"""Language detection from the probabilities of all languages."""

import pytest

from translucid.serving import texts
from translucid.serving.texts import detect, detect_sources


@pytest.fixture
def set_probabilities(monkeypatch):
    """Return a function that sets an identifier's probabilities for any text: set_probabilities(en=0.6, es=0.2)."""

    def set_probabilities_of_all(**probabilities):
        monkeypatch.setattr(texts, "language_probabilities", lambda text: probabilities)

    return set_probabilities_of_all


def test_percentages_are_shares_of_the_languages_that_come_into_question(set_probabilities):
    set_probabilities(en=0.15, es=0.45, fr=0.4)
    assert detect("a text", ["en", "es"]) == [("es", pytest.approx(75)), ("en", pytest.approx(25))]
    assert detect("a text", ["es"]) == [("es", pytest.approx(100))]
    assert detect("a text", ["es-MX", "en-GB"]) == [("es-MX", pytest.approx(75)), ("en-GB", pytest.approx(25))]
    assert detect("a text", ["eo", "ht"]) == [("eo", 0), ("ht", 0)]


def test_a_text_without_letters_is_in_no_language(set_probabilities):
    set_probabilities(en=1.0)
    assert detect("12 – 3", ["en", "es"]) == [("en", 0), ("es", 0)]
    assert detect_sources(["12 – 3"], ["es", "en"]) == [("es", 0)]


def test_a_text_in_a_language_that_is_not_served_is_in_the_first_one_with_no_percent(set_probabilities):
    set_probabilities(fr=0.5, es=0.4, en=0.1)
    assert detect_sources(["un texte assez long"], ["en", "es"]) == [("en", 0)]
    set_probabilities(fr=0.45, es=0.44, en=0.11)  # it is not certain enough that the text is in another language
    assert detect_sources(["un texte assez long"], ["en", "es"]) == [("es", pytest.approx(80))]


@pytest.mark.parametrize(
    ("text", "share", "expected"),
    [
        ("once letras", 0.89, ("en", 0)),  # ten letters
        ("doce letras x", 0.89, ("en", 0)),  # eleven
        ("doce letras xy", 0.89, ("es", 89)),
        ("once letras", 0.9, ("es", 90)),
        ("12 once letras", 0.89, ("en", 0)),
    ],
)
def test_a_short_text_is_in_a_language_only_if_that_is_nearly_sure(set_probabilities, text, share, expected):
    set_probabilities(es=share, en=1 - share)
    ((code, percent),) = detect_sources([text], ["en", "es"])
    assert (code, percent) == (expected[0], pytest.approx(expected[1]))


def test_the_beginning_of_a_long_text_is_enough(monkeypatch):
    calls = []
    monkeypatch.setattr(texts, "language_probabilities", lambda text: calls.append(text) or {"en": 0.25, "es": 0.25})
    assert detect("1" * 1999 + "ab", ["es", "en"]) == [("es", 50), ("en", 50)]
    assert calls == ["1" * 1999 + "a"]
    assert detect("a", []) == [] and detect("a", ["en-GB", "en-US"]) == [("en-GB", 100), ("en-US", 100)]


def test_each_text_has_a_language_of_its_own(monkeypatch):
    probabilities = {"Good morning everybody": {"en": 1.0}, "Buenos días a todos": {"es": 1.0}}
    monkeypatch.setattr(texts, "language_probabilities", probabilities.get)
    assert detect_sources([*probabilities], ["es", "en"]) == [("en", 100), ("es", 100)]
