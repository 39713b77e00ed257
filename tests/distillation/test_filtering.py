"""Filtering of distilled pairs: removed pairs are counted by reason."""

import math

import pytest

from translucid.corpora.phrasebook import generate
from translucid.distillation.training_pairs import (
    DISTILLED,
    REFERENCE,
    as_json,
    filter_by_rules,
    filter_by_scores,
    summary_of,
)

PHRASES = [(phrase.source, phrase.target) for phrase in generate(40, max_words=8)]


@pytest.fixture
def filtered(tmp_path):
    """Return a function that filters rows (source, hypothesis, reference) into counts and pairs by kind."""

    def filter_rows(rows, *, references=True):
        decoded = tmp_path / "decoded.tsv"
        decoded.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        files = {kind: tmp_path / f"{kind}.tsv" for kind in (DISTILLED, REFERENCE)}
        advanced = []
        counts = filter_by_rules(decoded, files, ("en", "es"), references=references, advance=advanced.append)
        pairs = {kind: file.read_text(encoding="utf-8").splitlines() for kind, file in files.items()}
        return counts, pairs, sum(advanced)

    return filter_rows


def test_each_removal_is_counted_by_its_reason(filtered):
    good = [(source, target, "") for source, target in PHRASES]
    bad = [
        ("I like soccer", "", ""),
        ("I like soccer", "Me gusta me gusta me gusta me gusta el fútbol", ""),
        ("The house is very big and beautiful", "The house is very big and beautiful", ""),
        ("The teacher reads", "Der Lehrer liest heute Abend ein sehr schönes Buch in der Bibliothek", ""),
        good[0],
    ]
    counts, pairs, advanced = filtered(good + bad)
    assert pairs[DISTILLED] == [f"{source}\t{target}" for source, target in dict.fromkeys(PHRASES)]
    removed = counts[DISTILLED].reasons
    assert removed["empty"] == 1 and removed["repetition"] == 1 and removed["untranslated"] == 1
    assert removed["language"] == 1 and removed["duplicate"] == 1 + len(PHRASES) - len(set(PHRASES))
    assert counts[DISTILLED].kept + removed.total() == advanced == len(good + bad)
    assert "1 repetition" in summary_of(as_json(counts)) and "reference" not in summary_of(as_json(counts))
    older = {"pairs": {"kept": 1000, "left out": {"empty": 2}}, "reference": {"kept": 1, "removed": {}}}
    assert summary_of(older) == "1,000 pairs; skipped 2: 2 empty; 1 reference pair; none skipped"


def test_references_that_differ_are_pairs_of_their_own(filtered):
    rows = [(source, target, target) for source, target in PHRASES[:30]]
    rows[3] = (rows[3][0], rows[4][1], rows[3][2])
    counts, pairs, _ = filtered(rows)
    assert pairs[REFERENCE] == ["\t".join(PHRASES[3])]
    assert counts[REFERENCE].kept == 1 and not counts[REFERENCE].reasons
    assert filtered(rows, references=False)[1][REFERENCE] == []


def test_the_worst_share_by_scores_is_removed(filtered, tmp_path):
    counts, pairs, _ = filtered([(source, target, "") for source, target in dict.fromkeys(PHRASES[:20])])
    lines = pairs[DISTILLED]
    scores = [float(i % 7) for i in range(len(lines))]
    scores[5] = math.inf
    (tmp_path / "scores.txt").write_text("".join(f"{score}\n" for score in scores))
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\n" for line in lines))
    filter_by_scores(tmp_path / "pairs.tsv", tmp_path / "scores.txt", 0.15, tmp_path / "out.tsv", counts)
    worst = sorted(range(len(lines)), key=lambda i: -scores[i])[: int(0.15 * len(lines))]
    remaining = [line for i, line in enumerate(lines) if i not in worst]
    assert 5 in worst and (tmp_path / "out.tsv").read_text().splitlines() == remaining
    assert counts[DISTILLED].kept == len(remaining) and counts[DISTILLED].reasons["reverse-score"] == len(worst)
