"""Pictures, pages and notebooks: they are made, they hold every word, and text in them stays text."""

import json
import re

import pytest
import torch

from translucid.attention import causal_mask
from translucid.decoding.trace import BeamTrace
from translucid.errors import UserError
from translucid.inspection.html import notebook_table, page, viewer_record
from translucid.inspection.inspected import Inspected
from translucid.inspection.plots import (
    draw_attention,
    draw_beam,
    draw_curves,
    draw_heads,
    draw_mask,
    draw_positions,
    draw_words,
    save_figure,
)
from translucid.inspection.saving import save
from translucid.inspection.words import WordMap
from translucid.layers.positions import sinusoidal_positions

PNG, SVG = b"\x89PNG", b"<?xml"


def example(source=("▁I", "▁li", "ke", "</s>"), target=("▁me", "▁gusta", "</s>")):
    generator = torch.Generator().manual_seed(4)
    rows, columns = len(target), len(source)
    shapes = {"encoder.0.self": (columns, columns), "decoder.0.self": (rows, rows), "decoder.0.cross": (rows, columns)}
    shapes["decoder.1.cross"] = (rows, columns)
    maps = {name: torch.rand(2, *shape, generator=generator).softmax(-1) for name, shape in shapes.items()}
    return Inspected(list(source), list(target), maps, [-0.1] * rows)


def texts(figure):
    return {text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_one_map_as_a_picture(tmp_path, ending):
    figure = draw_words(example().words())
    assert {"I", "like", "me", "gusta"} <= texts(figure)
    save_figure(figure, tmp_path / f"a.{ending}")
    start = {"png": PNG, "svg": SVG, "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(start)


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(UserError, match="png"):
        save_figure(draw_words(example().words()), tmp_path / "a.gif")
    with pytest.raises(UserError, match="html"):
        save([example()], tmp_path / "a.txt", "", "")


def test_heads_and_layers(tmp_path):
    titles = texts(draw_heads(example(), 1))
    assert {"layer 1, head 0", "layer 1, head 1"} <= titles
    for kind in ("cross", "encoder", "decoder"):
        save_figure(draw_attention(example(), kind), tmp_path / f"{kind}.png")
    with pytest.raises(UserError, match="no layer 2"):
        draw_heads(example(), 2)


def test_long_sentences_and_other_scripts(tmp_path):
    words = [f"▁слово{i}" for i in range(60)]
    save_figure(
        draw_words(example([*words, "</s>"], ["▁你好", "▁مرحبا", "▁$x_1$", "</s>"]).words()), tmp_path / "a.png"
    )
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_masks_positions_and_curves(tmp_path):
    save_figure(draw_mask(causal_mask(3), list("abc"), list("abc"), "past"), tmp_path / "m.png")
    padding = torch.tensor([[[[True, True, False]]]])
    draw_mask(padding, ["x", "y"], list("abc"))
    with pytest.raises(ValueError, match="2 rows"):
        draw_mask(causal_mask(3), ["a", "b"], list("abc"))
    assert len(draw_positions(sinusoidal_positions(50, 7)).axes) == 4
    rows = [
        {"kind": "training", "seconds": 6.0, "loss": 3.0, "learning_rate": 0.1},
        {"kind": "validation", "seconds": 12.0, "loss": 2.0, "bleu": 30.0},
    ]
    assert {"loss", "validation BLEU", "learning rate"} <= texts(draw_curves({"a": rows, "b": rows[:1]}))


def test_the_beam_tree(tmp_path):
    trace = BeamTrace()
    trace.begin(2)

    def step(total, parent, token, ends, live):
        trace.step(*(torch.tensor([x]) for x in (total, parent, token, ends, live)))

    step([-0.1, -2.0, -3.0], [0, 0, 0], [5, 6, 7], [False] * 3, [True, True, False])
    step([-0.2, -2.1, -float("inf")], [0, 1, 0], [3, 3, 3], [True, False, False], [False, False, False])
    assert [node.fate for node in trace.nodes] == ["kept", "kept", "kept", "dropped", "ended", "dropped"]
    assert trace.path(4) == [1, 4]
    assert trace.nodes[5].parent == 2
    figure = draw_beam(trace, lambda token: f"t{token}", 4)
    assert {"t5\n90%", "t3\n90%", "t7\n5%"} <= texts(figure)
    save_figure(figure, tmp_path / "b.svg")


def test_the_page_needs_no_network_and_text_stays_text(tmp_path):
    nasty = example(["▁</script><b>", "▁&", "</s>"], ["▁<i>", "</s>"])
    text = page([nasty], "</title><script>", "x")
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    assert text.count("</script>") == 1
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in text
    records = json.loads(re.search(r"const record of (\[.*\])\) \{", text)[1])
    assert records[0]["source"] == ["</script><b>", "&", "</s>"]
    assert "<i>" not in notebook_table(nasty.words())


def test_what_the_page_shows(tmp_path):
    record = viewer_record(example())
    names = [one["name"] for one in record["maps"]]
    assert names[0] == "all layers and heads"
    assert {"layer 1, all heads", "layer 0, head 1", "flow through all layers (rollout)"} <= set(names)
    for one in record["maps"]:
        assert len(one["weights"]) == len(record["target"]) == 3
        assert all(len(row) == len(record["source"]) == 3 for row in one["weights"])
    assert WordMap(["a"], ["b"], torch.ones(1, 1))


def test_several_pieces_are_several_pictures(tmp_path):
    save([example(), example()], tmp_path / "a.png", "x", "y", layer=1, head=0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a-2.png", "a.png"]
    save([example()], tmp_path / "a.json", "x", "y")
    assert Inspected.load(tmp_path / "a.json").target == ["▁me", "▁gusta", "</s>"]
