"""Scores are sacreBLEU's own; ours are the checks around them."""

import pytest
import sacrebleu

from translucid.evaluation.breakdown import by_length
from translucid.evaluation.metrics import bleu, corpus_scores, without_blank
from translucid.evaluation.report import evaluate
from translucid.ground.errors import UserError

FOUND = ["The cat sat on the mat.", "It is raining in London today."]
WANTED = ["The cat sat on a mat.", "It rains in London today."]
OTHER = ["The cat sat on the mat.", "Today it is raining in London."]


def test_figures_are_those_of_sacrebleu():
    by_name = {score.name: score for score in corpus_scores(FOUND, [WANTED])}
    assert by_name["BLEU"].value == pytest.approx(sacrebleu.corpus_bleu(FOUND, [WANTED]).score)
    assert by_name["chrF"].value == pytest.approx(sacrebleu.corpus_chrf(FOUND, [WANTED]).score)
    assert by_name["TER"].value == pytest.approx(sacrebleu.corpus_ter(FOUND, [WANTED]).score)
    assert by_name["BLEU"].signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")


def test_more_references_find_more():
    one, two = corpus_scores(FOUND, [WANTED])[0], corpus_scores(FOUND, [WANTED, OTHER])[0]
    assert two.value > one.value
    assert "nrefs:2" in two.signature


def test_case_counts_unless_it_is_not_to_in_all_three_and_the_signature_says_so():
    shouted = [text.upper() for text in FOUND]
    bleu, chrf, ter = usual = corpus_scores(shouted, [FOUND])
    assert bleu.value < 5
    assert chrf.value < 5
    assert ter.value == 100
    assert all("case:mixed" in score.signature for score in usual)
    bleu, chrf, ter = folded = corpus_scores(shouted, [FOUND], lowercase=True)
    assert bleu.value == pytest.approx(100)
    assert chrf.value == pytest.approx(100)
    assert ter.value == 0
    assert all("case:lc" in score.signature for score in folded)


def test_the_tokenizer_counts_and_stands_in_the_signature():
    """13a takes the full stop off the last word, none leaves it there."""
    apart = [text.replace(".", " .") for text in FOUND]
    assert corpus_scores(apart, [FOUND])[0].value == pytest.approx(100)
    none = corpus_scores(apart, [FOUND], tokenize="none")[0]
    assert none.value < 80
    assert "tok:none" in none.signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "said"),
    [
        ([], [[]], {}, "no sentences"),
        (["a", "b"], [["a"]], {}, "2 translations but 1 references in set 1"),
        (["a"], [["a"], ["a", "b"]], {}, "in set 2"),
        (["a"], [["a"]], {"tokenize": "13"}, "13a"),
    ],
)
def test_what_can_not_be_scored_is_said(hypotheses, references, options, said):
    with pytest.raises(UserError, match=said):
        corpus_scores(hypotheses, references, **options)


def test_bleu_alone_is_the_same_bleu():
    assert bleu(FOUND, [WANTED]) == pytest.approx(corpus_scores(FOUND, [WANTED])[0].value)


def test_buckets_take_sentences_by_source_words():
    sources = ["w " * 3, "w " * 5, "w " * 6, "w " * 100]
    targets = ["a b c d", "a b c d e", "x y z w", "k l m n"]
    rows = by_length(sources, ["a b c d", "a b c d e", "x y z", "q"], [targets])
    assert [(row.words, row.sentences) for row in rows] == [("1-5", 2), ("6-10", 1), ("61+", 1)]
    assert rows[0].bleu == pytest.approx(100)
    assert rows[0].length_ratio == 1
    assert rows[1].length_ratio == pytest.approx(3 / 4)
    assert rows[2].bleu < 1


def test_buckets_are_scored_as_the_whole_is():
    shouted, apart = ([change(text) for text in FOUND] for change in (str.upper, lambda text: text.replace(".", " .")))
    for found, options in ((shouted, {"lowercase": True}), (shouted, {}), (apart, {"tokenize": "none"}), (apart, {})):
        result = evaluate(["a b c", "d e"], found, [FOUND], lengths=True, **options)
        (row,) = result.by_length
        bleu, chrf, _ = result.scores
        assert (row.bleu, row.chrf) == pytest.approx((bleu.value, chrf.value))


def test_empty_and_looping_translations_are_counted():
    sources = ["a b", "c", "", "ja ja ja ja ja", "d e"]
    found = ["", "no no no no", "", "yes yes yes yes yes", "salad soup salad soup salad soup salad soup"]
    result = evaluate(sources, found, [["x"] * 5])
    assert result.empty == 1
    assert result.looped == 2  # not the one whose source repeats itself as well
    assert result.to_json()["BLEU"]["value"] == result.scores[0].value
    assert "by_length" not in result.to_json()
    assert result.to_json()["seconds"] == 0  # not said


def test_a_blank_line_is_no_reference_where_there_is_another():
    sets = without_blank([WANTED[:1], [" "]])
    assert sets == [WANTED[:1], [None]]
    alone = [score.value for score in corpus_scores(FOUND[:1], [WANTED[:1]])]
    assert [score.value for score in corpus_scores(FOUND[:1], sets)] == pytest.approx(alone)
    # TER divides by the mean length of the references, which a reference of no words halves.
    assert corpus_scores(FOUND[:1], [WANTED[:1], [""]])[2].value == pytest.approx(2 * alone[2])
    assert without_blank([["", "a"], ["b", " "]]) == [[None, "a"], ["b", None]]
    assert without_blank([["", "a"]]) == [["", "a"]]  # a sentence keeps one
    assert without_blank([["a"], ["b", "c"]]) == [["a"], ["b", "c"]]  # refused where they are scored


def test_a_blank_line_is_no_reference_by_length_either():
    sets = without_blank([["", WANTED[1]], [WANTED[0], OTHER[1]]])
    rows = by_length(["a b", "a b"], FOUND, sets)
    assert rows[0].bleu == pytest.approx(corpus_scores(FOUND, sets)[0].value)
