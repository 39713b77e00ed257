"""Differences between versions of a translation: edits that can be counted by hand, and sacreBLEU's chrF."""

import pytest
from sacrebleu.metrics.chrf import CHRF

from translucid.evaluation.differences import Differences, Versions, marked_changes

SEGMENTS = [
    Versions(1, "the red house", ["la casa roja", "la casa roja", "la casa azul"]),
    Versions(2, "I sing", ["yo canto", "canto .", None], "better"),
    Versions(3, "new", [None, "nuevo", "nuevo"]),
]


def test_edits_are_counted_by_segment_and_in_total():
    corrected, final = Differences(["machine", "corrected", "final"], SEGMENTS).totals()
    assert (corrected.segments, corrected.changed, corrected.words, corrected.characters) == (2, 1, 2, 5)
    assert corrected.rate == 2 / 5  # the corrected version has 3 and 2 words
    chrf = CHRF().sentence_score("yo canto", ["canto ."]).score
    assert corrected.chrf == pytest.approx((100 + chrf) / 2)
    assert (final.segments, final.changed, final.words, final.characters, final.rate) == (2, 1, 1, 4, 1 / 4)
    assert str(final).startswith("corrected -> final: 1 of 2 segments changed (50%), edits: 1 of words (25.0%)")
    (nothing,) = Differences(["machine", "corrected"], []).totals()
    assert (nothing.segments, nothing.rate, nothing.chrf) == (0, 0, 100)


def test_the_table_has_a_line_for_each_segment():
    lines = [line.split("\t") for line in Differences(["machine", "corrected", "final"], SEGMENTS).tsv().splitlines()]
    assert {len(line) for line in lines} == {2 + 3 + 2 * 4 + 1}
    assert lines[2][:7] == ["2", "I sing", "yo canto", "canto .", "", "5", "2"]
    assert lines[2][-1] == "better" and lines[3][5:9] == [""] * 4


def test_the_page_shows_what_was_deleted_and_inserted():
    page = Differences(["machine", "corrected", "final"], SEGMENTS).html("<a>")
    assert "<title>&lt;a&gt;</title>" in page and "<td>la casa <del>roja</del><ins>azul</ins></td>" in page
    assert marked_changes("<a> b", "<a> b & c") == "&lt;a&gt; b<ins> &amp; c</ins>"
    assert marked_changes("a", "") == "<del>a</del>" and marked_changes("", "") == ""
