"""Warnings are summarised in one line, also when a job was interrupted in between."""

import pytest

from translucid.jobs.warning_summary import WarningSummary

WARNINGS = [(3, "lost: %s 42"), (3, "unknown characters: 足"), (7, "lost: {name}"), (9, "lost: a")]
HINT = "--format jsonl shows the warnings of each line."


def test_one_line_has_a_sentence_for_each_kind():
    warnings = WarningSummary().and_these(WARNINGS)
    assert warnings.summary(1000) == (
        "warning: 3 of 1,000 lines look wrong. 4 placeholders, tags or numbers are lost: lines 3, 7, 9. "
        f"1 text has characters that the model does not know: line 3. {HINT}"
    )


def test_ten_lines_are_named_and_the_others_counted():
    warnings = WarningSummary().and_these([(n, "placed: %d {n}") for n in (15, 22, 40)])
    assert "6 placeholders restored by guess: lines 15, 22, 40. " in warnings.summary(2000)
    warnings = WarningSummary().and_these([(n, "copied: all") for n in range(1005, 1029)])
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
    summary = WarningSummary().and_these([(4, warning)]).summary(9)
    assert f"{count} placeholder{'s' * (count > 1)} restored by guess: line 4." in summary


def test_terms_are_counted_and_a_line_is_named_once():
    warnings = WarningSummary().and_these([(2, "term not used: a (b)"), (2, "term not used: c (d)"), (5, "odd: x")])
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
    warnings = WarningSummary().and_these([(i, "copied: all") for i in range(1, len(places) + 1)])
    summary = warnings.summary(50, "segment", lambda number: places[number - 1])
    assert summary.endswith(f": {expected}") and "jsonl" not in summary and f"{len(places)} of 50 segments" in summary


def test_of_a_single_line_it_says_what():
    warnings = WarningSummary().and_these([(1, "lost: %s"), (1, "copied: all")])
    assert warnings.summary(1) == "warning: lost: %s; copied: all"


def test_it_goes_on_where_it_was():
    first_part = WarningSummary().and_these(WARNINGS[:2])
    reloaded = WarningSummary.model_validate_json(first_part.model_dump_json())
    assert reloaded.and_these(WARNINGS[2:]) == WarningSummary().and_these(WARNINGS)


def test_what_an_older_version_has_kept_is_read():
    older = WarningSummary.model_validate_json('{"lines": 2, "kinds": {"lost": [2, [3, 7]]}, "first": ["lost: %s"]}')
    assert "2 placeholders, tags or numbers are lost: lines 3, 7. " in older.summary(10)
    assert "4 placeholders, tags or numbers are lost: " in older.and_these([(9, "lost: %s {x}")]).summary(10)
