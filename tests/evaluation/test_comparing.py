"""Comparisons of two systems, and scores by word frequency, with numbers that can be checked by hand."""

import pytest
from sacrebleu.metrics.chrf import CHRF

from translucid import UserError
from translucid.evaluation import comparing
from translucid.evaluation.breakdown import by_frequency, frequencies, split_words
from translucid.evaluation.comparing import compare
from translucid.evaluation.metrics import corpus_scores

REFERENCES = [
    f"la casa {word} es muy grande y bonita"
    for word in ("uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho")
] * 5
BAD = ["la casa es", *REFERENCES[1:]]
WORSE = [text.replace("grande", "pequeña") for text in REFERENCES]
WORSE[::3] = ["nada"] * 14  # every third of the 40
SOURCES = ["the house is very big"] * 20 + ["the house over there is very big and beautiful today"] * 20


def compared(a, b, **options):
    words = split_words()
    counts = frequencies(REFERENCES, words)
    return compare(SOURCES, [("a", a), ("b", b)], [REFERENCES], counts, words, **options)


def test_words_are_right_as_often_as_both_sides_have_them():
    counts = {"the": 12, "cat": 1, "sat": 3}
    rows = by_frequency(
        ["the the cat dog", "a cat"], ["the cat sat", "the dog saw the cat cat"], counts, str.split, (0, 1, 2, 10)
    )
    assert [(row.times, row.words, row.written, row.right) for row in rows] == [
        ("0", 2, 2, 0),  # dog and saw; dog, in another sentence, and a
        ("1", 3, 2, 2),
        ("2-9", 1, 0, 0),
        ("10+", 3, 2, 1),
    ]
    assert [row.f1 for row in rows] == pytest.approx([0, 100 * 2 * 1 * (2 / 3) / (1 + 2 / 3), 0, 40])


def test_words_are_cut_and_cased_as_bleu_has_it():
    assert split_words()("Hola, mundo.") == ["Hola", ",", "mundo", "."]
    assert split_words(tokenize="none", lowercase=True)("Hola, mundo.") == ["hola,", "mundo."]


def test_scores_are_those_of_the_metrics_and_a_clear_difference_is_no_chance():
    comparison = compared(WORSE, BAD)
    for row, a, b in zip(
        comparison.metrics, corpus_scores(WORSE, [REFERENCES]), corpus_scores(BAD, [REFERENCES]), strict=True
    ):
        assert (row.name, row.a, row.b) == (a.name, a.value, b.value)
        assert row.tested.bootstrap < 0.01
        assert row.tested.randomization < 0.01
        assert "bs:1000" in row.tested.signatures[0]
        assert "ar:10000" in row.tested.signatures[1]


def with_word(word, start):
    """Return the references with `word` for "grande" in every fourth of them from `start`."""
    texts = REFERENCES.copy()
    texts[start::4] = [text.replace("grande", word) for text in texts[start::4]]
    return texts


def test_differences_that_cancel_are_not_significant():
    a, b = with_word("ancha", start=0), with_word("larga", start=1)
    for row in compared(a, [*b[:39], "la casa"]).metrics:
        assert row.tested.randomization > 0.05
        assert row.tested.bootstrap > 0.05


def test_too_few_differences_are_not_tested():
    comparison = compared([*BAD[:5], *REFERENCES[5:]], REFERENCES)
    assert comparison.equal == 39
    assert [row.tested for row in comparison.metrics] == [None] * 4
    assert any("too few differ to test" in str(part) for part in comparison.render())
    assert [difference.number for difference in comparison.apart] == [1]


def test_sentences_that_differ_most_come_first():
    comparison = compared(WORSE, BAD, samples=2, significance=False)
    assert [row.tested for row in comparison.metrics] == [None] * 4
    better, worse = comparison.apart[:2], comparison.apart[2:]
    assert [difference.a for difference in better] == ["nada", "nada"]
    assert all(difference.chrf_b > difference.chrf_a for difference in better)
    assert all(difference.chrf_b < difference.chrf_a for difference in worse)
    difference = better[0]
    assert difference.chrf_b == CHRF().sentence_score(difference.b, [difference.reference]).score == 100
    assert [(a.words, a.sentences) for a, _ in comparison.by_length] == [("1-5", 20), ("6-10", 20)]


def test_too_many_sentences_are_not_tested(monkeypatch):
    monkeypatch.setattr(comparing, "MOST_TESTED", 39)
    with pytest.raises(UserError, match="`significance=False`"):
        compared(WORSE, BAD)
    assert compared(WORSE, BAD, significance=False).sentences == 40


def test_lengths_are_compared_by_chrf_where_bleu_is_0():
    """As in a glossary, whose targets are single words."""
    targets = [text.replace(" ", "") for text in REFERENCES]
    words = split_words()
    comparison = compare(
        REFERENCES, [("A", targets), ("B", targets)], [targets], frequencies(targets, words), words, significance=False
    )
    assert comparison.criterion == "chrF" == comparison.to_json()["criterion"]
