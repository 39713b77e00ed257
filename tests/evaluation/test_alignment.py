"""Alignment error rate by pencil, and gold files."""

import pytest

from translucid.errors import UserError
from translucid.evaluation.alignment import Gold, alignment_score, read_gold


def gold(sure, possible=()):
    return Gold(frozenset(sure), frozenset(sure) | frozenset(possible))


def test_error_rate_by_pencil():
    found = [[(0, 0), (1, 1), (2, 2)]]
    right = [gold([(0, 0), (2, 3)], [(1, 1)])]
    score = alignment_score(found, right)
    assert score.error_rate == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == pytest.approx(1 / 2)
    assert score.f1 == pytest.approx(4 / 7)


def test_figures_are_of_the_whole_set_not_means_of_sentences():
    score = alignment_score([[(0, 0)], [(0, 0), (1, 1), (2, 2)]], [gold([(0, 1)]), gold([(0, 0), (1, 1), (2, 2)])])
    assert score.error_rate == pytest.approx(1 - 6 / 8)


def test_all_right_is_zero_and_nothing_found_is_one():
    links = [[(0, 0), (1, 1)]]
    assert alignment_score(links, [gold(links[0])]).error_rate == 0
    assert alignment_score([[]], [gold([(0, 0)])]).error_rate == 1
    with pytest.raises(ValueError, match="zip"):
        alignment_score([[]], [])


def test_gold_files(tmp_path):
    (tmp_path / "a.txt").write_text("0-0 1?2\n\n3-3\n")
    assert read_gold(tmp_path / "a.txt") == [gold([(0, 0)], [(1, 2)]), gold([]), gold([(3, 3)])]
    (tmp_path / "a.jsonl").write_text('{"source": "a", "target": "b", "alignment": "0-0"}\n')
    assert read_gold(tmp_path / "a.jsonl") == [gold([(0, 0)])]
    for name, text in (("b.txt", "0-0\n1:2\n"), ("b.jsonl", '{"alignment": "0-0"}\n{"source": "a"}\n')):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=r":2: is not a line of word links"):
            read_gold(tmp_path / name)
