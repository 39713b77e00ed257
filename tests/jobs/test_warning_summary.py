"""Warnings are summarized in one line, also when a job was interrupted in between."""

import pytest

from translucid.jobs.output import WarningSummary

WARNINGS = [(3, "lost: %s 42"), (3, "unknown characters: 足"), (7, "lost: {name}"), (9, "lost: a")]
HINT = '`form="jsonl"` shows the warnings of each line.'


def test_one_line_has_a_sentence_for_each_kind():
    warnings = WarningSummary().with_warnings(WARNINGS)
    assert warnings.summary(1000) == (
        "warning: 3 of 1,000 lines look wrong. 4 placeholders, tags or numbers are lost: lines 3, 7, 9. "
        f"1 text has characters that the model does not know: line 3. {HINT}"
    )


def test_ten_lines_are_named_and_the_others_counted():
    warnings = WarningSummary().with_warnings([(n, "placed: %d {n}") for n in (15, 22, 40)])
    assert "6 placeholders restored by guess: lines 15, 22, 40. " in warnings.summary(2000)
    warnings = WarningSummary().with_warnings([(n, "copied: all") for n in range(1005, 1029)])
    line_numbers = "1,005, 1,006, 1,007, 1,008, 1,009, 1,010, 1,011, 1,012, 1,013, 1,014"
    assert f"24 translations are copied from their sources: lines {line_numbers} and 14 more. " in warnings.summary(
        2000
    )


@pytest.mark.parametrize(
    ("warning", "count"),
    [
        ("placed: %s", 1),
        ("placed: {{ name }} %(n)d", 2),
        ('placed: <a href="x y"> </a>', 2),
        ("placed: 12 $NAME$ 3", 3),
        ("placed: ", 1),
    ],
)
def test_placeholders_are_counted(warning, count):
    summary = WarningSummary().with_warnings([(4, warning)]).summary(9)
    assert f"{count} placeholder{'s' * (count > 1)} restored by guess: line 4." in summary


def test_terms_are_counted_and_a_line_is_named_once():
    warnings = WarningSummary().with_warnings([(2, "term not used: a (b)"), (2, "term not used: c (d)"), (5, "odd: x")])
    assert "2 terms not used: line 2. 1 warning (odd): line 5." in warnings.summary(9)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["line 4", "line 4", "line 12"], "lines 4, 12."),
        (["paragraph 7"], "paragraph 7."),
        (["line 4", "line 9", "paragraph 2"], "lines 4, 9; paragraph 2."),
        (["Sheet1, cell B2", "line 5, for 0, 1 …"], "Sheet1, cell B2; line 5, for 0, 1 …."),
    ],
)
def test_places_of_documents_are_called_as_the_document_calls_them(places, expected):
    warnings = WarningSummary().with_warnings([(i, "copied: all") for i in range(1, len(places) + 1)])
    summary = warnings.summary(50, "segment", lambda number: places[number - 1])
    assert summary.endswith(f": {expected}") and "jsonl" not in summary and f"{len(places)} of 50 segments" in summary


def test_the_warnings_of_a_single_line_are_listed():
    warnings = WarningSummary().with_warnings([(1, "lost: %s"), (1, "copied: all")])
    assert warnings.summary(1) == "warning: lost: %s; copied: all"


def test_a_summary_continues_after_an_interruption():
    first_part = WarningSummary().with_warnings(WARNINGS[:2])
    reloaded = WarningSummary.model_validate_json(first_part.model_dump_json())
    assert reloaded.with_warnings(WARNINGS[2:]) == WarningSummary().with_warnings(WARNINGS)


def test_records_of_older_versions_are_read():
    older = WarningSummary.model_validate_json('{"lines": 2, "kinds": {"lost": [2, [3, 7]]}, "first": ["lost: %s"]}')
    assert "2 placeholders, tags or numbers are lost: lines 3, 7. " in older.summary(10)
    assert "4 placeholders, tags or numbers are lost: " in older.with_warnings([(9, "lost: %s {x}")]).summary(10)
