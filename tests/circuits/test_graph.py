"""Graphs of translations: words, files, the command, imported models."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
from torch.testing import assert_close

from tests.circuits.models import random_transcoders
from tests.probes.foreign import many_languages_folder, marian_folder
from translucid import Translator
from translucid.circuits.drawing import caption, draw
from translucid.circuits.graph import ask, attribution_graph
from translucid.circuits.graph_view import figures, terminal_view
from translucid.circuits.minimal_pairs import MinimalPair, measure, read_minimal_pairs, rows, to_json, view
from translucid.circuits.saved_graph import circuit_tracer, page
from translucid.cli.main import run as call
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.plots import draw_svg

TEXT, TARGET = "I like soccer.", "Me gusta el fútbol."


@pytest.fixture
def translator(run):
    return Translator.load(run, "cpu", "torch")


@pytest.fixture
def graph(translator, dictionary):
    return attribution_graph(translator, dictionary.transcoders, TEXT, "gusta", instead_of="gustan", target=TARGET)


def test_the_parts_of_the_record_sum_to_the_logit(translator, graph):
    record = json.loads(json.dumps(graph.to_json()))
    question = ask(translator, TEXT, "gusta", "gustan", target=TARGET).question
    logits = question.model(question.source, question.prefix)[0, -1]
    assert record["probability"] == pytest.approx(logits.softmax(-1)[question.pieces[0]].item(), abs=1e-5)
    assert record["word"] == "gusta"
    assert 0 < len(record["nodes"]) <= 40
    total = record["bias"] + record["remainder"] + sum(node["effect"] for node in record["nodes"])
    assert_close(total, record["logit"], rtol=0, atol=1e-4)
    assert_close(sum(record["by_kind"].values()) + record["bias"], record["logit"], rtol=0, atol=1e-4)
    assert_close(record["faithfulness"]["logit"], record["logit"], rtol=0, atol=1e-3)
    on_logit = {edge["source"]: edge["effect"] for edge in record["edges"] if edge["target"] == "logit"}
    assert all(on_logit.get(number, 0) == node["effect"] for number, node in enumerate(record["nodes"]))


def test_a_word_or_its_position(translator):
    by_word = ask(translator, TEXT, "fútbol", target=TARGET)
    by_position = ask(translator, TEXT, "3", target=TARGET)
    assert by_word.question.prefix.tolist() == by_position.question.prefix.tolist()
    assert by_word.word == by_position.word == "fútbol."
    assert by_word.question.other is None
    with pytest.raises(UserError, match="lacks the word 'tenis'"):
        ask(translator, TEXT, "tenis", target=TARGET)
    with pytest.raises(UserError, match="no word 9"):
        ask(translator, TEXT, "9", target=TARGET)


def test_the_first_piece_in_which_two_words_differ(translator):
    tokenizer = translator.tokenizer
    asked = ask(translator, TEXT, "gusta", "gusto", target=TARGET)
    right = tokenizer.encode_target([TARGET])[0]
    wrong = tokenizer.encode_target([TARGET.replace("gusta", "gusto")])[0]
    length = next(i for i, (a, b) in enumerate(zip(right, wrong, strict=False)) if a != b)
    assert asked.question.prefix.tolist() == [[translator.model.bos, *right[:length]]]
    assert (asked.question.pieces[0], asked.question.other) == (right[length], wrong[length])


def test_the_picture_and_the_page_have_all_nodes(graph):
    svg = draw(graph, {graph.nodes[-1].part.name: "gender <f>"}, standalone=False)
    root = ET.fromstring(svg)
    names = [group.get("data-node") for group in root.iter("{http://www.w3.org/2000/svg}g")]
    assert sorted(names) == sorted([*map(str, range(len(graph.nodes))), "logit"])
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = [box for box in root.iter("{http://www.w3.org/2000/svg}rect") if box.get("class") == "box"]
    for box in boxes:
        assert 0 <= float(box.get("x")) <= width - float(box.get("width"))
        assert 0 <= float(box.get("y")) <= height - float(box.get("height"))
    by_row = {}
    for box in boxes:
        by_row.setdefault(box.get("y"), []).append((float(box.get("x")), float(box.get("width"))))
    for row in by_row.values():
        row.sort()
        assert all(x + size <= after for (x, size), (after, _) in pairwise(row))  # no overlap
    arabic = ET.fromstring(draw(replace(graph, source=["ق"] * len(graph.source))))
    texts = [shape for shape in arabic.iter("{http://www.w3.org/2000/svg}text") if shape.text == "ق"]
    assert sorted(texts, key=lambda shape: -float(shape.get("x"))) == texts  # from right to left
    figure = draw_svg(svg)
    assert [text.get_text() for text in figure.axes[0].texts] == [
        shape.text for shape in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    html = page(graph, figures(graph))
    assert "showGraph" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_a_long_label_is_shortened_to_its_value(graph):
    node = next(node for node in graph.nodes if node.part.kind == "feature")
    for label, shown in (
        ("number plural", "number plural"),
        ("part of speech determiner", "determiner"),
        ("role indirect object", "indirect object"),
        ("x" * 30, "x" * 16),
    ):
        assert caption(node, {node.part.name: label}) == f"{node.part.number} {shown}"


def test_the_format_of_circuit_tracer(graph):
    """Neuronpedia reads the layer and the number of a feature from `feature`, and splits the label of the logit."""
    record = circuit_tracer(graph, "a b", "demo", {})
    assert record["metadata"]["slug"] == "a_b"
    for node in record["nodes"]:
        layer, number, _ = node["node_id"].split("_")
        if node["feature_type"] == "cross layer transcoder":
            total = next(w for w in range(10_000) if (w + 1) * (w + 2) // 2 > node["feature"])
            index = node["feature"] - total * (total + 1) // 2
            assert (int(layer), int(number)) == (total - index, index)
    logit = record["nodes"][-1]
    assert float(logit["clerp"].split("(p=")[1].split(")")[0]) == pytest.approx(graph.probability, abs=1e-3)
    influences = sorted(node["influence"] for node in record["nodes"][:-1])
    assert influences[0] == pytest.approx(max(node.influence for node in graph.nodes), abs=1e-6)
    assert influences[-1] <= record["metadata"]["node_threshold"] == pytest.approx(graph.share, abs=1e-5)
    names = [node["node_id"] for node in record["nodes"]]
    assert len(names) == len(set(names))
    assert {end for link in record["links"] for end in (link["source"], link["target"])} <= set(names)
    tokens = record["metadata"]["prompt_tokens"]
    assert tokens == [*graph.source, *graph.prefix]
    assert all(0 <= node["ctx_idx"] < len(tokens) for node in record["nodes"])
    assert [node.get("is_target_logit", False) for node in record["nodes"]].count(True) == 1
    total = sum(link["weight"] for link in record["links"] if link["target"] == record["nodes"][-1]["node_id"])
    assert_close(total + graph.bias + graph.remainder, graph.logit, rtol=0, atol=1e-4)


def test_the_terminal_shows_the_figures(graph, capsys):
    Console(width=160).print(terminal_view(graph))
    output = capsys.readouterr().out
    for text in ("gusta instead of gustan", "influence", "faithfulness", "never ablated", f"{graph.logit:+.2f}"):
        assert text in output


def test_the_command(run, tmp_path, capsys):
    arguments = ["graph", str(run), TEXT, "--word", "gusta", "--target", TARGET]
    file = tmp_path / "graph.json"
    assert call([*arguments, "--save", str(file)]) == 0
    assert "faithfulness" in capsys.readouterr().out
    record = json.loads(file.read_text())
    assert json.loads((tmp_path / "graph.circuit-tracer.json").read_text())["metadata"]["scan"] == "run"
    for ending, start in ((".pdf", b"%PDF"), (".png", b"\x89PNG")):
        assert call([*arguments, "--save", str(file.with_suffix(ending))]) == 0
        assert file.with_suffix(ending).read_bytes().startswith(start)
    capsys.readouterr()
    assert call([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == record
    for wrong, message in (
        (["graph", str(run), TEXT], "--word"),
        (["graph", str(run)], "--pairs"),
        (["graph", str(run), TEXT, "--score", "decoder.0.cross.head.0"], "--score"),
        (
            ["graph", str(run), TEXT, "--score", "decoder.0.cross.head.0:a:b", "--save", str(tmp_path / "score.json")],
            "--save",
        ),
        ([*arguments, "--instead-of", "gusta"], "gusta"),
    ):
        assert call(wrong) == 2
        assert message in capsys.readouterr().err


def test_minimal_pairs(run, translator, dictionary, tmp_path, capsys):
    (el,) = translator.tokenizer.encode_target(["el"])
    translator.model.output.bias.data[el[0]] += 100  # an untrained model would not write it
    pair = MinimalPair(TEXT, "I like music.", ("el", "la"), "gender", TARGET)
    missing = pair._replace(words=("un", "una"))
    results, left_out = measure(translator, dictionary.transcoders, [pair, missing, pair._replace(kind="other")])
    assert left_out == 1
    assert [row.kind for row in rows(results)] == ["gender", "other", "all"]
    assert rows(results)[-1].pairs == 2
    assert rows(results)[0].top == results[0].faithfulness.top.changed
    assert to_json(rows(results), 1)["left_out"] == 1
    Console(width=160).print(view(rows(results), 1))
    assert "gender" in capsys.readouterr().out
    file = tmp_path / "pairs.tsv"
    file.write_text(f"{TEXT}\tI like music.\tel/la\n")
    assert read_minimal_pairs(file)[0].words == ("el", "la")
    assert call(["graph", str(run), "--pairs", str(file)]) == 2
    assert "none of the words" in capsys.readouterr().err
    file.write_text("a\tb\tc\n")
    with pytest.raises(UserError, match=r"pairs\.tsv:1"):
        read_minimal_pairs(file)


@pytest.mark.parametrize("folder", [marian_folder, many_languages_folder])
def test_imported_models(folder, tmp_path):
    folder(tmp_path / "theirs")
    assert call(["import", str(tmp_path / "theirs"), str(tmp_path / "ours")]) == 0
    languages = {"source": "en", "target": "es"} if folder is many_languages_folder else {}
    translator = Translator.load(tmp_path / "ours", "cpu", "torch", **languages)
    transcoders = random_transcoders(translator.model)
    # One of them writes the beginning of a word as a piece of its own.
    assert ask(translator, TEXT, "el", target=TARGET).piece.lstrip("▁") == "el"
    graph = attribution_graph(translator, transcoders, "I like soccer", "gusta", target="me gusta el fútbol")
    total = graph.bias + graph.remainder + sum(node.effect for node in graph.nodes)
    assert_close(total, graph.logit, rtol=0, atol=1e-3)
    assert_close(graph.faithfulness.logit, graph.logit, rtol=0, atol=1e-3)


def test_recurrent_models_are_rejected_by_name(untrained, dictionary):
    recurrent = Translator.load(untrained("bahdanau"), "cpu", "torch")
    with pytest.raises(UserError, match="recurrent"):
        attribution_graph(recurrent, dictionary.transcoders, TEXT, "gusta", target=TARGET)
