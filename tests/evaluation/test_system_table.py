"""Tables of several systems, against sacreBLEU, NumPy and tables written by hand."""

import numpy as np
import pytest
import sacrebleu

from translucid.evaluation import comparing
from translucid.evaluation.system_table import Score, Seeds, SystemTable, system_table, with_seeds

REFERENCES = [[f"the {word} cat sat on the mat number {i}" for i, word in enumerate("abcdefgh")]]
HATS = [text.replace("mat", "hat") for text in REFERENCES[0]]
HATS[3] = HATS[3].replace("cat", "dog")
SYSTEMS = [
    ("base.txt", [text.replace("sat on", "was at") for text in REFERENCES[0]]),
    ("out/seed-1", [text.replace("cat", "dog") for text in REFERENCES[0]]),
    ("out/seed-2", HATS),
    ("other/seed-2", REFERENCES[0][:1] + [text.replace("sat on", "was at") for text in REFERENCES[0][1:]]),
]


def test_scores_and_their_means_and_tests():
    table = system_table(SYSTEMS, REFERENCES)
    bleu = [sacrebleu.corpus_bleu(output, REFERENCES).score for _, output in SYSTEMS]
    assert [scores["BLEU"].value for _, scores in table.systems] == pytest.approx(bleu)
    (group,) = table.seeds  # a single run of a folder has no deviation
    assert (group.name, group.runs) == ("out", 2)
    assert group.scores["BLEU"] == pytest.approx((np.mean(bleu[1:3]), np.std(bleu[1:3], ddof=1)))
    for number in (1, 2):
        pair = [SYSTEMS[0], SYSTEMS[number]]
        rows = comparing.compare(REFERENCES[0], pair, REFERENCES, {}, str.split).metrics
        for row in rows:
            score, first = table.systems[number][1][row.name], table.systems[0][1][row.name]
            assert (score.p_value, score.interval) == (row.tested.bootstrap, row.tested.interval_b)
            assert (first.p_value, first.interval) == (None, row.tested.interval_a)
    # One sentence differs from the first system: too few for a test.
    assert [score.p_value for score in table.systems[3][1].values()] == [None] * 3
    # Two systems without a correct word both have a BLEU of 0.
    wrong = [("a", ["x"] * 8), ("b", ["y"] * 8)]
    assert system_table(wrong, REFERENCES).systems[1][1]["BLEU"].p_value is None
    untested = system_table(SYSTEMS, REFERENCES, significance=False)
    assert untested.cells()[0] == ["system", "BLEU", "chrF", "TER"]


def test_a_table_for_papers():
    systems = [("a_b|c", {"BLEU": Score(30.0, 1.0)}), ("d", {"BLEU": Score(31.456, 1.25, 0.0123)})]
    table = SystemTable(1200, systems, [Seeds("r", 3, {"BLEU": (30.5, 0.25)})], {"BLEU": "nrefs:1"})
    notes = [
        "1,200 sentences",
        "± of a system: half of the 95 % confidence interval (bootstrap, 1,000 samples)",
        "p: paired bootstrap resampling against the first system",
        "± of a mean: standard deviation over the seeds",
        "nrefs:1",
    ]
    assert table.markdown().splitlines() == [
        "| system | BLEU | p |",
        "| --- | ---: | ---: |",
        r"| a_b\|c | 30.00 ± 1.00 |  |",
        "| d | 31.46 ± 1.25 | 0.0123 |",
        "| mean of 3 seeds, r | 30.50 ± 0.25 |  |",
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
        r"d & 31.46 $\pm$ 1.25 & 0.0123 \\",
        r"mean of 3 seeds, r & 30.50 $\pm$ 0.25 &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path):
    for name in ("out/seed-10", "out/seed-9", "out/seed-x", "run/seed-1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    (tmp_path / "out" / "seed-11").mkdir()  # no run yet
    (tmp_path / "run" / "config.yaml").touch()  # a run itself, despite its seed folder
    out, run, file = tmp_path / "out", tmp_path / "run", tmp_path / "file.txt"
    assert with_seeds([file, out, run]) == [file, out / "seed-9", out / "seed-10", run]
