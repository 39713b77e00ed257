"""Two systems side by side, and words by how rare they are, in numbers that fit on a napkin."""

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
WORSE = [text.replace("grande", "pequeña") if i % 3 else "nada" for i, text in enumerate(REFERENCES)]
SOURCES = ["the house is very big"] * 20 + ["the house over there is very big and beautiful today"] * 20


def compared(a, b, **more):
    words = split_words()
    counts = frequencies(REFERENCES, words)
    return compare(SOURCES, [("a", a), ("b", b)], [REFERENCES], counts, words, **more)


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
    found = compared(WORSE, BAD)
    for row, a, b in zip(
        found.metrics, corpus_scores(WORSE, [REFERENCES]), corpus_scores(BAD, [REFERENCES]), strict=True
    ):
        assert (row.name, row.a, row.b) == (a.name, a.value, b.value)
        assert row.tested.bootstrap < 0.01
        assert row.tested.randomisation < 0.01
        assert "bs:1000" in row.tested.signatures[0]
        assert "ar:10000" in row.tested.signatures[1]


def test_slips_that_even_out_may_be_chance():
    a = [text.replace("grande", "ancha") if i % 4 == 0 else text for i, text in enumerate(REFERENCES)]
    b = [text.replace("grande", "larga") if i % 4 == 1 else text for i, text in enumerate(REFERENCES)]
    for row in compared(a, [*b[:39], "la casa"]).metrics:
        assert row.tested.randomisation > 0.05
        assert row.tested.bootstrap > 0.05


def test_of_too_few_differences_nothing_is_said():
    found = compared([*BAD[:5], *REFERENCES[5:]], REFERENCES)
    assert found.equal == 39
    assert [row.tested for row in found.metrics] == [None] * 3
    assert any("too few differ to test" in str(part) for part in found.render())
    assert [one.number for one in found.apart] == [1]


def test_sentences_that_differ_most_come_first():
    found = compared(WORSE, BAD, samples=2, significance=False)
    assert [row.tested for row in found.metrics] == [None] * 3
    better, worse = found.apart[:2], found.apart[2:]
    assert [one.a for one in better] == ["nada", "nada"]
    assert all(one.chrf_b > one.chrf_a for one in better)
    assert all(one.chrf_b < one.chrf_a for one in worse)
    one = better[0]
    assert one.chrf_b == CHRF().sentence_score(one.b, [one.reference]).score == 100
    assert [(a.words, a.sentences) for a, _ in found.by_length] == [("1-5", 20), ("6-10", 20)]


def test_too_many_sentences_are_not_tested(monkeypatch):
    monkeypatch.setattr(comparing, "MOST_TESTED", 39)
    with pytest.raises(UserError, match="--no-significance"):
        compared(WORSE, BAD)
    assert compared(WORSE, BAD, significance=False).sentences == 40
