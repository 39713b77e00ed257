"""`look`, `explain` and `draw` with a run whose model reads images, and what of them is for texts only."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from translucid.api.captioner import Captioner
from translucid.cli.main import run as run_command
from translucid.corpora.scenes.writing import write_corpus
from translucid.inspection.explain import explanation

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
    "decoding.max_length_ratio=0",  # who has learned nothing writes to the limit, and each token is drawn
    "decoding.max_length_extra=6",
]
CAPTION = "a large red star"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an image and with runs that have learned nothing: `transformer`, `soft` and `blind`."""
    folder = tmp_path_factory.mktemp("captioners")
    write_corpus(folder / "scenes", 30, size=32)
    corpus = [a for name in ("train", "valid") for a in (f"--{name}", folder / "scenes" / f"{name}.tsv")]
    for name, preset, settings in [
        ("transformer", "caption-transformer", SHAPE),
        ("soft", "caption-soft", [one for one in SHAPE if "heads" not in one and "feed" not in one]),
        (
            "blind",
            "caption-soft",
            ["model.attention=none", *(o for o in SHAPE if "heads" not in o and "feed" not in o)],
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
    done = call(*arguments, "--target", CAPTION, "--lens", "logit", "--save", file)
    assert done.code == 0, done.err
    (record,) = json.loads(file.read_text())
    assert [word["word"] for word in record["words"]] == [*CAPTION.split(), "</s>"]
    done = call(*arguments, "--lens", "decoder", "--save", tmp_path / "captions.json")
    assert done.code == 0, done.err
    captions = json.loads((tmp_path / "captions.json").read_text())
    assert captions["translations"][-1] == Captioner.load(folder / "transformer").caption(folder / "image.png").text
    assert "tuned lens is for translators" in call(*arguments, "--lens", "tuned").err
    assert "a lens is for Transformers" in call("look", folder / "soft", folder / "image.png", "--lens", "logit").err


@pytest.mark.parametrize("ending", ["html", "png", "json", "npz"])
def test_look_saves_what_it_shows(call, folder, tmp_path, ending):
    file = tmp_path / f"looked.{ending}"
    done = call("look", folder / "transformer", folder / "image.png", "--target", CAPTION, "--save", file)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == CAPTION
    assert lines[2].split() == CAPTION.split()
    assert len([line for line in lines if re.search(r"\d%  ←  .*(top|middle|bottom|left|right)", line)]) == 4
    assert file.stat().st_size > 500
    again = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION, "--save", file]
    assert call(*again).code == 2


def test_look_at_a_layer_and_a_head(call, folder, tmp_path):
    base = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION]
    outs = {call(*base, *more).out for more in ([], ["--layer", 1], ["--layer", 1, "--head", 0], ["--head", 1])}
    assert len(outs) == 4
    for wrong in (["--layer", 2], ["--head", 2], ["--save", tmp_path / "x.gif"]):
        done = call(*base, *wrong)
        assert (done.code, done.out) == (2, "")
        assert len(done.err.strip().splitlines()) == 1
    html = tmp_path / "a.html"
    assert call(*base, "--save", html).code == 0
    assert html.read_text().count("<section") == 1 + 2 + 4


def test_look_by_another_method(call, folder, tmp_path):
    base = ["look", folder / "transformer", folder / "image.png", "--target", CAPTION]
    outs = {call(*base, *more).out for more in ([], ["--method", "norms"], ["--method", "contributions"])}
    assert len(outs) == 3
    html = tmp_path / "a.html"
    assert call(*base, "--method", "contributions", "--save", html).code == 0
    assert "<summary>all layers and heads</summary>" in html.read_text()  # after that of the method
    done = call("look", folder / "soft", *base[2:], "--method", "contributions")
    assert (done.code, done.out) == (2, "")
    assert "in a Transformer" in done.err and done.err.count("\n") == 1


def test_a_model_without_attention_says_so(call, folder, tmp_path):
    base = [folder / "blind", folder / "image.png", "--target", CAPTION]
    done = call("look", *base)
    assert done.code == 0 and CAPTION in done.out and "no attention" in done.out
    assert "no attention" in call("look", *base, "--save", tmp_path / "a.png").err
    assert "no attention" in call("explain", *base, "--method", "attention").err
    assert call("explain", *base, "--method", "erasure").code == 0


@pytest.mark.parametrize("method", ["erasure", "attention", "lime", "gradients", "random"])
def test_explain_tests_itself(call, folder, method, tmp_path):
    base = ["explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--method", method, "--samples", 30]
    done = call(*base, "--save", tmp_path / "why.html")
    assert done.code == 0, done.err
    assert done.out.count("left out") == (1 if method == "random" else 2)
    assert "most important of" in done.out
    assert ("R²" in done.out) == (method == "lime")
    assert "depends on: " in (tmp_path / "why.html").read_text()
    record = json.loads(call(*base, "--json", "--share", 0.5).out)
    assert np.shape(record["importance"]) == (4, len(record["source"]))
    assert record["parts"] == ("superpixels" if method == "lime" else "cells")
    assert record["k"] == round(0.5 * len(record["source"]))
    assert set(record["faithfulness"]) == {method, "random"}


def test_a_word_of_a_caption_is_contrasted_with_another(call, folder, tmp_path):
    base = ["explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--instead-of", "the"]
    done = call(*base, "--word", 0, "--save", tmp_path / "why.html")
    assert done.code == 0, done.err
    assert "a instead of the (word 0): log-odds" in done.out and "log-odds lost" in done.out
    assert "instead of the depends on: " in (tmp_path / "why.html").read_text()
    record = json.loads(call(*base, "--json").out)
    assert len(record["importance"]) == 1 and record["contrast"]["instead_of"] == "the"


@pytest.mark.parametrize("ending", ["svg", "pdf", "json"])
def test_an_explanation_is_saved(call, folder, tmp_path, ending):
    file = tmp_path / f"why.{ending}"
    done = call("explain", folder / "soft", folder / "image.png", "--target", CAPTION, "--save", file)
    assert done.code == 0, done.err
    start = {"svg": b"<?xml", "pdf": b"%PDF", "json": b'{"image": "image.png"'}[ending]
    assert file.read_bytes().startswith(start)


def test_the_beam_the_heads_and_the_masks_are_drawn(call, folder, tmp_path, monkeypatch):
    image = folder / "image.png"
    for name, arguments in {
        "beam": ["beam", folder / "soft", image, "--beam", 3],
        "mask": ["mask", folder / "transformer", image, image, "--kind", "target"],
        "curves": ["curves", folder / "soft"],
    }.items():
        done = call("draw", *arguments, "--out", tmp_path / f"{name}.png")
        assert done.code == 0, done.err
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    from translucid.api.captioner import Captioner

    monkeypatch.setattr(Captioner, "caption", lambda self, picture: _Said(self.inspect(picture, CAPTION)))
    wide = {}
    for name, more in {"all": [], "one": ["--layer", 1], "self": ["--kind", "decoder"]}.items():
        done = call("draw", "heads", folder / "transformer", image, *more, "--out", tmp_path / f"{name}.png")
        assert done.code == 0, done.err
        with Image.open(tmp_path / f"{name}.png") as drawn:
            wide[name] = drawn.height
    assert wide["all"] > 1.7 * wide["one"]


class _Said:
    """A caption with words in it, which a model that has learned nothing may not write."""

    def __init__(self, looked):
        self.looked = looked


@pytest.mark.parametrize(
    ("arguments", "said"),
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
        (["draw", "heads", "soft", "image.png", "--kind", "encoder", "--out", "x.png"], "no self-attention"),
        (["draw", "mask", "soft", "image.png", "--out", "x.png"], "a recurrent decoder has no target mask"),
        (["draw", "mask", "transformer", "image.png", "--kind", "padding", "--out", "x.png"], "have no padding"),
        (["draw", "beam", "soft", "nothing.png", "--out", "x.png"], "nothing.png: can't be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_for_images_or_wrong_is_one_line(call, folder, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1 and said in done.err
    assert not list(folder.glob("x.*"))


def test_what_is_not_for_texts_is_one_line(call, small_run, tmp_path):
    for more in (["--share", 0.2], ["--save", tmp_path / "x.png"]):
        done = call("explain", small_run, "I sing", *more)
        assert done.code == 2 and f"{more[0]} is for images" in done.err
        assert len(done.err.strip().splitlines()) == 1


def test_lime_on_images_says_what_it_needs(call, folder, monkeypatch):
    known = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "skimage" else known(name))
    done = call("explain", folder / "soft", folder / "image.png", "--method", "lime")
    assert done.code == 2 and "scikit-image" in done.err
