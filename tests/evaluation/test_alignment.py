"""Alignment error rates checked by hand, and gold files."""

import gzip

import pytest

from bitext.pair import Pair
from translucid.evaluation.alignment_error import Gold, alignment_score, read_gold
from translucid.ground.errors import UserError

PAIR = Pair("one two three four", "uno dos tres cuatro cinco")


def gold(sure, possible=()):
    return Gold(frozenset(sure), frozenset(sure) | frozenset(possible))


def test_error_rate_by_hand():
    links = [[(0, 0), (1, 1), (2, 2)]]
    references = [gold([(0, 0), (2, 3)], [(1, 1)])]
    score = alignment_score(links, references)
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


def test_where_there_are_no_links_none_are_wrong():
    assert alignment_score([[]], [gold([])]) == (0, 0, 0)
    assert alignment_score([[]], [gold([])]).f1 == 0


def test_gold_files(tmp_path):
    (tmp_path / "a.txt").write_text("0-0 1?2\n\n3-3\n")
    assert read_gold(tmp_path / "a.txt", [PAIR] * 3) == [gold([(0, 0)], [(1, 2)]), gold([]), gold([(3, 3)])]
    (tmp_path / "a.jsonl").write_text('{"source": "a", "target": "b", "alignment": "0-0"}\n')
    assert read_gold(tmp_path / "a.jsonl", [PAIR]) == [gold([(0, 0)])]
    (tmp_path / "A.JSONL.GZ").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    assert read_gold(tmp_path / "A.JSONL.GZ", [PAIR]) == [gold([(0, 0)])]
    for name, text in (("b.txt", "0-0\n1:2\n"), ("b.jsonl", '{"alignment": "0-0"}\n{"source": "a"}\n')):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=r":2: is not a line of word links"):
            read_gold(tmp_path / name, [PAIR] * 2)


@pytest.mark.parametrize("link", ["4-0", "0-5", "999-999", "0?5"])
def test_a_link_to_a_word_that_is_not_there_is_refused_with_its_line(tmp_path, link):
    (tmp_path / "a.txt").write_text(f"3-4\n0-0 {link}\n")
    with pytest.raises(UserError, match=r"a\.txt:2: links .*, but the pair has 4 and 5 words"):
        read_gold(tmp_path / "a.txt", [PAIR] * 2)


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u200b", "\u000b", "\u2003"])
def test_only_spaces_and_tabs_separate_words(tmp_path, space):
    pair = Pair("Who is\tTom?", f"Qui est Tom{space}?")
    (tmp_path / "a.txt").write_text("0-0 2-2\n")
    assert read_gold(tmp_path / "a.txt", [pair]) == [gold([(0, 0), (2, 2)])]
    (tmp_path / "a.txt").write_text("0-0 2-3\n")
    with pytest.raises(UserError, match=r"a\.txt:1: links 2-3, but the pair has 3 and 3 words"):
        read_gold(tmp_path / "a.txt", [pair])


@pytest.mark.parametrize("pairs", [1, 3])
def test_gold_of_other_pairs_is_refused(tmp_path, pairs):
    (tmp_path / "a.txt").write_text("0-0\n1-1\n")
    with pytest.raises(UserError, match=rf"holds 2 lines for {pairs} sentence pairs"):
        read_gold(tmp_path / "a.txt", [PAIR] * pairs)
