"""Contrastive evaluation: reading, shares and the rank of the antecedent, against numbers checked by hand."""

import json

import pytest

from translucid.evaluation.contrast import (
    Contrast,
    Preference,
    contrast_rows,
    first_difference,
    is_among_top,
    read_contrasts,
)
from translucid.ground.errors import UserError

RECORDS = [
    {"source": "a red one", "target": "uno rojo", "document": "a"},
    {"source": "now", "target": "ahora", "document": "a"},
    {"source": "it is so", "target": "es rojo", "document": "a", "contrast": "es azul", "phenomenon": "color",
     "antecedent": [[0, 1]]},
    {"source": "a blue one", "target": "uno azul", "document": "b"},
    {"source": "it is so", "target": "es azul", "document": "b", "contrast": "es rojo"},
]  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def write_file(records):
        file = tmp_path / "contrasts.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
        return file

    return write_file


def test_pairs_with_a_contrast_are_read_with_their_documents(write):
    pairs, contrasts = read_contrasts(write(RECORDS))
    first, *_, last = (pair.document for pair in pairs)
    assert [pair.document for pair in pairs] == [first] * 3 + [last] * 2 and first != last
    assert contrasts == [
        Contrast(2, "es azul", "color", ((0, 1),), 2),
        Contrast(4, "es rojo", "unnamed", (), None),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"antecedent": [[2, 0]]}, r":3: the antecedent \[2, 0\] is no word of an earlier sentence"),
        ({"antecedent": [[0, 3]]}, r":3: the antecedent \[0, 3\] is no word of an earlier sentence"),
        ({"antecedent": [[0, -1]]}, ":3: is no record of a contrast .antecedent.0.1"),
        ({"antecedent": 7}, ":3: is no record of a contrast .antecedent"),
        ({"contrast": ["es azul"]}, ":3: is no record of a contrast .contrast"),
        ({"contrast": "es rojo"}, ":3: the contrast is the target"),
    ],
)
def test_a_bad_record_is_reported_with_its_line(write, changes, reason):
    file = write([*RECORDS[:2], RECORDS[2] | changes])
    with pytest.raises(UserError, match=reason):
        read_contrasts(file)


def test_a_file_without_contrasts_is_refused(write):
    with pytest.raises(UserError, match="has no contrasts"):
        read_contrasts(write(RECORDS[:2]))


def test_the_antecedent_is_among_the_words_that_contribute_most():
    contributions = [0.1, 0.3, 0.05, 0.3, 0.2]
    assert is_among_top(contributions, {3}) and is_among_top(contributions, {1}, 1)
    assert not is_among_top(contributions, {3}, 1), "the earlier of equal words comes first"
    assert not is_among_top(contributions, {4}) and is_among_top(contributions, {4}, 3)
    assert is_among_top(contributions, {0, 1}), "one word of several is enough"
    assert not is_among_top([], {0}) and not is_among_top(contributions, set())


def test_translations_differ_first_where_they_differ():
    assert first_difference([5, 6, 7, 2], [5, 8, 7, 2]) == 1
    assert first_difference([5, 2], [5, 8, 2]) == 1
    assert first_difference([5, 2], [5, 2]) is None


def test_shares_are_of_all_of_each_phenomenon_and_of_each_distance():
    near = Contrast(1, "x", "pronoun", ((0, 0),), 1)
    far = Contrast(2, "x", "sense", ((0, 0),), 2)
    bare = Contrast(3, "x", "sense", (), None)
    rows = contrast_rows(
        [
            Preference(near, True, True, True),
            Preference(near, False, True, False),
            Preference(far, False, True, True),
            Preference(bare, True, False, None),
        ]
    )
    assert rows == [
        ("all", 4, 0.5, 0.75, 2 / 3),
        ("pronoun", 2, 0.5, 1.0, 0.5),
        ("sense", 2, 0.5, 0.5, 1.0),
        ("1 sentence before", 2, 0.5, 1.0, 0.5),
        ("2 sentences before", 1, 0.0, 1.0, 1.0),
    ]
    assert contrast_rows([Preference(near, True)]) == [
        ("all", 1, 1.0, None, None),
        ("pronoun", 1, 1.0, None, None),
        ("1 sentence before", 1, 1.0, None, None),
    ]
