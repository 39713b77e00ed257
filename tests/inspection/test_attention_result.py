"""The attention of a captioner as a saliency overlay: in figures, pages, notebooks and the terminal."""

import base64
import io
import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from translucid.captions.saliency_overlay import (
    AttentionResult,
    SaliencyOverlay,
    draw_saliency,
    drawings,
    page,
    panels,
    place_table,
    places,
    save_attention,
    sections_of,
    spread,
)
from translucid.captions.scenes import generate
from translucid.captions.scenes.painting import boxes, paint
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.inspected import Inspected

ROWS = COLUMNS = 4
SIDE = 32


def cells(*chosen):
    """Return weights [1, S] that are equal on the chosen cells of a 4 x 4 grid, and 0 elsewhere."""
    weights = torch.zeros(ROWS, COLUMNS)
    for row, column in chosen:
        weights[row, column] = 1 / len(chosen)
    return weights.flatten()[None]


def caption_attending(rows, words=("▁sm", "all", "▁star"), heads=1, pixels=None):
    """Return a caption with attention `rows` [T, S] in head 0 of layer 0; other heads attend to the first cell."""
    first = cells((0, 0)).expand(len(words) + 1, -1)
    maps = {"decoder.0.cross": torch.stack([torch.cat(rows), *[first] * (heads - 1)])}
    names = [f"▁{row},{column}" for row in range(ROWS) for column in range(COLUMNS)]
    log_probs = [math.log(p) for p in (0.5, 0.5, 0.75, 0.9)[: len(words) + 1]]
    pixels = np.full((SIDE, SIDE, 3), 200, np.uint8) if pixels is None else pixels
    return AttentionResult(pixels, (ROWS, COLUMNS), Inspected(names, [*words, "</s>"], maps, log_probs))


@pytest.fixture
def small_star():
    """A caption in which the first piece of `small` attends to the top left, and `star` to the bottom right."""
    return caption_attending([cells((0, 0)), cells((3, 0)), cells((3, 3)), cells((0, 3))], heads=2)


def decoded(uri):
    return np.array(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_an_overlay_is_bright_where_the_first_piece_of_a_word_attends(small_star):
    overlay = SaliencyOverlay.of(small_star, head=0)
    assert overlay.words == ["small", "star"]
    assert overlay.notes == ["25%", "75%"]
    corner, other = np.s_[:5, :5], np.s_[-5:, -5:]
    for word, (bright, dark) in enumerate([(corner, other), (other, corner)]):
        brightness = overlay.brightness(word, SIDE, SIDE)
        assert brightness.max() == pytest.approx(1)
        assert brightness[bright].min() > 0.65 and brightness[dark].max() < 0.01
        panel = overlay.panel(word, SIDE).astype(int)
        assert panel[bright].sum(-1).min() > 2 * panel[dark].sum(-1).max()
    assert [overlay.places(i, 1)[0] for i in (0, 1)] == [("top left", 1), ("bottom right", 1)]


def test_upsampling_is_smooth_and_keeps_what_is_even():
    np.testing.assert_allclose(spread(np.full((3, 3), 0.25, np.float32), 20, 30), 0.25, rtol=1e-5)
    peak = np.zeros((3, 3), np.float32)
    peak[1, 1] = 1
    light = spread(peak, 30, 30)
    np.testing.assert_allclose(light, light.T)
    np.testing.assert_allclose(light, light[::-1])
    assert np.unravel_index(light.argmax(), light.shape) in [(i, j) for i in (14, 15) for j in (14, 15)]
    assert np.abs(np.diff(light, axis=0)).max() < 0.15  # no steps at the borders of cells
    stripes = np.tile(np.array([0, 1], np.float32), (60, 30))
    np.testing.assert_allclose(spread(stripes, 8, 8)[:, 1:-1], 0.5, atol=0.01)  # downsampling averages


def test_overlays_of_zero_and_of_equal_weights():
    picture = np.full((8, 8, 3), 100, np.uint8)
    overlay = SaliencyOverlay(
        picture, ["a", "b"], ["", ""], np.stack([np.zeros((2, 2)), np.ones((2, 2))]).astype(np.float32)
    )
    assert not overlay.brightness(0, 8, 8).any()
    assert overlay.places_text(0) == "nothing in particular"
    np.testing.assert_allclose(overlay.brightness(1, 8, 8), 1)


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
def test_names_of_regions(shape, cell, place):
    weights = np.zeros(shape, np.float32)
    weights[cell] = 0.5
    (name, share), *others = places(weights)
    assert (name, share) == (place, pytest.approx(1))
    assert not any(share for _, share in others)


@pytest.mark.parametrize("scene", [scene for scene in generate(20, split="test") if len(scene.things) == 2][:4])
def test_attention_on_a_gold_box_makes_the_box_bright(scene):
    """If all attention is on the cells that a gold box touches, the box is the bright part of the image."""
    for left, top, right, bottom in boxes(scene, SIDE):
        size = SIDE // ROWS
        inside = [
            (row, column)
            for row in range(top // size, (bottom - 1) // size + 1)
            for column in range(left // size, (right - 1) // size + 1)
        ]
        result = caption_attending([cells(*inside), cells((0, 0))], ["▁thing"], pixels=np.array(paint(scene, SIDE)))
        bright = SaliencyOverlay.of(result).brightness(0, SIDE, SIDE)
        box = np.zeros((SIDE, SIDE), bool)
        box[top:bottom, left:right] = True
        assert bright[box].mean() > max(0.6, 1.8 * bright[~box].mean())


def test_the_figure_has_the_image_and_a_panel_for_each_word(small_star, tmp_path):
    figure = draw_saliency(SaliencyOverlay.of(small_star, head=0), "layer 0, head 0")
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(shown) == 3
    assert [axes.get_title().strip() for axes in figure.axes] == ["", "small", "star"]
    assert np.asarray(shown[0]).min() == 200  # the image without an overlay
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
    assert addresses and all((background or source).startswith("data:image/") for background, source in addresses)
    assert re.findall(r"<summary>(.*?)</summary>", text) == ["one panel a word", "layer 0, head 0", "layer 0, head 1"]
    sections = re.findall(r"<section.*?</section>", text, flags=re.DOTALL)
    assert [re.findall(r"class='word'>(.*?)<", section) for section in sections] == [["the image", "small", "star"]] * 3
    assert all(section.count("type='radio'") == 3 and section.count("checked") == 1 for section in sections)
    assert "25%; attends to: top left 100%" in sections[1]
    assert "75%; attends to: bottom right 100%" in sections[1]
    assert re.search(r"--picture: url\((.*?)\)", text)
    np.testing.assert_array_equal(decoded(re.search(r"--picture: url\((.*?)\)", text)[1]), small_star.pixels)


def test_the_overlay_of_a_page_is_dark_where_a_word_does_not_attend(small_star):
    section = page("a", {"head 0": SaliencyOverlay.of(small_star, head=0)})
    small, star = (decoded(uri)[..., 3] for uri in re.findall(r"class='overlay' style='.*?url\((.*?)\)", section))
    assert small[0, 0] < 80 < 180 < small[-1, -1]
    assert star[-1, -1] < 80 < 180 < star[0, 0]


def test_text_is_escaped():
    nasty = caption_attending([cells((0, 0))] * 2, ["▁</style><i>'"])
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


def test_weights_are_saved_and_loaded(small_star, tmp_path):
    for ending in ("json", "npz"):
        save_attention(small_star, tmp_path / f"a.{ending}", "a.png")
    record = json.loads((tmp_path / "a.json").read_text())
    assert (record["image"], record["grid"], record["target_words"]) == ("a.png", [4, 4], ["small", "star", "</s>"])
    assert record["source"][5] == "▁1,1"
    assert record["attention"]["decoder.0.cross"][0][2][15] == 1
    arrays = np.load(tmp_path / "a.npz", allow_pickle=False)
    assert arrays["0/decoder.0.cross"].shape == (2, 4, 16)
    assert Inspected.load(tmp_path / "a.json").target == small_star.inspected.target


def test_the_terminal_shows_overlays_with_and_without_colors(small_star):
    overlay = SaliencyOverlay.of(small_star, head=0)

    def shown(renderable, width=80):
        file = io.StringIO()
        Console(file=file, width=width).print(renderable)
        return file.getvalue().splitlines()

    plain = shown(drawings(overlay, 80, color=False))
    assert plain[0].split() == ["small", "star"]
    assert plain[1].split() == ["25%", "75%"]
    assert plain[2][0] != " " and plain[2][1:].isspace()  # small: the top left
    assert plain[3].rstrip()[-1] != " " and plain[3].index(plain[3].strip()) == 8 + 2 + 3  # star: the bottom right
    assert len(shown(drawings(overlay, 10, color=False), 10)) == 4 + 1 + 4  # the images are below each other
    assert "▀▀▀▀" in shown(drawings(overlay, 80, color=True))[2]
    first = drawings(overlay, 80, color=True).renderables[2].spans[0].style  # two cells at the top left, for `small`
    assert first.color.triplet.blue == 255 > 5 * first.bgcolor.triplet.blue
    last = drawings(overlay, 80, color=True).renderables[3].spans[-1].style  # those at the bottom right, for `star`
    assert last.bgcolor.triplet.blue == 255 > 5 * last.color.triplet.blue
    table = shown(place_table(overlay))
    assert "top left 100%" in table[0] and "bottom right 100%" in table[1]
    coarse = SaliencyOverlay(overlay.pixels, ["a"], [""], np.ones((1, 40, 40), np.float32))
    assert len(shown(drawings(coarse, 80, color=False))) == 2 + 8
