"""Where a captioner looked: it lights up there, in pictures, pages, notebooks and the terminal."""

import base64
import io
import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from translucid.corpora.scenes import generate
from translucid.corpora.scenes.painting import boxes, paint
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.inspected import Inspected
from translucid.inspection.plots import draw_saliency
from translucid.inspection.saliency_overlay import (
    AttentionResult,
    SaliencyOverlay,
    page,
    panels,
    places,
    sections_of,
    spread,
)
from translucid.inspection.saving import save_attention
from translucid.inspection.terminal import drawings, place_table

ROWS = COLUMNS = 4
SIDE = 32


def cells(*chosen):
    """Weights [1, S] that are alike on some cells of a grid of 4 x 4, and nowhere else."""
    weights = torch.zeros(ROWS, COLUMNS)
    for row, column in chosen:
        weights[row, column] = 1 / len(chosen)
    return weights.flatten()[None]


def looked(rows, words=("▁sm", "all", "▁star"), heads=1, pixels=None):
    """A caption whose words looked at given cells [T, S] with head 0 of layer 0, at the first cell with the others."""
    first = cells((0, 0)).expand(len(words) + 1, -1)
    maps = {"decoder.0.cross": torch.stack([torch.cat(rows), *[first] * (heads - 1)])}
    names = [f"▁{row},{column}" for row in range(ROWS) for column in range(COLUMNS)]
    log_probs = [math.log(p) for p in (0.5, 0.5, 0.75, 0.9)[: len(words) + 1]]
    pixels = np.full((SIDE, SIDE, 3), 200, np.uint8) if pixels is None else pixels
    return AttentionResult(pixels, (ROWS, COLUMNS), Inspected(names, [*words, "</s>"], maps, log_probs))


@pytest.fixture
def small_star():
    """`small` looked at the top left, whatever its second piece did; `star` at the bottom right."""
    return looked([cells((0, 0)), cells((3, 0)), cells((3, 3)), cells((0, 3))], heads=2)


def decoded(uri):
    return np.array(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_a_word_lights_up_where_its_first_piece_looked(small_star):
    lit = SaliencyOverlay.of(small_star, head=0)
    assert lit.words == ["small", "star"]
    assert lit.notes == ["25%", "75%"]
    corner, other = np.s_[:5, :5], np.s_[-5:, -5:]
    for word, (bright, dark) in enumerate([(corner, other), (other, corner)]):
        found = lit.brightness(word, SIDE, SIDE)
        assert found.max() == pytest.approx(1)
        assert found[bright].min() > 0.65 and found[dark].max() < 0.01
        panel = lit.panel(word, SIDE).astype(int)
        assert panel[bright].sum(-1).min() > 2 * panel[dark].sum(-1).max()
    assert [lit.places(i, 1)[0] for i in (0, 1)] == [("top left", 1), ("bottom right", 1)]


def test_upsampling_is_smooth_and_keeps_what_is_even():
    np.testing.assert_allclose(spread(np.full((3, 3), 0.25, np.float32), 20, 30), 0.25, rtol=1e-5)
    one = np.zeros((3, 3), np.float32)
    one[1, 1] = 1
    light = spread(one, 30, 30)
    np.testing.assert_allclose(light, light.T)
    np.testing.assert_allclose(light, light[::-1])
    assert np.unravel_index(light.argmax(), light.shape) in [(i, j) for i in (14, 15) for j in (14, 15)]
    assert np.abs(np.diff(light, axis=0)).max() < 0.15  # no steps at the borders of cells
    stripes = np.tile(np.array([0, 1], np.float32), (60, 30))
    np.testing.assert_allclose(spread(stripes, 8, 8)[:, 1:-1], 0.5, atol=0.01)  # what is made coarser is averaged


def test_nothing_lights_up_where_nothing_is_and_all_does_where_all_is_alike():
    picture = np.full((8, 8, 3), 100, np.uint8)
    lit = SaliencyOverlay(
        picture, ["a", "b"], ["", ""], np.stack([np.zeros((2, 2)), np.ones((2, 2))]).astype(np.float32)
    )
    assert not lit.brightness(0, 8, 8).any()
    assert lit.places_text(0) == "nothing in particular"
    np.testing.assert_allclose(lit.brightness(1, 8, 8), 1)


@pytest.mark.parametrize(
    ("shape", "cell", "place"),
    [
        ((3, 3), (0, 2), "top right"),
        ((12, 12), (3, 4), "top"),
        ((12, 12), (4, 3), "left"),
        ((12, 12), (8, 7), "bottom"),
        ((2, 2), (1, 0), "bottom left"),
        ((1, 1), (0, 0), "middle"),
        ((3, 6), (1, 3), "middle"),
    ],
)
def test_places_have_names(shape, cell, place):
    weights = np.zeros(shape, np.float32)
    weights[cell] = 0.5
    (name, share), *others = places(weights)
    assert (name, share) == (place, pytest.approx(1))
    assert not any(share for _, share in others)


@pytest.mark.parametrize("scene", [one for one in generate(20, split="test") if len(one.things) == 2][:4])
def test_the_gold_box_of_a_scene_lights_up(scene):
    """Weights on the cells that a gold box touches make that box the bright part of the image."""
    for left, top, right, bottom in boxes(scene, SIDE):
        size = SIDE // ROWS
        inside = [
            (row, column)
            for row in range(top // size, (bottom - 1) // size + 1)
            for column in range(left // size, (right - 1) // size + 1)
        ]
        one = looked([cells(*inside), cells((0, 0))], ["▁thing"], pixels=np.array(paint(scene, SIDE)))
        bright = SaliencyOverlay.of(one).brightness(0, SIDE, SIDE)
        box = np.zeros((SIDE, SIDE), bool)
        box[top:bottom, left:right] = True
        assert bright[box].mean() > max(0.6, 1.8 * bright[~box].mean())


def test_the_figure_has_the_image_and_a_panel_for_each_word(small_star, tmp_path):
    figure = draw_saliency(SaliencyOverlay.of(small_star, head=0), "layer 0, head 0")
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(shown) == 3
    assert [axes.get_title().strip() for axes in figure.axes] == ["", "small", "star"]
    assert np.asarray(shown[0]).min() == 200  # the picture alone
    assert np.asarray(shown[1])[:20, :20].min() > 100 > np.asarray(shown[1])[-20:, -20:].max()
    many = SaliencyOverlay(small_star.pixels, ["a"] * 11, [""] * 11, np.ones((11, 2, 2), np.float32))
    assert sum(bool(axes.images) for axes in draw_saliency(many).axes) == 12
    for ending in ("png", "svg", "pdf"):
        save_attention(small_star, tmp_path / f"a.{ending}", "a.png")
    with Image.open(tmp_path / "a.png") as image:
        image.load()
        assert image.width > image.height > 100
    assert (tmp_path / "a.svg").read_text().count("<image ") == 3
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(UserError, match="no head 2"):
        save_attention(small_star, tmp_path / "b.png", "a.png", head=2)


def test_the_page_needs_no_network_and_no_script(small_star, tmp_path):
    save_attention(small_star, tmp_path / "a.html", "a.png")
    text = (tmp_path / "a.html").read_text()
    assert not re.search(r"https?://|@import|<script|<link|\son\w+=", text)
    addresses = re.findall(r"url\(([^)]*)\)|src='([^']*)'", text)
    assert addresses and all((one or other).startswith("data:image/") for one, other in addresses)
    assert re.findall(r"<summary>(.*?)</summary>", text) == ["one panel a word", "layer 0, head 0", "layer 0, head 1"]
    sections = re.findall(r"<section.*?</section>", text, flags=re.DOTALL)
    assert [re.findall(r"class='word'>(.*?)<", one) for one in sections] == [["the image", "small", "star"]] * 3
    assert all(one.count("type='radio'") == 3 and one.count("checked") == 1 for one in sections)
    assert "25%; attends to: top left 100%" in sections[1]
    assert "75%; attends to: bottom right 100%" in sections[1]
    assert re.search(r"--picture: url\((.*?)\)", text)
    np.testing.assert_array_equal(decoded(re.search(r"--picture: url\((.*?)\)", text)[1]), small_star.pixels)


def test_what_lies_over_the_page_s_image_is_dark_where_the_word_did_not_look(small_star):
    section = page("a", {"head 0": SaliencyOverlay.of(small_star, head=0)})
    small, star = (decoded(uri)[..., 3] for uri in re.findall(r"class='overlay' style='.*?url\((.*?)\)", section))
    assert small[0, 0] < 80 < 180 < small[-1, -1]
    assert star[-1, -1] < 80 < 180 < star[0, 0]


def test_text_stays_text():
    nasty = looked([cells((0, 0))] * 2, ["▁</style><i>'"])
    for shown in (page("'><script>", sections_of(nasty)), panels(nasty)):
        assert "<i>" not in shown and "<script" not in shown
        assert "&lt;/style&gt;&lt;i&gt;&#x27;" in shown


def test_a_notebook_shows_the_image_and_a_panel_for_each_word(small_star):
    shown = panels(small_star)
    images = [decoded(uri) for uri in re.findall(r"src='(data:.*?)'", shown)]
    assert len(images) == 3
    assert "small <small" in shown and "star <small" in shown
    assert not re.search(r"https?://|<script|<style", shown)
    assert images[0].min() > 190 and images[1][-10:, -10:].max() < 120


def test_figures_are_kept(small_star, tmp_path):
    for ending in ("json", "npz"):
        save_attention(small_star, tmp_path / f"a.{ending}", "a.png")
    record = json.loads((tmp_path / "a.json").read_text())
    assert (record["image"], record["grid"], record["target_words"]) == ("a.png", [4, 4], ["small", "star", "</s>"])
    assert record["source"][5] == "▁1,1"
    assert record["attention"]["decoder.0.cross"][0][2][15] == 1
    arrays = np.load(tmp_path / "a.npz", allow_pickle=False)
    assert arrays["0/decoder.0.cross"].shape == (2, 4, 16)
    assert Inspected.load(tmp_path / "a.json").target == small_star.inspected.target


def test_the_terminal_shows_it_with_colours_and_without(small_star):
    lit = SaliencyOverlay.of(small_star, head=0)

    def shown(what, width=80):
        file = io.StringIO()
        Console(file=file, width=width).print(what)
        return file.getvalue().splitlines()

    plain = shown(drawings(lit, 80, colour=False))
    assert plain[0].split() == ["small", "star"]
    assert plain[1].split() == ["25%", "75%"]
    assert plain[2][0] != " " and plain[2][1:].isspace()  # small: the top left
    assert plain[3].rstrip()[-1] != " " and plain[3].index(plain[3].strip()) == 8 + 2 + 3  # star: the bottom right
    assert len(shown(drawings(lit, 10, colour=False), 10)) == 4 + 1 + 4  # below each other
    assert "▀▀▀▀" in shown(drawings(lit, 80, colour=True))[2]
    first = drawings(lit, 80, colour=True).renderables[2].spans[0].style  # the two cells at the top left, for `small`
    assert first.color.triplet.blue == 255 > 5 * first.bgcolor.triplet.blue
    last = drawings(lit, 80, colour=True).renderables[3].spans[-1].style  # those at the bottom right, for `star`
    assert last.bgcolor.triplet.blue == 255 > 5 * last.color.triplet.blue
    table = shown(place_table(lit))
    assert "top left 100%" in table[0] and "bottom right 100%" in table[1]
    coarse = SaliencyOverlay(lit.pixels, ["a"], [""], np.ones((1, 40, 40), np.float32))
    assert len(shown(drawings(coarse, 80, colour=False))) == 2 + 8
