"""Scores equal sacreBLEU's; input checks are ours."""

import pytest
import sacrebleu

from translucid.evaluation.breakdown import by_length
from translucid.evaluation.metrics import bleu, corpus_scores, without_blank
from translucid.evaluation.report import evaluate
from translucid.ground.errors import UserError

HYPOTHESES = ["The cat sat on the mat.", "It is raining in London today."]
REFERENCES = ["The cat sat on a mat.", "It rains in London today."]
OTHER_REFERENCES = ["The cat sat on the mat.", "Today it is raining in London."]


def test_figures_are_those_of_sacrebleu():
    by_name = {score.name: score for score in corpus_scores(HYPOTHESES, [REFERENCES])}
    assert by_name["BLEU"].value == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert by_name["chrF"].value == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    words = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2)
    assert by_name["chrF++"].value == pytest.approx(words.score) and "nw:2" in by_name["chrF++"].signature
    assert by_name["TER"].value == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    assert by_name["BLEU"].signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")


def test_more_references_increase_the_scores():
    single, both = (
        corpus_scores(HYPOTHESES, [REFERENCES])[0],
        corpus_scores(HYPOTHESES, [REFERENCES, OTHER_REFERENCES])[0],
    )
    assert both.value > single.value
    assert "nrefs:2" in both.signature


def test_case_sensitivity_and_signature_of_all_three_metrics():
    uppercase = [text.upper() for text in HYPOTHESES]
    bleu, chrf, chrf_words, ter = cased = corpus_scores(uppercase, [HYPOTHESES])
    assert bleu.value < 5
    assert max(chrf.value, chrf_words.value) < 5
    assert ter.value == 100
    assert all("case:mixed" in score.signature for score in cased)
    bleu, chrf, chrf_words, ter = folded = corpus_scores(uppercase, [HYPOTHESES], lowercase=True)
    assert bleu.value == pytest.approx(100)
    assert chrf.value == chrf_words.value == pytest.approx(100)
    assert ter.value == 0
    assert all("case:lc" in score.signature for score in folded)


def test_the_tokenizer_counts_and_stands_in_the_signature():
    """13a splits off the full stop; `none` does not."""
    tokenized = [text.replace(".", " .") for text in HYPOTHESES]
    assert corpus_scores(tokenized, [HYPOTHESES])[0].value == pytest.approx(100)
    untokenized = corpus_scores(tokenized, [HYPOTHESES], tokenize="none")[0]
    assert untokenized.value < 80
    assert "tok:none" in untokenized.signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "message"),
    [
        ([], [[]], {}, "no sentences"),
        (["a", "b"], [["a"]], {}, "2 translations but 1 references in set 1"),
        (["a"], [["a"], ["a", "b"]], {}, "in set 2"),
        (["a"], [["a"]], {"tokenize": "13"}, "13a"),
    ],
)
def test_inputs_that_can_not_be_scored_are_refused(hypotheses, references, options, message):
    with pytest.raises(UserError, match=message):
        corpus_scores(hypotheses, references, **options)


def test_bleu_alone_is_the_same_bleu():
    assert bleu(HYPOTHESES, [REFERENCES]) == pytest.approx(corpus_scores(HYPOTHESES, [REFERENCES])[0].value)


def test_buckets_take_sentences_by_source_words():
    sources = ["w " * 3, "w " * 5, "w " * 6, "w " * 100]
    targets = ["a b c d", "a b c d e", "x y z w", "k l m n"]
    rows = by_length(sources, ["a b c d", "a b c d e", "x y z", "q"], [targets])
    assert [(row.words, row.sentences) for row in rows] == [("1-5", 2), ("6-10", 1), ("61+", 1)]
    assert rows[0].bleu == pytest.approx(100)
    assert rows[0].length_ratio == 1
    assert rows[1].length_ratio == pytest.approx(3 / 4)
    assert rows[2].bleu < 1


def test_buckets_are_scored_like_the_test_set():
    uppercase = [text.upper() for text in HYPOTHESES]
    tokenized = [text.replace(".", " .") for text in HYPOTHESES]
    for hypotheses, options in (
        (uppercase, {"lowercase": True}),
        (uppercase, {}),
        (tokenized, {"tokenize": "none"}),
        (tokenized, {}),
    ):
        result = evaluate(["a b c", "d e"], hypotheses, [HYPOTHESES], lengths=True, **options)
        (row,) = result.by_length
        bleu, chrf, *_ = result.scores
        assert (row.bleu, row.chrf) == pytest.approx((bleu.value, chrf.value))


def test_empty_and_looping_translations_are_counted():
    sources = ["a b", "c", "", "ja ja ja ja ja", "d e"]
    hypotheses = ["", "no no no no", "", "yes yes yes yes yes", "salad soup salad soup salad soup salad soup"]
    result = evaluate(sources, hypotheses, [["x"] * 5])
    assert result.empty == 1
    assert result.looped == 2  # without the one whose source is repetitive, too
    assert result.to_json()["BLEU"]["value"] == result.scores[0].value
    assert "by_length" not in result.to_json()
    assert result.to_json()["seconds"] == 0  # not measured


def test_a_blank_line_is_no_reference_where_there_is_another():
    sets = without_blank([REFERENCES[:1], [" "]])
    assert sets == [REFERENCES[:1], [None]]
    single = [score.value for score in corpus_scores(HYPOTHESES[:1], [REFERENCES[:1]])]
    assert [score.value for score in corpus_scores(HYPOTHESES[:1], sets)] == pytest.approx(single)
    # TER divides by the mean length of the references, which a reference of no words halves.
    assert corpus_scores(HYPOTHESES[:1], [REFERENCES[:1], [""]])[3].value == pytest.approx(2 * single[3])
    assert without_blank([["", "a"], ["b", " "]]) == [[None, "a"], ["b", None]]
    assert without_blank([["", "a"]]) == [["", "a"]]  # each sentence keeps one reference
    assert without_blank([["a"], ["b", "c"]]) == [["a"], ["b", "c"]]  # rejected when scored


def test_a_blank_line_is_no_reference_by_length_either():
    sets = without_blank([["", REFERENCES[1]], [REFERENCES[0], OTHER_REFERENCES[1]]])
    rows = by_length(["a b", "a b"], HYPOTHESES, sets)
    assert rows[0].bleu == pytest.approx(corpus_scores(HYPOTHESES, sets)[0].value)
