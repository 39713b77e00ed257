"""Reports: each printed and stored number, for records that can be checked by hand."""

import math
from dataclasses import replace

import pytest

from bitext.pair import Pair
from tests.rendered import rendered
from translucid.captions.caption_scores import CaptionEvaluation, CaptionScores
from translucid.captions.pointing import KindScore
from translucid.data.seen_sentences import SeenSentences, SeenSentencesBuilder, hashes_of
from translucid.data.stores.store import Size
from translucid.evaluation import comparing
from translucid.evaluation.breakdown import FrequencyRow, LengthRow
from translucid.evaluation.comparing import Comparison, DifferingSentence, MetricRow
from translucid.evaluation.metrics import CorpusScore
from translucid.evaluation.report import Evaluation, ForcedScores, SeenReport
from translucid.evaluation.system_table import Row, Score, SystemTable
from translucid.language.scores import TextScores, mean_scores
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import TermList
from translucid.terminology.term_score import TermScore, terms_table

SCORES = [CorpusScore("BLEU", 31.456, "nrefs:1"), CorpusScore("chrF", 5.0, "nrefs:2")]
LENGTHS = [LengthRow("1-5", 1234, 31.25, 52.04, 0.987), LengthRow("6-10", 1, 0.0, 7.0, 1.0)]
FULL = Evaluation(
    SCORES, LENGTHS, 1235, 2.0, 3, 4, "torch", ForcedScores(7.126, 0.4567, 12345), 1006, bleu_is_blind=True
)
PLAIN = Evaluation(SCORES, [], 1235, 0.0, 0, 0)
SCORE_TABLE = ["metric  score", "BLEU    31.46", "chrF     5.00", "BLEU|nrefs:1", "chrF|nrefs:2"]


@pytest.mark.parametrize(
    ("evaluation", "lines"),
    [
        (
            FULL,
            [
                "1,235 sentences in 2.0 s (618 a second) by torch",
                "perplexity 7.13, accuracy 45.7% of 12,345 reference tokens of its own vocabulary; 1,006 pairs are",
                "too long for the model and left out",
                "BLEU says nothing here: nearly all references are shorter than its four words; see chrF",
                "3 empty translations, 4 that repeat themselves",
                "",
                "source words  sentences  BLEU  chrF  length ratio",
                "         1-5      1,234  31.2  52.0          0.99",
                "        6-10          1   0.0   7.0          1.00",
            ],
        ),
        (PLAIN, ["1,235 sentences in 0.0 s (0 a second)"]),
        (
            replace(PLAIN, too_long=1, empty=1),
            [
                "1,235 sentences in 0.0 s (0 a second)",
                "no perplexity: all pairs are too long for the model",
                "1 empty translations, 0 that repeat themselves",
            ],
        ),
        (
            replace(PLAIN, forced=FULL.forced, looped=1),
            [
                "1,235 sentences in 0.0 s (0 a second)",
                "perplexity 7.13, accuracy 45.7% of 12,345 reference tokens of its own vocabulary",
                "0 empty translations, 1 that repeat themselves",
            ],
        ),
    ],
)
def test_the_report_of_an_evaluation(evaluation, lines):
    assert rendered(evaluation.render()) == [*SCORE_TABLE, *lines]


def test_signatures_stay_in_one_line():
    """Also on a narrow terminal, so that they can be copied."""
    signature = "nrefs:1|" + "|".join(f"option{i}:value" for i in range(20))
    long = replace(PLAIN, scores=[replace(score, signature=signature) for score in PLAIN.scores])
    comparison = replace(COMPARISON, metrics=[MetricRow("BLEU", 1.0, 2.0, signature, None)])
    table = SystemTable(1, [Row("a", 1, {"BLEU": Score(1.0)})], {"BLEU": signature})
    for scores in (long, comparison, table):
        assert f"BLEU|{signature}" in rendered(scores.render(), width=40)


def test_the_record_of_an_evaluation():
    scores = {
        "BLEU": {"name": "BLEU", "value": 31.456, "signature": "nrefs:1"},
        "chrF": {"name": "chrF", "value": 5.0, "signature": "nrefs:2"},
    }
    counts = {"sentences": 1235, "seconds": 2.001, "empty": 3, "looped": 4, "engine": "torch"}
    forced = {"perplexity": 7.126, "token_accuracy": 0.4567, "tokens": 12345, "pairs_too_long_for_perplexity": 1006}
    lengths = [
        {"words": "1-5", "sentences": 1234, "bleu": 31.25, "chrf": 52.04, "length_ratio": 0.987},
        {"words": "6-10", "sentences": 1, "bleu": 0.0, "chrf": 7.0, "length_ratio": 1.0},
    ]
    assert replace(FULL, seconds=2.0006).to_json() == scores | counts | forced | {"by_length": lengths}
    counts_only = {"sentences": 1235, "seconds": 0.0, "empty": 0, "looped": 0, "engine": ""}
    assert PLAIN.to_json() == scores | counts_only
    without_perplexity = {"perplexity": None, "token_accuracy": None, "tokens": 0, "pairs_too_long_for_perplexity": 1}
    assert replace(PLAIN, too_long=1).to_json() == scores | counts_only | without_perplexity


ROW = LengthRow("1-5", 1234, 31.0, 50.0, 1.0)
COMPARISON = Comparison(
    ("base", "deep"),
    1234,
    1228,
    [
        MetricRow("BLEU", 30.0, 31.25, "sig", comparing.Significance(1.234, 1.0, 0.00321, 0.5, ("boot", "rand"))),
        MetricRow("TER", 60.0, 58.5, "ter", None),
    ],
    [(ROW, ROW._replace(bleu=30.5))],
    [(FrequencyRow("0", 1000, 1000, 500), FrequencyRow("0", 1000, 600, 400))],
    [DifferingSentence(1007, "a", "b", "c", "d", 12.34, 56.78)],
)


def test_the_report_of_a_comparison():
    assert rendered(COMPARISON.render()) == [
        "A  base",
        "B  deep",
        "1,234 sentences, 1,228 of them translated alike",
        "",
        "metric             A             B  B - A  p (bootstrap)  p (randomization)",
        "BLEU    30.00 ± 1.23  31.25 ± 1.00  +1.25         0.0032             0.5000",
        "TER            60.00         58.50  -1.50",
        "",
        "BLEU|boot",
        "TER|ter",
        "",
        "source words  sentences  BLEU A  BLEU B  B - A",
        "1-5               1,234    31.0    30.5   -0.5",
        "",
        "word's frequency  in references  F1 A  F1 B  B - A",
        "0                         1,000  50.0  50.0   +0.0",
        "",
        "sentence 1,007  chrF 12.3 and 56.8",
        "source     a",
        "reference  b",
        "A          c",
        "B          d",
    ]
    by_chrf = rendered(replace(COMPARISON, criterion="chrF").render())
    assert by_chrf[10].startswith("BLEU says little here")
    assert by_chrf[12:14] == [
        "source words  sentences  chrF A  chrF B  B - A",
        "1-5               1,234    50.0    50.0   +0.0",
    ]
    similar = replace(COMPARISON, equal=1229, metrics=COMPARISON.metrics[1:], by_length=[], by_frequency=[], apart=[])
    assert rendered(similar.render())[2:7] == [
        "1,234 sentences, 1,229 of them translated alike: too few differ to test",
        "",
        "metric      A      B  B - A",
        "TER     60.00  58.50  -1.50",
        "",
    ]


def test_the_record_of_a_comparison():
    record = COMPARISON.to_json()
    assert [(row["difference"], row["tested"] and row["tested"]["randomization"]) for row in record["metrics"]] == [
        (1.25, 0.5),
        (-1.5, None),
    ]
    assert record["by_length"] == [{"a": ROW._asdict(), "b": {**ROW._asdict(), "bleu": 30.5}}]
    assert record["by_frequency"] == [
        {"times": "0", "words": 1000, "f1_a": 50.0, "f1_b": 50.0, "written_a": 1000, "written_b": 600}
    ]
    sentence = {"number": 1007, "source": "a", "reference": "b", "a": "c", "b": "d", "chrf_a": 12.34, "chrf_b": 56.78}
    assert record["apart"] == [sentence]
    assert (record["a"], record["b"], record["sentences"], record["equal"]) == ("base", "deep", 1234, 1228)


TEXTS = TextScores(2000.0, 501, 1000, Size(texts=1200, words=1500, characters=6000), 0.5)


def test_the_report_and_the_record_of_a_language_model():
    assert rendered(TEXTS.render()) == [
        "metric              score  how",
        "perplexity a word   3.79   compares models of any vocabulary",
        "bits a character    0.481  compares models of any vocabulary",
        "perplexity a token  7.39   compares models of one vocabulary",
        "tokens right        50.1%  ranked first, given those before",
        "1,200 texts, 1,500 words, 6,000 characters, 1,000 tokens, ends of texts included; 2,000 tokens/s",
    ]
    assert TEXTS.to_json() == {
        "perplexity_word": pytest.approx(math.exp(4 / 3)),
        "perplexity": pytest.approx(math.exp(2)),
        "bits_per_character": pytest.approx(1 / 3 / math.log(2)),
        "token_accuracy": 0.501,
        "tokens": 1000,
        "texts": 1200,
        "words": 1500,
        "characters": 6000,
        "seconds": 0.5,
    }


def test_scores_of_a_language_model_have_no_overflow_and_need_no_tokens():
    size = Size(texts=1, words=1, characters=1)
    diverged, empty = TextScores(1e6, 0, 1, size), TextScores(0.0, 0, 0, size)
    assert (diverged.perplexity, diverged.perplexity_word) == (math.exp(700), math.exp(700))
    assert (empty.perplexity, empty.accuracy) == (1, 0)
    # An unmeasured duration must not cause a division by zero.
    assert rendered(empty.render())[-1].endswith("0 tokens, ends of texts included; 0 tokens/s")
    assert "images/s" in "".join(rendered(replace(CAPTIONS, seconds=0.0).render()))


def test_the_scores_of_two_directions_are_averaged():
    reverse = TextScores(1000.0, 300, 1002, TEXTS.size, 1.0)
    assert mean_scores([TEXTS, reverse]) == TextScores(1500.0, 400, 1001, TEXTS.size, 1.5)
    assert mean_scores([reverse]) == reverse


CAPTIONS = CaptionEvaluation(
    CaptionScores((60.0, 40.5, 30.256, 20.0), 1.23456, CorpusScore("BLEU", 19.5, "nrefs:var")),
    1500,
    7500,
    2.0,
    ForcedScores(7.126, 0.4567, 12345),
    {"all": KindScore(1200, 1100, 0.5, 0.25, 0.125, 0.0625), "size": KindScore(1, 0, 0, 0, 0, 0)},
)


def test_the_report_and_the_record_of_captions():
    table = [
        "metric   score  how",
        "BLEU-1   60.00  lower-cased, without punctuation, as papers count",
        "BLEU-2   40.50  lower-cased, without punctuation, as papers count",
        "BLEU-3   30.26  lower-cased, without punctuation, as papers count",
        "BLEU-4   20.00  lower-cased, without punctuation, as papers count",
        "CIDEr-D  1.235  lower-cased, without punctuation, as papers count",
        "BLEU     19.50  sacreBLEU's tokens",
        "BLEU|nrefs:var",
        "1,500 images, 7,500 references; 750.0 images/s, reading included",
    ]
    assert rendered(CAPTIONS.render()) == [
        *table,
        "references: perplexity 7.13, 45.7% of 12,345 tokens right",
        "words for          judged  cell at it  by chance  its middle in it  by chance",
        "all        1,100 of 1,200       50.0%      12.5%             25.0%       6.2%",
        "size               0 of 1        0.0%       0.0%              0.0%       0.0%",
    ]
    assert rendered(replace(CAPTIONS, forced=None, pointing={}).render()) == table
    record = {f"bleu_{n}": value for n, value in enumerate((60.0, 40.5, 30.256, 20.0), 1)}
    record |= {"cider_d": 1.23456, "sacrebleu": {"value": 19.5, "signature": "nrefs:var"}}
    record |= {"images": 1500, "references": 7500, "seconds": 2.001}
    assert replace(CAPTIONS, seconds=2.0006, forced=None, pointing={}).to_json() == record
    forced = {"perplexity": 7.126, "token_accuracy": 0.4567, "tokens": 12345}
    pointing = {kind: score._asdict() for kind, score in CAPTIONS.pointing.items()}
    assert CAPTIONS.to_json() == record | {"seconds": 2.0} | forced | {"pointing": pointing}


def test_the_table_and_the_record_of_terms():
    score = TermScore(1200, 300, 150, 750, 31.256, 50.0, 2.0449)
    assert rendered([terms_table(score, TermScore(0, 0, 0, 0, 30.0, 40.0, 12.0))]) == [
        "terms          asked         used    inflected      missing   BLEU   chrF  seconds",
        "unconstrained  1,200  300 (25.0%)  150 (12.5%)  750 (62.5%)  31.26  50.00      2.0",
        "constrained        0     0 (0.0%)     0 (0.0%)     0 (0.0%)  30.00  40.00     12.0",
    ]
    counts = {"asked": 1200, "used": 300, "inflected": 150, "missing": 750}
    assert score.to_json() == {**counts, "bleu": 31.256, "chrf": 50.0, "seconds": 2.045}


def test_the_terms_of_a_test_set_are_counted():
    terms = TermList(terms_of([("house", "casa"), ("dog", "perro")]))
    texts = ["la casa y el gato", "dos perro aquí hoy"]
    score = TermScore.of(terms, ["The house, the dog", "two dog"], texts, [texts], 1.5, "es")
    assert score == TermScore(3, 2, 0, 1, pytest.approx(100), pytest.approx(100), 1.5)


def test_pairs_of_which_only_the_reference_was_seen_are_not_among_the_others(tmp_path):
    builder = SeenSentencesBuilder()
    builder.add(hashes_of(["It rains."]), hashes_of(["Llueve."]))
    builder.write(tmp_path, "text")
    pairs = [Pair("Rain falls.", "Llueve."), Pair("It snows.", "Nieva.")]
    seen = SeenSentences.of_runs([tmp_path]).look_up(pairs)
    report = SeenReport.of(seen, ["Cae lluvia.", "Nieva."], [["Llueve.", "Nieva."]])
    assert (report.counts["source"], report.counts["reference"], report.counts["pair"], report.others) == (0, 1, 0, 1)
