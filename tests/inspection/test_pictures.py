"""Figures, pages and notebooks of attention: they contain every word, and text in them is escaped."""

import json
import math
import re
from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.layout_engine import ConstrainedLayoutEngine

from translucid.attention import causal_mask
from translucid.attention.masks import padding_mask, target_mask
from translucid.decoding.hypothesis import percent
from translucid.decoding.trace import BeamTrace
from translucid.ground.errors import UserError
from translucid.inspection.inspected import SIDES, Inspected, page, viewer_record
from translucid.inspection.plots import (
    MAX_WIDTH,
    bands,
    draw_attention,
    draw_beam,
    draw_curves,
    draw_heads,
    draw_mask,
    draw_masks,
    draw_padding,
    draw_positions,
    draw_ribbons,
    draw_words,
    new_figure,
    rendered,
    save_figure,
)
from translucid.inspection.rendering.html import notebook_table
from translucid.inspection.rendering.saving import save, save_maps
from translucid.inspection.words import WordMap, word_map
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
    content = (tmp_path / f"a.{ending}").read_bytes()
    assert content.startswith(start)
    if ending == "svg":
        assert b">gusta</text>" in content
    if ending == "pdf":
        assert b"/Subtype /CIDFontType2" in content and b"/Subtype /Type3" not in content


def test_ribbons_are_as_wide_as_the_weights(tmp_path):
    words = example().words()
    figure = draw_ribbons(words, [-0.1] * 3)
    assert {"I", "like", "me", "gusta"} <= texts(figure)
    save_figure(figure, tmp_path / "a.pdf")
    weights = [[0.75, 0.25, 0.0], [0.0, -0.5, 0.01]]
    ribbons = bands(weights, [(0, 1), (2, 3), (4, 4.1)], [(0, 1), (2, 3)])
    assert [weight for weight, _, _ in ribbons] == [0.75, 0.25, -0.5]  # weights of nearly 0 are not drawn
    widths = [round(into[1] - into[0], 6) for _, _, into in ribbons]
    assert widths == [0.75 * MAX_WIDTH, 0.25 * MAX_WIDTH, 0.5 * MAX_WIDTH]
    assert ribbons[0][2][1] == pytest.approx(ribbons[1][2][0])  # side by side
    ((_, start, into),) = bands([[0.0, 1.0]], [(0, 1), (2, 2.1)], [(0, 1)])
    assert start == pytest.approx((2, 2.1)) and into[1] - into[0] == pytest.approx(MAX_WIDTH)


def test_unknown_file_endings_are_refused(tmp_path):
    with pytest.raises(UserError, match="png"):
        save_figure(draw_words(example().words()), tmp_path / "a.gif")
    with pytest.raises(UserError, match="html"):
        save([example()], tmp_path / "a.txt", "", "")


def test_heads_and_layers(tmp_path):
    titles = texts(draw_heads(example(), 1))
    assert {"decoder.1.cross, head 0", "decoder.1.cross, head 1", "like", "gusta"} <= titles
    for kind in ("cross", "encoder", "decoder"):
        save_figure(draw_attention(example(), kind), tmp_path / f"{kind}.png")
    with pytest.raises(UserError, match="no layer 2"):
        draw_heads(example(), 2)


@pytest.mark.parametrize(
    ("kind", "name", "down", "across"),
    [
        ("cross", "decoder.0.cross", ["me", "gusta", "</s>"], ["I", "like", "</s>"]),
        ("encoder", "encoder.0.self", ["I", "like", "</s>"], ["I", "like", "</s>"]),
        ("decoder", "decoder.0.self", ["me", "gusta", "</s>"], ["<s>", "me", "gusta"]),
    ],
)
def test_each_kind_draws_its_own_map_with_its_own_words(kind, name, down, across):
    inspected = example()
    expected = word_map(*_fed(inspected, kind), inspected.maps[name][1]).weights
    for figure in (draw_heads(inspected, 0, kind), draw_attention(inspected, kind)):
        axes = next(axes for axes in figure.axes if axes.get_title() == f"{name}, head 1")
        assert [label.get_text() for label in axes.get_yticklabels()] == down
        assert [label.get_text() for label in axes.get_xticklabels()] == across
        torch.testing.assert_close(torch.tensor(axes.images[0].get_array().tolist()), expected)


def _fed(inspected, kind):
    """Return the pieces of the columns and of the rows."""
    if kind == "decoder":
        return ["<s>", *inspected.target[:-1]], inspected.target
    return inspected.source, inspected.source if kind == "encoder" else inspected.target


def test_missing_attention_is_refused():
    complete = example()
    recurrent = Inspected(
        complete.source, complete.target, {"decoder.0.cross": complete.maps["decoder.0.cross"]}, [-0.1] * 3
    )
    for kind in ("encoder", "decoder"):
        for draw in (lambda k: draw_attention(recurrent, k), lambda k: draw_heads(recurrent, 0, k)):
            with pytest.raises(UserError, match=r"no self-attention in its .*It has decoder\.0\.cross"):
                draw(kind)


def test_long_sentences_and_other_scripts(tmp_path):
    words = [f"▁слово{i}" for i in range(60)]
    save_figure(
        draw_words(example([*words, "</s>"], ["▁你好", "▁مرحبا", "▁$x_1$", "</s>"]).words()), tmp_path / "a.png"
    )
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_sentence_is_drawn_from_right_to_left():
    """Matplotlib orders the letters of a word; the words of a sentence have their places from us."""
    arabic, chinese = ["«مرحبا»", "بالعالم", "</s>"], ["你好", "世界", "</s>"]
    (axes, _) = draw_words(WordMap(arabic, chinese, torch.eye(3))).axes
    assert axes.xaxis_inverted()
    assert not draw_words(WordMap(chinese, arabic, torch.eye(3))).axes[0].xaxis_inverted()
    (axes,) = draw_ribbons(WordMap(chinese, arabic, torch.eye(3))).axes
    places = {text.get_text(): text.get_position()[0] for text in axes.texts[:2] + axes.texts[3:5]}
    assert places["你好"] < places["世界"] and places["«مرحبا»"] > places["بالعالم"]
    # The first source word is on the right, and so are the ribbons that come from it.
    ribbons = bands([[0.5, 0.5]], [(2, 3), (0, 1)], [(0, 3)])
    assert ribbons[0][2] > ribbons[1][2]


def test_characters_without_a_font_are_reported_once(tmp_path, capsys):
    figure = draw_words(example(["▁𓀀A", "</s>"]).words())
    for ending in ("png", "pdf", "svg"):
        save_figure(figure, tmp_path / f"a.{ending}")
    messages = capsys.readouterr().err.splitlines()
    assert len(messages) == 2 and all("no installed font has 𓀀, which a.p" in message for message in messages)


MACHADO = {  # Machado et al. 2009, severity 1.0, for linear RGB
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


@pytest.mark.parametrize("vision", MACHADO)
def test_lines_differ_for_any_color_vision(vision):
    """The least distance in CIELAB is 16; of Matplotlib's own colors it is 5."""
    runs = {f"run {i}": [{"kind": "training", "seconds": 6.0 * s, "loss": 3.0} for s in (1, 2)] for i in range(7)}
    lines = draw_curves(runs).axes[0].get_lines()
    colors = dict.fromkeys(to_rgb(line.get_color()) for line in lines)
    assert len(colors) == 7
    seen = [_lab(np.array(MACHADO[vision]) @ _linear(np.array(color))) for color in colors]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 16


def _linear(color):
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)


def _lab(color):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratios = to_xyz @ np.clip(color, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_masks_positions_and_curves(tmp_path):
    save_figure(draw_mask(causal_mask(3), list("abc"), list("abc"), "past"), tmp_path / "m.png")
    padding = torch.tensor([[[[True, True, False]]]])
    draw_mask(padding, ["x", "y"], list("abc"))
    with pytest.raises(ValueError, match="2 rows"):
        draw_mask(causal_mask(3), ["a", "b"], list("abc"))
    ids = torch.tensor([[5, 6, 0], [5, 6, 7]])
    figure = draw_padding(padding_mask(ids, {0, 9}), [["a", "b", "-"], ["a", "b", "c"]])
    assert {"text 1", "text 2", "-", "c"} <= texts(figure)
    assert figure.axes[0].images[0].get_array().tolist() == [[1, 1, 0], [1, 1, 1]]
    figure = draw_masks(target_mask(ids, 0), [["a", "b", "-"], ["a", "b", "c"]])
    shown = [axes.images[0].get_array().tolist() for axes in figure.axes]
    assert shown == [[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[1, 0, 0], [1, 1, 0], [1, 1, 1]]]
    with pytest.raises(ValueError, match="1 texts"):
        draw_masks(target_mask(ids, 0), [["a", "b", "c"]])
    with pytest.raises(ValueError, match="2 texts"):
        draw_padding(padding_mask(ids, 0), [["a", "b"], ["a", "b", "c"]])
    assert len(draw_positions(sinusoidal_positions(50, 7)).axes) == 4
    rows = [
        {"kind": "training", "seconds": 6.0, "loss": 3.0, "learning_rate": 0.1},
        {"kind": "validation", "seconds": 12.0, "loss": 2.0, "bleu": 30.0},
    ]
    assert {"loss", "validation BLEU", "learning rate"} <= texts(draw_curves({"a": rows, "b": rows[:1]}))


def test_a_title_is_never_cut_off():
    """The mask of a short text is narrower than its title, so the figure has to be widened."""
    figures = [
        draw_masks(target_mask(torch.tensor([[5, 6]]), 0), [["a", "b"]], "target mask: the past and the present"),
        draw_padding(padding_mask(torch.tensor([[5, 6]]), 0), [["a", "b"]]),
    ]
    for figure in figures:
        rendered(figure, "png")
        figure.draw_without_rendering()  # at the figure's own resolution again
        titles = [*figure.texts, *(axes.xaxis.label for axes in figure.axes)]
        for box in [title.get_window_extent() for title in titles if title.get_text()]:
            assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    # Matplotlib moves a title above long words only when it draws, after the layout.
    heads = rendered(draw_heads(example(["▁internationalization", "▁of", "▁words", "</s>"]), 1), "svg").decode()
    (size, y), *_ = re.findall(r'font-size: (\d+)px[^>]* y="([\d.-]+)"[^>]*>decoder.1.cross', heads)
    assert float(y) >= 0.75 * float(size)


@pytest.mark.parametrize(("title", "layouts"), [("short", 1), ("long " * 40, 2)])
@pytest.mark.parametrize(("kind", "dpi"), [("png", 144), ("svg", 72)])
def test_a_picture_is_laid_out_at_its_resolution_and_again_only_if_it_is_widened(
    title, layouts, kind, dpi, monkeypatch
):
    counted, execute = [], ConstrainedLayoutEngine.execute

    def counting(engine, figure):
        counted.append(figure.dpi)
        execute(engine, figure)

    figure = new_figure(4, 3)
    figure.suptitle(title)
    figure.subplots()
    engine, usual = figure.get_layout_engine(), figure.dpi
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", counting)
    for _ in range(2):
        counted.clear()
        rendered(figure, kind, 144)
        assert counted == [dpi] * layouts
        assert (figure.get_layout_engine(), figure.dpi) == (engine, usual)
        layouts = 1  # the figure was widened in the first round


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
    trace.names, trace.best = {token: f"<t{token}>" for token in range(8)}, 4
    figure = draw_beam(trace)
    assert {"<t5>\n90%", "<t3>\n90%", "<t7>\n5%"} <= texts(figure)
    shown = trace._repr_html_()
    assert shown.count("<li>") == shown.count("</li>") == 5
    assert shown.count("<ul>") == shown.count("</ul>")
    assert "<b>&lt;t5&gt; 90%</b>" in shown and "&lt;t7&gt; 5% (dropped)" in shown and "<t5>" not in shown
    save_figure(figure, tmp_path / "b.svg")


def test_the_page_needs_no_network_and_text_stays_text(tmp_path):
    nasty = example(["▁</script><b>", "▁&", "</s>"], ["▁<i>", "</s>"])
    text = page([nasty], "</title><script>", "x")
    text = text.replace("http://www.w3.org/2000/svg", "")  # an XML namespace, which is never fetched
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    assert text.count("</script>") == 1
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in text
    assert shown_on(text)[0]["source"] == ["</script><b>", "&", "</s>"]
    assert "<i>" not in notebook_table(nasty.words())
    assert "<i>" not in nasty._repr_html_() and "&lt;i&gt;" in nasty._repr_html_()
    blind = Inspected(["▁<b>", "</s>"], ["▁<i>", "</s>"], {}, [-0.1, -0.1])
    assert blind._repr_html_() == "<p>&lt;i&gt;</p>"


def test_the_record_that_the_page_shows():
    """The record has the words, the weights between them in each map, and the probability of each word."""
    halves = torch.tensor([[0.5, 0.25, 0.25, 0.0]] * 3)  # head 0 of layer 0, over ▁I ▁li ke </s>
    ends = torch.tensor([[0.0, 0.0, 0.0, 1.0]] * 3)  # head 1 of layer 0
    firsts = torch.tensor([[1.0, 0.0, 0.0, 0.0]] * 3)  # both heads of layer 1
    maps = {"decoder.0.cross": torch.stack([halves, ends]), "decoder.1.cross": torch.stack([firsts, firsts])}
    log_probs = [math.log(p) for p in (0.5, 0.25, 0.8)]
    record = viewer_record(Inspected(["▁I", "▁li", "ke", "</s>"], ["▁gus", "ta", "</s>"], maps, log_probs))
    assert record["source"] == ["I", "like", "</s>"]
    assert record["target"] == ["gusta", "</s>"]
    assert record["probabilities"] == [0.125, 0.8]
    assert [attention_map["name"] for attention_map in record["maps"][:-1]] == [
        "all layers and heads",
        "layer 0, all heads",
        "layer 1, all heads",
        "layer 0, head 0",
        "layer 0, head 1",
        "layer 1, head 0",
        "layer 1, head 1",
    ]
    assert [attention_map["weights"] for attention_map in record["maps"][:-1]] == [
        [[0.625, 0.125, 0.25]] * 2,
        [[0.25, 0.25, 0.5]] * 2,
        [[1, 0, 0]] * 2,
        [[0.5, 0.5, 0]] * 2,
        [[0, 0, 1]] * 2,
        [[1, 0, 0]] * 2,
        [[1, 0, 0]] * 2,
    ]
    # Each layer keeps half of what came before it, so layer 0 counts one third and layer 1 two thirds.
    assert record["maps"][-1]["name"] == "flow through all layers (rollout)"
    assert record["maps"][-1]["weights"] == [[pytest.approx(x, abs=1e-4) for x in (0.75, 1 / 12, 1 / 6)]] * 2


def test_the_page_offers_no_choice_where_there_is_none():
    """One layer with one head has one map; one layer with two heads has their average and each of them."""
    weights = torch.tensor([[[0.75, 0.25], [0.25, 0.75]]])

    def names(maps):
        return [
            attention_map["name"]
            for attention_map in viewer_record(Inspected(["▁a", "</s>"], ["▁b", "</s>"], maps, [0, 0]))["maps"]
        ]

    assert names({"decoder.0.cross": weights}) == ["all layers and heads"]
    assert names({"decoder.0.cross": weights.expand(2, 2, 2)}) == [
        "all layers and heads",
        "layer 0, head 0",
        "layer 0, head 1",
    ]


def test_the_page_contains_its_records():
    inspected = example()
    assert shown_on(page([inspected, inspected], "x", "y")) == [viewer_record(inspected, sides=SIDES)] * 2


def shown_on(text):
    """Return the records that a page shows."""
    data = json.loads(re.search(r"showInspector\(document.*?, (\{.*\})\);$", text, re.MULTILINE)[1])
    return [sentence["record"] for sentence in data["sentences"]]


def test_a_map_between_words_has_a_row_and_a_column_for_each():
    with pytest.raises(ValueError, match=r"weights \(1, 2\) for \(2, 1\) target and source words"):
        WordMap(["a"], ["b", "c"], torch.ones(1, 2))


def test_several_pieces_are_several_pictures(tmp_path):
    save([example(), example()], tmp_path / "a.png", "x", "y", layer=1, head=0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a-2.png", "a.png"]
    save([example()], tmp_path / "a.json", "x", "y")
    assert Inspected.load(tmp_path / "a.json").target == ["▁me", "▁gusta", "</s>"]


def test_the_maps_of_many_pairs_are_one_file_for_numpy(tmp_path):
    pieces = [example(), example(["▁足", "</s>"], ["▁a", "</s>"])]
    assert save_maps(iter(pieces), tmp_path / "maps.npz") == 2
    loaded = np.load(tmp_path / "maps.npz", allow_pickle=False)
    assert len(loaded.files) == 2 * 7
    for i, inspected in enumerate(pieces):
        assert loaded[f"{i}/source"].tolist() == inspected.source
        assert loaded[f"{i}/target"].tolist() == inspected.target
        np.testing.assert_allclose(loaded[f"{i}/log_probs"], inspected.log_probs, rtol=1e-6)
        for name, weights in inspected.maps.items():
            np.testing.assert_allclose(loaded[f"{i}/{name}"], weights.numpy(), atol=1e-3)

    def broken():
        yield example()
        raise UserError("too long")

    with pytest.raises(UserError, match="too long"):
        save_maps(broken(), tmp_path / "half.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["maps.npz"]


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        (0, "0%"),
        (1, "100%"),
        (1.0000001, "100%"),
        (1.5, "100%"),
        (0.5, "50%"),
        (0.0498, "5%"),
        (0.0004, "0.04%"),
        (0.9996, "99.96%"),
        (1e-30, "<0.000001%"),
    ],
)
def test_probabilities_are_not_rounded_to_0_or_100_percent(probability, expected):
    assert percent(probability) == expected
