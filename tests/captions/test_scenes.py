"""Scenes: captions are true of their pictures, and gold boxes enclose what is painted."""

import io
import json
import tarfile
from collections import Counter
from itertools import combinations, islice

import numpy as np
import pytest
from PIL import Image

from translucid.captions.scenes import GROUND, HELD_OUT_PAIRS, Scene, Thing, generate
from translucid.captions.scenes.generation import SPLITS, split_of
from translucid.captions.scenes.painting import SIZE, boxes, masks, paint
from translucid.captions.scenes.scene import COLOURS, COMMON, GROUNDS, MATERIALS, PLURALS, SHAPES, SIZES, far_apart
from translucid.captions.scenes.writing import spread_shapes
from translucid.cli.main import run
from translucid.ground.errors import UserError

SINGULARS = {plural: shape for shape, plural in PLURALS.items()} | {shape: shape for shape in PLURALS}
NUMBERS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5}


@pytest.fixture(scope="module")
def sample():
    return list(generate(600))


def groups_of(caption):
    """Return the noun phrases of a caption, found by articles and numbers: (number, words, indices of the things)."""
    groups = []
    for i, word in enumerate(caption.words):
        if word in NUMBERS and caption.text[:12] != "a picture of":
            j = i + 1
            while caption.words[j] not in SINGULARS:
                j += 1
            groups.append((NUMBERS[word], caption.words[i + 1 : j + 1], caption.about[j]))
    return groups


def test_the_same_seed_gives_the_same_scenes_and_pictures_and_another_does_not(sample):
    repeated = list(generate(20))
    assert repeated == sample[:20]
    assert all(paint(a).tobytes() == paint(b).tobytes() for a, b in zip(repeated, sample, strict=False))
    assert list(generate(20, seed=2)) != repeated


def test_splits_share_no_scene_and_the_last_has_what_the_others_lack():
    by_split = {split: list(generate(150, split=split)) for split in SPLITS}
    contents = Counter(scene.content for scenes in by_split.values() for scene in scenes)
    assert set(contents.values()) == {1}
    for split, scenes in by_split.items():
        assert {split_of(scene) for scene in scenes} == {split}
        for scene in scenes:
            unseen = {(thing.colour, thing.shape) for thing in scene.things} & HELD_OUT_PAIRS
            assert bool(unseen) == (split == "composition")
    assert {shape for _, shape in HELD_OUT_PAIRS} < set(PLURALS)
    assert 0.05 < len(HELD_OUT_PAIRS) / (len(COLOURS) * (len(PLURALS) - 2)) < 0.15


def test_every_caption_says_what_is_there(sample):
    for scene in sample:
        assert len({caption.text for caption in scene.captions}) == 5
        for caption in scene.captions:
            assert len(caption.words) == len(caption.about)
            for number, words, about in groups_of(caption):
                assert about in scene.groups and len(about) == number
                thing = scene.things[about[0]]
                assert SINGULARS[words[-1]] == thing.shape
                assert words[-1] == (thing.shape if number == 1 else PLURALS[thing.shape])
                adjectives = set(words[:-1])
                assert thing.colour in adjectives and adjectives <= set(thing.look)
                assert (thing.material in adjectives) == (thing.material != "plain")
            assert len(groups_of(caption)) == len(scene.groups)


def test_every_word_of_content_is_about_something_and_no_word_of_grammar_is(sample):
    content = {*COLOURS, *SIZES, *MATERIALS, *SINGULARS, "left", "right", "above", "below", "inside", "between"}
    grammar = {"a", "an", "is", "are", "there", "we", "see", "and", "picture", "shows"}
    for scene in sample:
        for caption in scene.captions:
            for word, about in zip(caption.words, caption.about, strict=True):
                if word in grammar:
                    assert not about
                elif word in content:
                    assert about and GROUND not in about
                elif word in scene.ground.split():
                    assert about == (GROUND,)


def test_verbs_and_articles_agree(sample):
    for scene in sample:
        for caption in scene.captions:
            words = caption.words
            for i, word in enumerate(words[:-1]):
                if word in ("a", "an"):
                    assert (word == "an") == (words[i + 1][0] in "aeiou")
            if words[0] == "there":
                assert (words[1] == "is") == (len(scene.groups[0]) == 1)
            elif words[0] in NUMBERS and {"is", "are"} & set(words):
                assert ("is" in words) == (NUMBERS[words[0]] == 1)


def test_relations_hold_in_the_picture(sample):
    counts = Counter()
    for scene in sample:
        counts[scene.relation] += 1
        if scene.relation is None:
            continue
        scene_boxes = boxes(scene)
        first = [scene_boxes[i] for i in scene.groups[0]]
        second = [scene_boxes[i] for i in scene.groups[1]]
        area = [(right - left) * (bottom - top) for left, top, right, bottom in scene_boxes]
        if scene.relation == "left":
            assert all(a[2] <= b[0] for a in first for b in second)
        elif scene.relation == "right":
            assert all(a[0] >= b[2] for a in first for b in second)
        elif scene.relation == "above":
            assert all(a[3] <= b[1] for a in first for b in second)
        elif scene.relation == "below":
            assert all(a[1] >= b[3] for a in first for b in second)
        elif scene.relation == "inside":
            (a,), (b,) = first, second
            assert a[0] > b[0] and a[1] > b[1] and a[2] < b[2] and a[3] < b[3]
        elif scene.relation == "larger":
            assert area[0] > area[1]
        elif scene.relation == "smaller":
            assert area[0] < area[1]
        else:
            middle, former, latter = ((a + c) / 2 for a, _, c, _ in scene_boxes), scene_boxes[1], scene_boxes[2]
            x, y = next(middle), (scene_boxes[0][1] + scene_boxes[0][3]) / 2
            across = sorted([(former[0] + former[2]) / 2, (latter[0] + latter[2]) / 2])
            down = sorted([(former[1] + former[3]) / 2, (latter[1] + latter[3]) / 2])
            assert across[0] < x < across[1] or down[0] < y < down[1]
            assert former[2] <= latter[0] or former[3] <= latter[1]  # the left or the upper one is named first
    assert set(counts) == {None, "left", "right", "above", "below", "inside", "larger", "smaller", "between"}


def test_of_a_small_thing_and_a_huge_one_the_size_is_told(sample):
    for scene in sample:
        if len(scene.things) == 2 and {thing.size for thing in scene.things} == {"small", "huge"}:
            assert scene.relation in ("larger", "smaller", "inside")


def is_plain(scene):
    return all(thing.material == "plain" for thing in scene.things)


def test_things_are_painted_where_their_masks_are_in_their_colours(sample):
    for scene in islice(filter(is_plain, sample), 60):
        picture = np.asarray(paint(scene), float)
        for thing, mask in zip(scene.things, masks(scene), strict=True):
            assert mask.sum() >= 20
            distance = np.linalg.norm(np.median(picture[mask], 0) - COLOURS[thing.colour])
            assert distance < 30, thing
        background = ~masks(scene).any(0)
        distance = np.linalg.norm(np.median(picture[background], 0) - GROUNDS[scene.ground][1])
        assert distance < 60


def test_masks_do_not_overlap_and_fill_their_boxes(sample):
    for scene in sample[:80]:
        scene_masks = masks(scene, 128)
        assert scene_masks.shape == (len(scene.things), 128, 128) and scene_masks.sum(0).max() == 1
        for mask, (left, top, right, bottom) in zip(scene_masks, boxes(scene, 128), strict=True):
            assert not mask[:top].any() and not mask[bottom:].any()
            assert not mask[:, :left].any() and not mask[:, right:].any()
            inside = mask[top:bottom, left:right]
            assert inside.any(0)[[0, -1]].all() and inside.any(1)[[0, -1]].all()


def test_colours_can_be_told_from_the_ground(sample):
    for scene in sample:
        assert all(far_apart(COLOURS[thing.colour], GROUNDS[scene.ground][1]) for thing in scene.things)


def test_every_word_of_the_lexicon_is_used_and_there_are_a_few_hundred():
    words = {word for scene in generate(3000) for caption in scene.captions for word in caption.words}
    assert {*SINGULARS, *COLOURS, *SIZES, *MATERIALS[1:]} <= words
    assert {word for ground in GROUNDS for word in ground.split()} <= words
    assert len(words) == 239


def test_no_shape_looks_like_another_even_when_small():
    def mask_of(shape):
        thing = Thing(shape, "red", "small", "plain", 0.5, 0.5, SIZES["small"])
        return masks(Scene("snow", (thing,), ((0,),), None, ()))[0]

    shape_masks = {shape: mask_of(shape) for shape in PLURALS}
    for first, second in combinations(shape_masks, 2):
        assert (shape_masks[first] & shape_masks[second]).sum() < 0.9 * (
            shape_masks[first] | shape_masks[second]
        ).sum(), (first, second)


def test_the_first_shapes_of_few_are_common_ones_and_stay_the_same():
    twelve = "anchor bell bow circle cup flag heart knife moon oval square tree"
    assert spread_shapes(12) == twelve.split()  # the shapes of the captioning demo
    assert spread_shapes(len(COMMON)) == list(COMMON) and spread_shapes(len(SHAPES)) == list(SHAPES)
    for count in range(1, len(SHAPES) + 1):
        assert len(set(spread_shapes(count))) == count


def test_the_command_takes_as_many_shapes_as_there_are(tmp_path, capfd):
    command = ["data", "scenes", str(tmp_path / "scenes"), "--count", "1", "--size", "32", "--shapes"]
    assert run([*command, str(len(SHAPES) + 1)]) == 2 and f"equal to {len(SHAPES)} " in capfd.readouterr().err
    assert run([*command, str(len(SHAPES))]) == 0


def test_an_unknown_split_is_refused():
    with pytest.raises(UserError, match="unknown split"):
        generate(1, split="dev")


def test_the_command_writes_a_corpus(tmp_path, capfd):
    out = tmp_path / "scenes"
    command = ["data", "scenes", str(out), "--count", "12", "--size", "48"]
    assert run(command) == 0
    images = {}
    with tarfile.open(out / "images.tar") as archive:
        for entry in archive:
            images[entry.name] = Image.open(io.BytesIO(archive.extractfile(entry).read()))
    gold = [json.loads(line) for line in (out / "gold.jsonl").read_text().splitlines()]
    assert [record["image"] for record in gold] == list(images) and len(gold) == 12 + 3
    assert all(image.size == (48, 48) and image.mode == "RGB" for image in images.values())
    for split, count in {"train": 12, "valid": 1, "test": 1, "composition": 1}.items():
        lines = [line.split("\t") for line in (out / f"{split}.tsv").read_text().splitlines()]
        assert len(lines) == 5 * count
        expected = [
            [record["image"], " ".join(caption["words"])]
            for record in gold
            if record["image"].startswith(f"{split}/")
            for caption in record["captions"]
        ]
        assert lines == expected
    scene = next(generate(1))
    assert gold[0]["boxes"] == [list(box) for box in boxes(scene, 48)]
    assert (gold[0]["side"], gold[0]["ground"]) == (48, scene.ground)
    attributes = [(row["shape"], row["colour"], row["size"], row["material"]) for row in gold[0]["things"]]
    assert attributes == [(thing.shape, thing.colour, thing.size, thing.material) for thing in scene.things]
    assert np.array_equal(np.asarray(images["train/000000.png"]), np.asarray(paint(scene, 48)))
    capfd.readouterr()
    before = (out / "images.tar").read_bytes()
    assert run(command) == 2 and "--overwrite" in capfd.readouterr().err
    assert (out / "images.tar").read_bytes() == before
    assert run([*command, "--overwrite"]) == 0 and (out / "images.tar").read_bytes() == before
    (tmp_path / "file").touch()
    assert run(["data", "scenes", str(tmp_path / "file"), "--count", "12"]) == 2


def test_the_usual_size(sample):
    assert paint(sample[0]).size == (SIZE, SIZE)


@pytest.mark.parametrize("colour", ["red", "black"])
def test_each_material_has_its_own_pattern_on_the_colour(colour):
    def inside(material):
        thing = Thing("square", colour, "huge", material, 0.5, 0.5, SIZES["huge"])
        scene = Scene("snow", (thing,), ((0,),), None, ())
        middle = slice(40, 60)
        return np.asarray(paint(scene, 100), int)[middle, middle]

    patterns = {material: inside(material) for material in MATERIALS}
    assert (patterns["plain"] == COLOURS[colour]).all()
    for first, second in combinations(MATERIALS, 2):
        assert (abs(patterns[first] - patterns[second]).max(-1) > 20).mean() > 0.1, (first, second)
    for material in ("striped", "dotted", "checked"):  # two colours, and edges smoothed between them
        assert (patterns[material] == COLOURS[colour]).all(-1).mean() > 0.1
        assert len(np.unique(patterns[material].reshape(-1, 3), axis=0)) > 2
