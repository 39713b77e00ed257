"""`look`, `explain` and `draw` with a run that reads images, and their options that are for texts only."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from translucid.captions.captioner import Captioner
from translucid.captions.scenes.writing import write_corpus
from translucid.cli.main import run as run_command
from translucid.inspection import explain as explanation

SHAPE = [
    "model.width=8",
    "model.heads=2",
    "model.feed_forward=8",
    "model.image_encoder.size=32",
    "model.image_encoder.stride=16",
    "model.image_encoder.channels=4",
    "data.tokenizer.vocabulary=200",
    "training.validate_sentences=2",
    "training.max_steps=2",
    "training.validate_every=2",
    "decoding.max_length_ratio=0",  # an untrained model writes up to the limit
    "decoding.max_length_extra=6",
]
CAPTION = "a large red star"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an image and three untrained runs: `transformer`, `soft` and `blind`."""
    folder = tmp_path_factory.mktemp("captioners")
    write_corpus(folder / "scenes", 30, size=32)
    corpus = [a for name in ("train", "valid") for a in (f"--{name}", folder / "scenes" / f"{name}.tsv")]
    for name, preset, settings in [
        ("transformer", "caption-transformer", SHAPE),
        ("soft", "caption-soft", [setting for setting in SHAPE if "heads" not in setting and "feed" not in setting]),
        (
            "blind",
            "caption-soft",
            [
                "model.attention=none",
                *(setting for setting in SHAPE if "heads" not in setting and "feed" not in setting),
            ],
        ),
    ]:
        images = ["--images", folder / "scenes" / "images.tar", "--out", folder / name]
        arguments = ["train", "--model", preset, *corpus, *images, "--set", *settings]
        assert run_command([str(a) for a in arguments]) == 0
    noise = np.random.default_rng(1).integers(0, 255, (40, 48, 3)).astype(np.uint8)
    Image.fromarray(noise).save(folder / "image.png")
    return folder


def test_the_layers_of_a_captioning_transformer(call, folder, tmp_path):
    file = tmp_path / "layers.json"
    arguments = ["look", folder / "transformer", folder / "image.png"]
    result = call(*arguments, "--target", CAPTION, "--lens", "logit", "--save", file)
    assert result.code == 0, result.err
    (record,) = json.loads(file.read_text())
    assert [word["word"] for word in record["words"]] == [*CAPTION.split(), "</s>"]
    result = call(*arguments, "--lens", "decoder", "--save", tmp_path / "captions.json")
    assert result.code == 0, result.err
    captions = json.loads((tmp_path / "captions.json").read_text())
    assert captions["translations"][-1] == Captioner.load(folder / "transformer").caption(folder / "image.png").text
    assert "tuned lens is for translators" in call(*arguments, "--lens", "tuned").err
    assert "a lens is for Transformers" in call("look", folder / "soft", folder / "image.png", "--lens", "logit").err


@pytest.mark.parametrize("ending", ["html", "png", "json", "npz"])
def test_look_saves_what_it_shows(call, folder, tmp_path, ending):
    file = tmp_path / f"looked.{ending}"
    result = call("look", folder / "transformer", folder / "image.png", "--target", CAPTION, "--save", file)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == CAPTION
    assert lines[2].split() == CAPTION.split()
    assert len([line for line in lines if re.search(r"\d%  ←  .*(top|middle|bottom|left|right)", line)]) == 4
    assert file.stat().st_size > 500
    arguments = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION, "--save", file]
    assert call(*arguments).code == 2


def test_look_at_a_layer_and_a_head(call, folder, tmp_path):
    base = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION]
    outputs = {
        call(*base, *options).out for options in ([], ["--layer", 1], ["--layer", 1, "--head", 0], ["--head", 1])
    }
    assert len(outputs) == 4
    for wrong in (["--layer", 2], ["--head", 2], ["--save", tmp_path / "x.gif"]):
        result = call(*base, *wrong)
        assert (result.code, result.out) == (2, "")
        assert len(result.err.strip().splitlines()) == 1
    html = tmp_path / "a.html"
    assert call(*base, "--save", html).code == 0
    assert html.read_text().count("<section") == 1 + 2 + 4


def test_look_by_another_method(call, folder, tmp_path):
    base = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION]
    outputs = {call(*base, *options).out for options in ([], ["--method", "norms"], ["--method", "contributions"])}
    assert len(outputs) == 3
    html = tmp_path / "a.html"
    assert call(*base, "--method", "contributions", "--save", html).code == 0
    assert "<summary>all layers and heads</summary>" in html.read_text()  # listed below the method's own map
    result = call("look", folder / "soft", *base[2:], "--method", "contributions")
    assert (result.code, result.out) == (2, "")
    assert "in a Transformer" in result.err and result.err.count("\n") == 1


def test_a_model_without_attention_says_so(call, folder, tmp_path):
    base = [folder / "blind", folder / "image.png", "--target", CAPTION]
    result = call("look", *base)
    assert result.code == 0 and CAPTION in result.out and "no attention" in result.out
    assert "no attention" in call("look", *base, "--save", tmp_path / "a.png").err
    assert "no attention" in call("explain", *base, "--method", "attention").err
    assert call("explain", *base, "--method", "erasure").code == 0


@pytest.mark.parametrize("method", ["erasure", "attention", "lime", "gradients", "random"])
def test_explain_measures_its_faithfulness(call, folder, method, tmp_path):
    base = ["explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--method", method, "--samples", 30]
    result = call(*base, "--save", tmp_path / "why.html")
    assert result.code == 0, result.err
    assert result.out.count("left out") == (1 if method == "random" else 2)
    assert "most important of" in result.out
    assert ("R²" in result.out) == (method == "lime")
    assert "depends on: " in (tmp_path / "why.html").read_text()
    record = json.loads(call(*base, "--json", "--share", 0.5).out)
    assert np.shape(record["importance"]) == (4, len(record["source"]))
    assert record["parts"] == ("superpixels" if method == "lime" else "cells")
    assert record["k"] == round(0.5 * len(record["source"]))
    assert set(record["faithfulness"]) == {method, "random"}


def test_a_word_of_a_caption_is_contrasted_with_another(call, folder, tmp_path):
    base = ["explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--instead-of", "the"]
    result = call(*base, "--word", 0, "--save", tmp_path / "why.html")
    assert result.code == 0, result.err
    assert "a instead of the (word 0): log-odds" in result.out and "log-odds lost" in result.out
    assert "instead of the depends on: " in (tmp_path / "why.html").read_text()
    record = json.loads(call(*base, "--json").out)
    assert len(record["importance"]) == 1 and record["contrast"]["instead_of"] == "the"


@pytest.mark.parametrize("ending", ["svg", "json"])
def test_an_explanation_is_saved(call, folder, tmp_path, ending):
    file = tmp_path / f"why.{ending}"
    result = call("explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--save", file)
    assert result.code == 0, result.err
    start = {"svg": b"<?xml", "pdf": b"%PDF", "json": b'{"image": "image.png"'}[ending]
    assert file.read_bytes().startswith(start)


def test_the_beam_the_heads_and_the_masks_are_drawn(call, folder, tmp_path, monkeypatch):
    image = folder / "image.png"
    for name, arguments in {
        "beam": ["beam", folder / "soft", image, "--beam", 3],
        "mask": ["mask", folder / "transformer", image, image, "--kind", "target"],
        "curves": ["curves", folder / "soft"],
    }.items():
        result = call("draw", *arguments, "--out", tmp_path / f"{name}.png")
        assert result.code == 0, result.err
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    from translucid.captions.captioner import Captioner

    monkeypatch.setattr(Captioner, "caption", lambda self, picture: _Inspected(self.inspect(picture, CAPTION)))
    heights = {}
    for name, options in {"all": [], "one": ["--layer", 1], "self": ["--kind", "decoder"]}.items():
        result = call("draw", "attention", folder / "transformer", image, *options, "--out", tmp_path / f"{name}.png")
        assert result.code == 0, result.err
        with Image.open(tmp_path / f"{name}.png") as figure:
            heights[name] = figure.height
    assert heights["all"] > 1.7 * heights["one"]


class _Inspected:
    """A caption with words in it, unlike those of an untrained model."""

    def __init__(self, looked):
        self.looked = looked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["look", "soft", "image.png", "--flow"], "--flow is for texts"),
        (["look", "soft", "--tsv", "x.tsv", "--save", "x.npz"], "--tsv is for texts"),
        (["look", "soft"], "no image"),
        (["look", "soft", "nothing.png"], "nothing.png: can't be read"),
        (["look", "soft", "scenes/train.tsv"], "not a picture"),
        (["look", "soft", "image.png", "--target", " "], "no words"),
        (["explain", "soft", "image.png", "--k", "2"], "--k is for texts"),
        (["explain", "soft", "image.png", "--share", "1.5"], "--share 1.5 is no share"),
        (["explain", "soft", "image.png", "--method", "limes"], "Did you mean 'lime'"),
        (["explain", "soft", "image.png", "--save", "x.npz"], "of no kind that can be written"),
        (["draw", "attention", "soft", "image.png", "--kind", "encoder", "--out", "x.png"], "no self-attention"),
        (["draw", "mask", "soft", "image.png", "--out", "x.png"], "a recurrent decoder has no target mask"),
        (["draw", "mask", "transformer", "image.png", "--kind", "padding", "--out", "x.png"], "have no padding"),
        (["draw", "beam", "soft", "nothing.png", "--out", "x.png"], "nothing.png: can't be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_options_for_images_are_one_line(call, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    result = call(*arguments)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.strip().splitlines()) == 1 and message in result.err
    assert not list(folder.glob("x.*"))


def test_image_options_for_texts_are_one_line(call, small_run, tmp_path):
    for options in (["--share", 0.2], ["--save", tmp_path / "x.png"]):
        result = call("explain", small_run, "I sing", *options)
        assert result.code == 2 and f"{options[0]} is for images" in result.err
        assert len(result.err.strip().splitlines()) == 1


def test_lime_on_images_says_what_it_needs(call, folder, monkeypatch):
    find_spec = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "skimage" else find_spec(name))
    result = call("explain", folder / "soft", folder / "image.png", "--method", "lime")
    assert result.code == 2 and "scikit-image" in result.err
