"""Many warnings are one line, also over an interruption."""

from translucid.jobs.warned import Warned

WARNINGS = [(3, "lost: %s"), (3, "lost: 42"), (3, "unknown characters: 足"), (7, "lost: 10"), (9, "lost: a")]


def test_one_line_counts_lines_by_kind():
    warned = Warned().and_these(WARNINGS)
    assert warned.summary(1000) == (
        "warning: 3 of 1,000 lines look wrong: 3 lost (lines 3, 7, 9), 1 unknown characters (line 3); "
        "--format jsonl says what of each line"
    )
    more = warned.and_these([(n, "lost: x") for n in range(10, 2000)])
    assert "1,993 lost (lines 3, 7, 9, …)" in more.summary(2000)


def test_of_a_single_line_it_says_what():
    warned = Warned().and_these([(1, "lost: %s"), (1, "copied: all")])
    assert warned.summary(1) == "warning: lost: %s; copied: all"


def test_it_goes_on_where_it_was():
    half = Warned().and_these(WARNINGS[:3])
    again = Warned.model_validate_json(half.model_dump_json())
    assert again.and_these(WARNINGS[3:]) == Warned().and_these(WARNINGS)
