"""Which figure a request returns: its kind, its layer and head, its explanation."""

import pytest
import torch

from translucid.api.translator import Translator
from translucid.captions import saliency_overlay
from translucid.captions.captioner import Captioner
from translucid.inspection import plots
from translucid.inspection.explain import Case, explain

REQUEST = {"q": "I like soccer", "source": "en", "target": "es", "translation": "Me gusta el fútbol"}


@pytest.fixture(scope="module")
def client(serve_for_all, run, captioner_run):
    return serve_for_all(str(run), str(captioner_run))


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run, engine="torch")


@pytest.fixture
def draw_calls(monkeypatch):
    """Record the calls of the drawing functions: their names and arguments."""
    calls = []
    names = {
        plots: ("draw_attention", "draw_beam", "draw_ribbons"),
        saliency_overlay: ("draw_saliency", "draw_saliency_rows"),
    }
    for module, name in ((module, name) for module, of_module in names.items() for name in of_module):
        monkeypatch.setattr(module, name, lambda *arguments, name=name: calls.append((name, *arguments)))
    monkeypatch.setattr("translucid.inspection.plots.rendered", lambda figure, kind, caption: (kind + caption).encode())
    return calls


def draw(client, draw_calls, **fields):
    response = client.post("/picture", json={**REQUEST, **fields, "caption": "!"})
    assert (response.content, response.headers["content-type"]) == (b"pdf!", "application/pdf"), response.text
    (call,) = draw_calls
    draw_calls.clear()
    return call


def assert_same_map(word_map, expected):
    assert (word_map.source, word_map.target, word_map.opening) == (expected.source, expected.target, expected.opening)
    torch.testing.assert_close(word_map.weights, expected.weights, atol=1e-4, rtol=0)


def test_a_map_of_the_attention_to_the_source(client, translator, draw_calls):
    (inspected,) = translator.inspector.inspect([(REQUEST["q"], REQUEST["translation"])])
    for fields, chosen in (
        ({}, (None, None)),
        ({"layer": 0}, (0, None)),
        ({"layer": 1, "head": 1}, (1, 1)),
        ({"head": None}, (None, None)),
    ):
        name, words, probabilities = draw(client, draw_calls, view="map", **fields)
        assert name == "draw_ribbons"
        assert_same_map(words, inspected.words(inspected.cross(*chosen)))
        assert list(probabilities) == pytest.approx(list(inspected.word_log_probs()), abs=1e-4)
    name, words, probabilities = draw(client, draw_calls, view="map", kind="rollout")
    assert_same_map(words, inspected.words(inspected.rollout()))
    assert list(probabilities) == pytest.approx(list(inspected.word_log_probs()), abs=1e-4)


def test_a_map_of_self_attention(client, translator, draw_calls):
    (inspected,) = translator.inspector.inspect([(REQUEST["q"], REQUEST["translation"])])
    for kind, layer, head in (("encoder", 0, None), ("decoder", 0, None), ("decoder", 1, 1)):
        fields = {name: value for name, value in (("layer", layer), ("head", head)) if value is not None}
        name, words = draw(client, draw_calls, view="map", kind=kind, **fields)
        assert name == "draw_ribbons"
        assert_same_map(words, inspected.word_map(f"{kind}.{layer}.self", head))


def test_all_heads_the_tree_and_an_explanation(client, translator, draw_calls):
    name, inspected, kind = draw(client, draw_calls, view="heads")
    assert (name, kind) == ("draw_attention", "cross")
    assert inspected.source == translator.inspector.inspect([(REQUEST["q"], REQUEST["translation"])])[0].source
    assert draw(client, draw_calls, view="heads", kind="encoder")[2] == "encoder"
    name, tree = draw(client, draw_calls, view="beam")
    expected = translator.inspector.trace(REQUEST["q"], translator.configuration.decoding.beam)
    assert name == "draw_beam" and len(tree.nodes) == len(expected.nodes)
    name, words = draw(client, draw_calls, view="why")
    explanation = explain(Case(translator.model, translator.pipeline, REQUEST["q"], REQUEST["translation"]), "erasure")
    torch.testing.assert_close(
        words.weights, explanation.importance / explanation.importance.abs().max(), atol=2e-3, rtol=0
    )
    assert (name, words.weights.abs().max().item()) == ("draw_ribbons", pytest.approx(1))
    gradients = draw(client, draw_calls, view="why", method="gradients")[1]
    assert not torch.allclose(gradients.weights, words.weights, atol=0.01)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"view": "all"}, "view is none of map, heads, beam, why, layers, patching"),
        ({"view": None}, "missing view parameter"),
        ({"kind": "encoder.0"}, "kind is none of cross, encoder, decoder, rollout, content, norms, contributions"),
        ({"kind": ["cross"]}, "kind is not a text"),
        ({"translation": None}, "missing translation parameter"),
        ({"translation": " "}, "there are no texts, or translation has over 1000 characters"),
        ({"q": " "}, "there are no texts, or translation has over 1000 characters"),
        ({"translation": "a" * 1001}, "there are no texts, or translation has over 1000 characters"),
        ({"layer": "1"}, "layer is not a number"),
        ({"head": True}, "head is not a number"),
        ({"head": 1.0}, "head is not a number"),
        ({"view": "why", "method": "magic"}, "there is no explanation by 'magic' here"),
    ],
)
def test_figures_that_are_refused(client, draw_calls, fields, message):
    response = client.post("/picture", json={**REQUEST, "view": "map", **fields})
    assert (response.status_code, response.json()) == (400, {"error": f"Invalid request: {message}"})
    assert not draw_calls


def test_missing_maps(client, draw_calls):
    for fields in ({"layer": 2}, {"layer": 0, "head": 2}, {"kind": "encoder", "layer": 1}):
        response = client.post("/picture", json={**REQUEST, "view": "map", **fields})
        assert response.status_code == 400 and "Internal" not in response.text, fields
    request = {**REQUEST, "view": "map", "translation": "a" * 1000}
    assert client.post("/picture", json=request).status_code == 200


def draw_image(client, scene, draw_calls, **fields):
    response = client.post(
        "/caption/picture", data={"caption": " a red star ", **fields}, files={"file": ("a.png", scene)}
    )
    assert (response.content, response.headers["content-type"]) == (b"pdf", "application/pdf"), response.text
    (call,) = draw_calls
    draw_calls.clear()
    return call


def test_figures_of_an_image(client, captioner_run, scene, draw_calls):
    captioner = Captioner.load(captioner_run)
    inspected = captioner.inspect(captioner.picture(scene), "a red star")
    for fields in ({}, {"layer": "0"}, {"layer": 0, "head": 0}):
        name, overlay = draw_image(client, scene, draw_calls, view="map", **fields)
        assert name == "draw_saliency" and overlay.words[:3] == ["a", "red", "star"]
    name, rows = draw_image(client, scene, draw_calls, view="heads")
    assert name == "draw_saliency_rows" and len(list(rows)) == len(inspected.layers_and_heads())
    name, tree = draw_image(client, scene, draw_calls, view="beam")
    expected = captioner.trace(captioner.picture(scene), captioner.configuration.decoding.beam)
    assert name == "draw_beam" and len(tree.nodes) == len(expected.nodes)
    name, overlay = draw_image(client, scene, draw_calls, view="why")
    assert name == "draw_saliency" and overlay.words == ["a", "red", "star"]


@pytest.mark.parametrize("name", ["layer", "head"])
def test_a_layer_or_head_that_a_captioner_does_not_have(client, scene, draw_calls, name):
    fields = {"caption": "a red star", "view": "map", name: "999"}
    response = client.post("/caption/picture", data=fields, files={"file": ("a.png", scene)})
    assert response.status_code == 400 and f"there is no {name} 999" in response.json()["error"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"view": "all"}, "view is none of map, heads, beam, why"),
        ({"caption": " "}, "there is no caption, or it has over 500 characters"),
        ({"caption": "a" * 501}, "there is no caption, or it has over 500 characters"),
        ({"layer": "1000"}, "layer is more than 999"),
        ({"head": "1000"}, "head is more than 999"),
        ({"layer": "-1"}, "layer is not a whole number"),
        ({"method": "magic"}, "there is no explanation by 'magic' here"),
    ],
)
def test_figures_of_images_that_are_refused(client, scene, draw_calls, fields, message):
    request = {"caption": "a red star", "view": "map", **fields}
    response = client.post("/caption/picture", data=request, files={"file": ("a.png", scene)})
    assert (response.status_code, response.json()) == (400, {"error": f"Invalid request: {message}"})
    assert not draw_calls
