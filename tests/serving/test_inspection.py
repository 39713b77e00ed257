"""Our own API: maps, explanations and continuations."""

import shutil

import numpy as np
import pytest
import torch
import yaml
from fastapi.testclient import TestClient

from translucid.api.translator import Translator
from translucid.inspection import explain as explanation
from translucid.inspection.explain import Case, contrast, explain, faithfulness, random_faithfulness
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions
from translucid.terminology.glossary import Term

from .test_documents import finished_job, send


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def look(client, **fields):
    return client.post("/look", json={"source": "en", "target": "es", **fields})


def greedy_copy(run, folder):
    """Return a copy of a run that searches greedily by default."""
    copy = shutil.copytree(run, folder / "narrow")
    settings = yaml.safe_load((copy / "config.yaml").read_text())
    settings["decoding"]["beam"] = 1
    (copy / "config.yaml").write_text(yaml.safe_dump(settings))
    return copy


def test_a_run_with_a_beam_of_one(serve, run, captioner_run, scene, tmp_path):
    (tmp_path / "eyes").mkdir()
    client = serve(str(greedy_copy(run, tmp_path)), str(greedy_copy(captioner_run, tmp_path / "eyes")))
    request = {"q": "I like soccer", "source": "en", "target": "es"}
    (tree,) = client.post("/beam", json=request).json()["trees"]
    (hypothesis,) = tree["finished"]
    assert (tree["beam"], tree["own"]) == (1, 1)
    assert hypothesis["text"] == client.post("/translate", json=request).json()["translatedText"]
    response = client.post("/picture", json={**request, "translation": hypothesis["text"], "view": "beam"})
    assert response.status_code == 200 and response.content.startswith(b"%PDF")
    caption = client.post("/caption?tree=true", content=scene, headers={"content-type": "image/png"}).json()
    assert caption["caption"] == caption["tree"]["finished"][0]["text"]
    fields = {"caption": caption["caption"], "view": "beam"}
    assert client.post("/caption/picture", data=fields, files={"file": ("a.png", scene)}).status_code == 200


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_explanations_are_those_of_the_library_and_come_with_their_test(client, run, method):
    sentence = look(client, q="I like soccer", explain=method).json()["sentences"][0]
    record = sentence["explanation"]
    translator = Translator.load(run, engine="torch")
    case = Case(translator.model, translator.pipeline, "I like soccer", sentence["text"])
    expected = explain(case, method, samples=200)
    torch.testing.assert_close(torch.tensor(record["importance"]), expected.importance, rtol=0, atol=2e-3)
    assert (
        method == "lime" or expected.importance.abs().max() > 0.01
    )  # LIME does not respond to words with almost no probability
    assert record["fit"] == pytest.approx(expected.fit, abs=2e-3)
    assert record["faithfulness"] == pytest.approx(faithfulness(case, expected)._asdict(), abs=2e-3)
    assert record["random"] == pytest.approx(random_faithfulness(case)._asdict(), abs=2e-3)
    assert record["faithfulness"] != record["random"]
    assert (record["source"], record["target"]) == (["I", "like", "soccer"], sentence["text"].split())


def test_a_contrast_is_that_of_the_library(client, run):
    request = {"q": "I like soccer", "translations": ["me gusta el fútbol"], "explain": "erasure", "instead_of": "la"}
    record = look(client, **request, word=2).json()["sentences"][0]["explanation"]
    translator = Translator.load(run, engine="torch")
    case = contrast(Case(translator.model, translator.pipeline, "I like soccer", "me gusta el fútbol"), "la", 2)
    expected = explain(case, "erasure")
    torch.testing.assert_close(torch.tensor(record["importance"]), expected.importance, rtol=0, atol=2e-3)
    assert record["contrast"] == pytest.approx({"word": 2, "instead_of": "la", "log_odds": case.log_odds}, abs=2e-3)
    assert record["faithfulness"] == pytest.approx(faithfulness(case, expected)._asdict(), abs=2e-3)
    for invalid in (
        {"explain": ""},
        {"instead_of": "", "word": 2},
        {"word": 9},
        {"word": "x"},
        {"instead_of": "x" * 101},
    ):
        assert look(client, **request | invalid).status_code == 400, invalid
    assert look(client, q="I sing. You sing.", explain="erasure", instead_of="la").status_code == 400


def test_the_tree_of_the_beam_search_of_each_sentence(client, run):
    request = {"q": "I sing. You sing.", "source": "en", "target": "es"}
    trees = client.post("/beam", json=request).json()["trees"]
    assert len(trees) == 2
    translator = Translator.load(run, engine="torch")
    for tree, sentence in zip(trees, ("I sing.", "You sing."), strict=True):
        best = translator.translate(sentence, beam=tree["beam"])
        assert tree["finished"][0]["node"] == tree["best"]
        assert tree["finished"][0]["text"] == best.text
        assert tree["finished"][0]["score"] == pytest.approx(best.score, abs=1e-4)
        assert tree["finished"][0]["log_prob"] == pytest.approx(best.nbest[0].hypotheses[0].log_probability, abs=1e-4)
        for node in tree["nodes"][1:]:
            assert node["log_prob"] <= tree["nodes"][node["parent"]]["log_prob"]
    assert client.post("/beam", json={**request, "q": ""}).json() == {"trees": []}
    assert client.post("/beam", json={**request, "q": "a" * 501}).status_code == 400


def test_all_maps_are_the_attention_of_the_library(client, run):
    pair = "I like soccer", "Me gusta el fútbol"
    piece = look(client, q=pair[0], translations=[pair[1]], maps="all").json()["sentences"][0]["pieces"][0]
    translator = Translator.load(run, engine="torch")
    (inspected,) = translator.inspector.inspect([pair])
    heads = {(row["kind"], row["layer"], row["head"]): row["weights"] for row in piece["maps"]}
    names = {"encoder": "encoder.{}.self", "decoder": "decoder.{}.self", "cross": "decoder.{}.cross"}
    for kind, layers in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        for layer in range(layers):
            weights = inspected.maps[names[kind].format(layer)].numpy()
            down, across = (
                _merging(inspected.source if kind == "encoder" else inspected.target, "mean"),
                _merging(inspected.source),
            )
            if kind == "decoder":
                across = _merging(["<s>", *inspected.target[:-1]])
            for head in range(2):
                expected = down @ weights[head] @ across.T
                np.testing.assert_allclose(heads[kind, layer, head], expected, atol=1e-4)
            np.testing.assert_allclose(heads[kind, layer, None], down @ weights.mean(0) @ across.T, atol=1e-4)
    assert len(piece["fed"]) == len(piece["target"]) == len(piece["sizes"])
    assert sum(piece["sizes"]) == len(inspected.target)
    assert look(client, q="I sing", maps="some").status_code == 400


def _merging(pieces, how="sum"):
    """Return a matrix [words, pieces] that merges pieces into words, written independently of `word_spans`."""
    rows = []
    for i, piece in enumerate(pieces):
        if piece.startswith("▁") or piece in ("<s>", "</s>") or not rows or pieces[i - 1] == "<s>":
            rows.append(np.zeros(len(pieces)))
        rows[-1][i] = 1
    matrix = np.array(rows)
    return matrix / matrix.sum(1, keepdims=True) if how == "mean" else matrix


@pytest.mark.parametrize(
    "view",
    [
        {"view": "map"},
        {"view": "map", "kind": "encoder", "layer": 0, "head": 1},
        {"view": "map", "kind": "content"},
        {"view": "heads"},
        {"view": "beam"},
        {"view": "why", "method": "erasure"},
    ],
    ids=lambda view: " ".join(map(str, view.values())),
)
def test_every_view_is_saved_as_pdf(client, view):
    request = {"q": "I sing", "source": "en", "target": "es", "translation": "Yo canto"}
    response = client.post("/picture", json={**request, **view})
    assert response.headers["content-type"] == "application/pdf"
    assert response.content.startswith(b"%PDF")


def test_invalid_picture_requests_are_refused(client):
    request = {"q": "I sing", "source": "en", "target": "es", "translation": "Yo canto", "view": "map"}
    for invalid in (
        {"view": "all"},
        {"layer": 9},
        {"layer": "x"},
        {"kind": "none"},
        {"translation": " "},
        {"translation": "y" * 3000},
        {"view": "why", "method": "magic"},
    ):
        assert client.post("/picture", json={**request, **invalid}).status_code == 400, invalid


def test_two_models_of_one_folder_have_two_names(serve, run):
    client = serve(str(run), f"en-fr={run}")
    rows = [(row["name"], row["sources"], row["targets"]) for row in client.get("/models").json()]
    assert rows == [("tiny", ["en"], ["es"]), ("tiny 2", ["en"], ["fr"])]
    assert look(client, q="I sing", target="fr").json()["model"] == "tiny 2"


def test_the_page_and_nothing_else_is_served(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    for path in ("/page.js", "/page.css", "/inspector.js", "/generated_text.css"):
        assert client.get(path).status_code == 200
    for path in ("/page/index.html", "/config.yaml", "/..%2fapp.py"):
        assert client.get(path).status_code == 404


def test_only_explanations_that_are_there_are_offered(client, monkeypatch):
    assert client.get("/frontend/settings").json()["explanations"] == ["erasure", "lime", "gradients"]
    find_spec = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "captum" else find_spec(name))
    assert client.get("/frontend/settings").json()["explanations"] == ["erasure", "lime"]
    response = look(client, q="I sing", explain="gradients")
    assert response.status_code == 400
    assert "pip" not in response.json()["error"]


def test_what_is_missing_for_images_alone_is_not_missing_for_texts(client, monkeypatch):
    find_spec = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "skimage" else find_spec(name))
    settings = client.get("/frontend/settings").json()
    assert settings["explanations"] == ["erasure", "lime", "gradients"]
    assert settings["imageExplanations"] == ["erasure", "gradients"]


def test_words_that_the_model_does_not_know_are_named(client):
    piece = look(client, q="She reads 足球").json()["sentences"][0]["pieces"][0]
    assert piece["source"] == ["She", "reads", "足球", "</s>"]
    assert piece["unknown"] == [2]


def test_the_terms_of_the_server_are_kept_to_and_told(run):
    terms = [Term("soccer", "balompié")]
    options = ServerOptions(hosts=("testserver",))
    with TestClient(create_app(load([str(run), f"es-en={run}"], "cpu", options, terms=terms), options)) as client:
        assert "balompié" in look(client, q="I like soccer").json()["translation"]
        request = {
            "q": "I like soccer",
            "source": "es",
            "target": "en",
        }  # terms apply only to the first model's languages
        assert "balompié" not in client.post("/translate", json=request).json()["translatedText"]
        job = finished_job(client, send(client, b"I like soccer.\n").json())
        hints = client.get(f"/documents/{job['id']}/segments/0/hints").json()
        assert hints == {"matches": [], "terms": [{"source": "soccer", "target": "balompié"}]}
