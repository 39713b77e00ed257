"""Pointing game scores of a captioner: grids checked by hand, and gold boxes of generated scenes."""

import json

import numpy as np
import pytest
import torch

from translucid.captions.pointing import (
    KINDS,
    GoldImage,
    Hit,
    KindScore,
    by_kind,
    gold_of_words,
    pointing,
    points_of,
    read_gold,
)
from translucid.captions.scenes import generate
from translucid.captions.scenes.writing import gold_of
from translucid.ground.errors import UserError

STARS = {
    "image": "train/1.png",
    "side": 80,
    "ground": "night sky",
    "things": [
        {"shape": "star", "colour": "red", "size": "small", "material": "striped"},
        {"shape": "star", "colour": "red", "size": "small", "material": "striped"},
        {"shape": "mouse", "colour": "blue", "size": "small", "material": "plain"},
    ],
    "boxes": [[0, 0, 20, 20], [0, 60, 25, 80], [40, 20, 60, 60]],
    "captions": [{"words": ["red", "stars"], "about": [[0, 1], [0, 1]]}],
}
GOLD = GoldImage.model_validate(STARS)


@pytest.fixture(scope="module")
def scenes():
    return list(generate(300))


def weights_at(row, column, rows=4, columns=4):
    table = np.full((rows, columns), 0.01)
    table[row, column] = 0.5
    return table.reshape(-1)


def test_a_cell_is_in_a_box_if_a_part_of_it_is_or_more_strictly_if_its_centre_is():
    """The grid has four cells a side; the box covers the second and third, and a fifth of the fourth."""
    box = (0.25, 0.25, 0.8, 0.5)
    expected = {0: (False, False), 1: (True, True), 2: (True, True), 3: (True, False)}
    for column, (overlaps, centred) in expected.items():
        (hit,) = pointing([weights_at(1, column)], (4, 4), [[box]])
        assert hit == Hit(1, column, overlaps, centred, 3 / 16, 2 / 16)
        for row in (0, 2, 3):
            (hit,) = pointing([weights_at(row, column)], (4, 4), [[box]])
            assert (hit.row, hit.column, hit.overlaps, hit.centred) == (row, column, False, False)


def test_a_box_that_begins_at_a_centre_has_it_and_one_that_ends_there_has_not():
    weights = np.stack([weights_at(1, column) for column in range(4)])
    hits = pointing(weights, (4, 4), [[(0.375, 0, 0.625, 1)]] * 4)
    assert [hit.centred for hit in hits] == [False, True, False, False]
    assert [hit.overlaps for hit in hits] == [False, True, True, False]


def test_a_box_between_the_centres_can_be_met_but_not_by_a_centre():
    (hit,) = pointing([weights_at(0, 0)], (4, 4), [[(0.2, 0.2, 0.3, 0.3)]])
    assert hit == Hit(0, 0, True, False, 4 / 16, 0)


def test_one_of_several_boxes_is_enough_and_cells_in_two_of_them_count_once():
    boxes = [(0, 0, 0.25, 0.25), (0.75, 0.75, 1, 1), (0.5, 0.75, 1, 1)]
    for cell in ((0, 0), (3, 3), (3, 2)):
        (hit,) = pointing([weights_at(*cell)], (4, 4), [boxes])
        assert hit == Hit(*cell, True, True, 3 / 16, 3 / 16)


def test_a_grid_has_rows_first():
    (hit,) = pointing([weights_at(1, 4, 2, 6)], (2, 6), [[(4 / 6, 0.5, 5 / 6, 1)]])
    assert hit == Hit(1, 4, True, True, 1 / 12, 1 / 12)


def test_weights_of_any_kind_and_words_without_boxes():
    table = np.stack([weights_at(0, 0), weights_at(3, 3), weights_at(1, 1)])
    targets = [[(0, 0, 0.1, 0.2)], None, []]
    expected = pointing(table, (4, 4), targets)
    assert expected[0].overlaps and expected[1:] == [None, None]
    for weights in (table.tolist(), torch.tensor(table, dtype=torch.bfloat16, requires_grad=True)):
        assert pointing(weights, (4, 4), targets) == expected
    assert pointing(np.zeros((1, 4)), (2, 2), [[(0, 0, 1, 1)]])[0][:2] == (0, 0)  # the first of equal weights


@pytest.mark.parametrize(
    ("weights", "grid", "targets"),
    [
        (np.zeros((1, 15)), (4, 4), [None]),
        (np.zeros((2, 16)), (4, 4), [None]),
        (np.zeros(16), (4, 4), [None]),
        (np.full((1, 16), np.nan), (4, 4), [None]),
    ],
)
def test_weights_that_do_not_fit_are_no_figures(weights, grid, targets):
    with pytest.raises(ValueError, match="weight"):
        pointing(weights, grid, targets)


def test_words_are_scored_by_kind():
    words = ["two", "red", "stars", "are", "left", "of", "a", "green", "mouse"]
    cells = [(0, 0), (3, 1), (1, 1), (0, 0), (2, 2), (0, 0), (0, 0), (1, 2), (3, 3)]
    points = points_of(words, [weights_at(*cell) for cell in cells], (4, 4), GOLD)
    assert [kind for kind, _ in points] == ["count", "colour", "object", "relation", "colour", "object"]
    assert [hit and (hit.overlaps, hit.centred) for _, hit in points] == [
        (True, True),
        (True, False),
        (False, False),
        None,  # there is no green mouse
        None,
        None,
    ]
    stars = 3 / 16, 2 / 16
    assert by_kind(points) == {
        "all": KindScore(6, 3, pytest.approx(2 / 3), pytest.approx(1 / 3), *map(pytest.approx, stars)),
        "count": KindScore(1, 1, 1, 1, *stars),
        "colour": KindScore(2, 1, 1, 0, *stars),
        "object": KindScore(2, 1, 0, 0, *stars),
        "relation": KindScore(1, 0, 0, 0, 0, 0),
    }
    assert by_kind([]) == {"all": KindScore(0, 0, 0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("caption", "about"),
    [
        ("red stars", [(0, 1), (0, 1)]),  # as in its own caption
        ("a small blue mouse", [(), (2,), (2,), (2,)]),
        ("two striped stars in the night sky", [(0, 1), (0, 1), (0, 1), (), (), (-1,), (-1,)]),
        ("three red stars on the grass", [None, (0, 1), (0, 1), (), (), ()]),
        ("one mouse is right of two stars", [(2,), (2,), (), (0, 1, 2), (), (0, 1), (0, 1)]),
        ("a large red star", [(), None, None, None]),
        ("a red blue mouse", [(), None, None, None]),
        ("small is blue", [None, (), None]),
        ("a dog above a star", [(), (), (0, 1), (), (0, 1)]),
        ("above", [None]),
        ("a dotted mouse under a star", [(), None, None, None, (), (0, 1)]),
        ("", []),
    ],
)
def test_what_generated_words_are_about(caption, about):
    assert gold_of_words(caption.split(), GOLD) == about


def test_noun_phrases_find_what_the_scenes_own_captions_are_about(scenes):
    compared = 0
    for scene in scenes:
        gold = GoldImage.model_validate_json(json.dumps({**gold_of("x", scene, 48), "captions": []}))
        for caption in scene.captions:
            for word, expected, about in zip(
                caption.words, caption.about, gold_of_words(caption.words, gold), strict=True
            ):
                if word in KINDS or word in scene.ground.split():
                    assert about == tuple(sorted(expected)), caption.text
                    compared += 1
    assert compared > 5000


def test_every_word_that_is_about_things_has_a_kind_and_no_other_word_has(scenes):
    things_by_word = {
        word: things for scene in scenes for caption in scene.captions for word, things in zip(*caption, strict=True)
    }
    grammar = {"of", "to", "the", "than", "in", "at"}
    assert {word for word, things in things_by_word.items() if things and min(things) >= 0} - grammar <= set(KINDS)
    assert not {word for word, things in things_by_word.items() if not things or min(things) < 0} & set(KINDS)
    assert {KINDS[word] for word in ("left", "bigger", "between", "inside", "corner", "top")} == {"relation"}
    assert set(KINDS.values()) == {"object", "colour", "size", "material", "relation", "count"}


def test_own_captions_are_looked_up_word_for_word(scenes):
    for scene in scenes[:50]:
        gold = GoldImage.model_validate_json(json.dumps(gold_of("x", scene, 48)))
        for caption in scene.captions:
            assert gold_of_words(caption.words, gold) == list(caption.about)


def test_attention_at_the_centre_of_the_named_box_is_right(scenes):
    for scene in scenes[:50]:
        gold = GoldImage.model_validate_json(json.dumps(gold_of("x", scene, 96)))
        words, about = scene.captions[0].words, scene.captions[0].about
        rows = []
        for things in about:
            left, top, right, bottom = gold.boxes[things[0]] if things and things[0] >= 0 else (0, 0, 2, 2)
            rows.append(weights_at(int((top + bottom) / 2 // 4), int((left + right) / 2 // 4), 24, 24))
        scores = by_kind(points_of(words, rows, (24, 24), gold))
        assert all(score.overlaps == 1 and score.judged == score.words for score in scores.values())
        assert scores["all"].chance < 0.5


def test_gold_is_read(scenes, tmp_path):
    file = tmp_path / "gold.jsonl"
    lines = [json.dumps(gold_of(f"train/{i}.png", scene, 48)) for i, scene in enumerate(scenes[:5])]
    file.write_text("".join(f"{line}\n" for line in lines))
    images = read_gold(file)
    assert list(images) == [f"train/{i}.png" for i in range(5)]
    gold = images["train/3.png"]
    thing = scenes[3].things[0]
    assert (gold.things[0].shape, gold.things[0].material) == (thing.shape, thing.material)
    assert gold.ground == scenes[3].ground and gold.captions[1].about == scenes[3].captions[1].about
    assert GOLD.box_of(2) == (0.5, 0.25, 0.75, 0.75)
    file.write_text(f"{lines[0]}\n{lines[1]}\n{lines[0]}\n")
    with pytest.raises(UserError, match=r"gold.jsonl:3: is the second line of train/0.png"):
        read_gold(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "Invalid JSON"),
        ("[]", "should be an object"),
        ("[" * 100_000, "Invalid JSON"),
        (json.dumps({key: value for key, value in STARS.items() if key != "things"}), "things: Field required"),
        (json.dumps({**STARS, "side": 0}), "side: "),
        (json.dumps({**STARS, "boxes": STARS["boxes"][:2]}), "2 boxes for 3 things"),
        (json.dumps({**STARS, "boxes": [[0, 0, 81, 20], *STARS["boxes"][1:]]}), "a box that is not in the picture"),
        (json.dumps({**STARS, "boxes": [[20, 0, 20, 20], *STARS["boxes"][1:]]}), "a box that is not in the picture"),
        (json.dumps({**STARS, "boxes": [[0, -1, 20, 20], *STARS["boxes"][1:]]}), "a box that is not in the picture"),
        (json.dumps({**STARS, "captions": [{"words": ["a"], "about": []}]}), "0 words that are about something, of 1"),
        (json.dumps({**STARS, "captions": [{"words": ["a"], "about": [[3]]}]}), "a thing that is not there"),
        (json.dumps({**STARS, "captions": [{"words": ["a"], "about": [[-2]]}]}), "a thing that is not there"),
    ],
)
def test_a_line_that_is_no_gold_is_refused_with_its_number(tmp_path, line, message):
    (tmp_path / "gold.jsonl").write_text(f"{json.dumps(STARS)}\n{line}\n")
    with pytest.raises(UserError, match=rf"gold.jsonl:2: is not a line of gold boxes .*{message}.*data scenes"):
        read_gold(tmp_path / "gold.jsonl")
