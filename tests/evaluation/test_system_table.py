"""Tables of several systems, against sacreBLEU, NumPy and tables written by hand."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from translucid.evaluation.metrics import METRICS, metrics, plain_name
from translucid.evaluation.system_table import DirectionTable, Row, Score, System, SystemTable, system_table

REFERENCES = [[f"the {word} cat sat on the mat number {i}" for i, word in enumerate("abcdefgh")]]
HATS = [text.replace("mat", "hat") for text in REFERENCES[0]]
HATS[3] = HATS[3].replace("cat", "dog")
BASE = System("base.txt", [[text.replace("sat on", "was at") for text in REFERENCES[0]]])
DOGS = [text.replace("cat", "dog") for text in REFERENCES[0]]
SEEDS = System("out", [DOGS, HATS])
SIMILAR = System("other", [REFERENCES[0][:1] + BASE.outputs[0][1:]])


def test_scores_and_tests_of_single_runs_are_those_of_sacrebleu():
    systems = [BASE, System("dogs", [DOGS]), System("hats", [HATS]), SIMILAR]
    table = system_table(systems, REFERENCES)
    by_name = dict(zip(METRICS, metrics(), strict=True))
    outputs = [(system.name, system.outputs[0]) for system in systems]
    signatures, expected = PairedTest(outputs, by_name, REFERENCES, "bs")()
    for name, signature in signatures.items():
        metric = plain_name(name)
        assert table.signatures[metric] == str(signature)
        for row, result in zip(table.systems, expected[name], strict=True):
            score = row.scores[metric]
            assert (score.value, score.interval) == (pytest.approx(result.score), pytest.approx(result.ci))
            # One sentence of the last system differs from the first one: too few for a test.
            assert score.p_value == (None if row.name in ("base.txt", "other") else result.p_value)
    # Two systems without a correct word both have a BLEU of 0.
    wrong = [System("a", [["x"] * 8]), System("b", [["y"] * 8])]
    assert system_table(wrong, REFERENCES).systems[1].scores["BLEU"].p_value is None
    untested = system_table(systems, REFERENCES, significance=False)
    assert (
        untested.cells()[0] == ["system", "BLEU", "chrF", "chrF++", "TER"] and "bs:" not in untested.signatures["BLEU"]
    )


def test_several_seeds_are_one_row_whose_test_counts_the_choice_of_seeds():
    table = system_table([BASE, SEEDS], REFERENCES)
    assert [row.label for row in table.systems] == ["base.txt", "out (2 seeds)"]
    bleu = [sacrebleu.corpus_bleu(output, REFERENCES).score for output in SEEDS.outputs]
    score = table.systems[1].scores["BLEU"]
    assert (score.value, score.deviation) == pytest.approx((np.mean(bleu), np.std(bleu, ddof=1)))
    assert score.runs == pytest.approx(tuple(bleu))
    assert score.text == f"{np.mean(bleu):.2f} ± {np.std(bleu, ddof=1):.2f}"
    same = system_table([BASE, System("twice", [HATS, HATS])], REFERENCES).systems[1].scores["BLEU"]
    single = system_table([BASE, System("once", [HATS])], REFERENCES).systems[1].scores["BLEU"]
    assert (same.p_value, same.interval, same.deviation) == (single.p_value, single.interval, 0)
    assert table.notes()[1:4] == [
        "± of a single run: half of the 95 % confidence interval (bootstrap, 1,000 samples)",
        "± of several seeds: standard deviation over the seeds",
        "p: paired bootstrap resampling over sentences and seeds against the first system",
    ]


def test_seeds_that_disagree_make_a_difference_insignificant():
    """Each seed alone differs clearly from the baseline, one for the better and one for the worse."""
    words = "abcdefghijklmnopqrst"
    references = [[f"the {word} cat sat on the mat number {i}" for i, word in enumerate(words)]]
    base = System("base", [[text.replace("number", "n") for text in references[0]]])
    better, worse = references[0], [text.replace("cat sat", "dog was") for text in references[0]]
    for output in (better, worse):
        single = system_table([base, System("one", [output])], references).systems[1].scores["chrF"]
        assert single.p_value < 0.01
    score = system_table([base, System("both", [better, worse])], references).systems[1].scores["chrF"]
    assert score.p_value > 0.05


def test_a_table_for_papers():
    systems = [
        Row("a_b|c", 1, {"BLEU": Score(30.0, None, 1.0)}),
        Row("d", 3, {"BLEU": Score(31.456, 0.75, 1.25, 0.0123)}),
    ]
    table = SystemTable(1200, systems, {"BLEU": "nrefs:1"})
    notes = [
        "1,200 sentences",
        "± of a single run: half of the 95 % confidence interval (bootstrap, 1,000 samples)",
        "± of several seeds: standard deviation over the seeds",
        "p: paired bootstrap resampling over sentences and seeds against the first system",
        "BLEU|nrefs:1",
    ]
    assert table.markdown().splitlines() == [
        "| system | BLEU | p |",
        "| --- | ---: | ---: |",
        r"| a_b\|c | 30.00 ± 1.00 |  |",
        "| d (3 seeds) | 31.46 ± 0.75 | 0.0123 |",
        "",
        "; ".join(notes),
    ]
    assert table.latex().splitlines() == [
        *(f"% {note}" for note in notes),
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & BLEU & p \\",
        r"\midrule",
        r"a\_b|c & 30.00 $\pm$ 1.00 &  \\",
        r"d (3 seeds) & 31.46 $\pm$ 0.75 & 0.0123 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_directions_are_rows_with_trained_and_zero_shot_ones_apart():
    tables = {
        "en-fr": system_table([BASE, System("out", [HATS])], REFERENCES),
        "fr-en": system_table([BASE, System("out", [DOGS])], REFERENCES),
        "fr-de": system_table([BASE, System("out", [HATS])], REFERENCES),
    }
    table = DirectionTable(tables, {"fr-de": ["out"], "en-fr": [], "fr-en": []})
    header, rows = table.cells("BLEU")
    assert header == ["BLEU", "sentences", "base.txt", "out"]
    assert [row[0] for row in rows] == ["en-fr", "fr-en", "mean of 2 trained", "fr-de (zero-shot for out)"]
    values = [[tables[name].systems[i].scores["BLEU"] for i in range(2)] for name in ("en-fr", "fr-en")]
    first, second = table.mean("BLEU", ["en-fr", "fr-en"])
    assert first.value == pytest.approx(values[0][0].value)
    assert second.value == pytest.approx((values[0][1].value + values[1][1].value) / 2)
    # The samples of both directions have the same sentences, so the mean has the interval of their mean.
    samples = np.sort((values[0][1].samples + values[1][1].samples) / 2)
    assert second.interval == pytest.approx((samples[-26] - samples[25]) / 2)
    assert second.p_value < 0.05 and rows[2][3].endswith("*") and not rows[2][2].endswith("*")
    record = table.to_json()
    assert record["zero_shot"] == {"fr-de": ["out"]}
    assert record["mean"]["trained"]["out"]["BLEU"]["value"] == second.value
    assert set(record["mean"]) == {"trained", "zero-shot"}
    assert table.markdown().count("| --- |") == 3 == table.latex().count(r"\begin{tabular}{lrrr}")
    everywhere = DirectionTable({"fr-de": tables["fr-de"]}, {"fr-de": ["base.txt", "out"]})
    assert everywhere.cells("chrF")[1][0][0] == "fr-de (zero-shot)"
