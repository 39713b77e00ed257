"""Our own API: maps, explanations, ways to go on."""

import shutil

import numpy as np
import pytest
import torch
import yaml
from fastapi.testclient import TestClient

from translucid.api.translator import Translator
from translucid.inspection.explain import contrast, explain, explanation, faithfulness, random_faithfulness
from translucid.inspection.explain.case import Case
from translucid.serving.app import create_app
from translucid.serving.catalogue import load
from translucid.serving.server_options import ServerOptions
from translucid.terminology.term import Term

from .test_documents import ended, send


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def look(client, **fields):
    return client.post("/look", json={"source": "en", "target": "es", **fields})


def test_maps_of_every_sentence(client):
    answer = look(client, q="I sing. You sing.").json()
    assert len(answer["sentences"]) == 2
    for sentence in answer["sentences"]:
        assert sentence["confidence"] is None  # nobody has fitted it
        (piece,) = sentence["pieces"]
        assert len(piece["tokens"]) == len(piece["target"]) == len(piece["probabilities"])
        for one in piece["maps"]:
            assert len(one["weights"]) == len(piece["target"])
            assert all(len(row) == len(piece["source"]) for row in one["weights"])
    assert (
        answer["translation"]
        == client.post("/translate", json={"q": "I sing. You sing.", "source": "en", "target": "es"}).json()[
            "translatedText"
        ]
    )


def narrow(run, folder):
    """Return a copy of a run whose own search is greedy."""
    copy = shutil.copytree(run, folder / "narrow")
    settings = yaml.safe_load((copy / "config.yaml").read_text())
    settings["decoding"]["beam"] = 1
    (copy / "config.yaml").write_text(yaml.safe_dump(settings))
    return copy


def test_a_run_with_a_beam_of_one(serve, run, eyes, scene, tmp_path):
    (tmp_path / "eyes").mkdir()
    client = serve(str(narrow(run, tmp_path)), str(narrow(eyes, tmp_path / "eyes")))
    asked = {"q": "I like soccer", "source": "en", "target": "es"}
    (tree,) = client.post("/beam", json=asked).json()["trees"]
    (found,) = tree["finished"]
    assert (tree["beam"], tree["own"]) == (1, 1)
    assert found["text"] == client.post("/translate", json=asked).json()["translatedText"]
    drawn = client.post("/picture", json={**asked, "translation": found["text"], "view": "beam"})
    assert drawn.status_code == 200 and drawn.content.startswith(b"%PDF")
    captioned = client.post("/caption?tree=true", content=scene, headers={"content-type": "image/png"}).json()
    assert captioned["caption"] == captioned["tree"]["finished"][0]["text"]
    fields = {"caption": captioned["caption"], "view": "beam"}
    assert client.post("/caption/picture", data=fields, files={"file": ("a.png", scene)}).status_code == 200


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_explanations_are_those_of_the_library_and_come_with_their_test(client, run, method):
    sentence = look(client, q="I like soccer", explain=method).json()["sentences"][0]
    why = sentence["explanation"]
    own = Translator.load(run, engine="torch")
    case = Case(own.model, own.pipeline, "I like soccer", sentence["text"])
    found = explain(case, method, samples=200)
    torch.testing.assert_close(torch.tensor(why["importance"]), found.importance, rtol=0, atol=2e-3)
    assert (
        method == "lime" or found.importance.abs().max() > 0.01
    )  # LIME sees nothing of words that are all but impossible
    assert why["fit"] == pytest.approx(found.fit, abs=2e-3)
    assert why["faithfulness"] == pytest.approx(faithfulness(case, found)._asdict(), abs=2e-3)
    assert why["random"] == pytest.approx(random_faithfulness(case)._asdict(), abs=2e-3)
    assert why["faithfulness"] != why["random"]
    assert (why["source"], why["target"]) == (["I", "like", "soccer"], sentence["text"].split())


def test_a_contrast_is_that_of_the_library(client, run):
    asked = {"q": "I like soccer", "translations": ["me gusta el fútbol"], "explain": "erasure", "instead_of": "la"}
    why = look(client, **asked, word=2).json()["sentences"][0]["explanation"]
    own = Translator.load(run, engine="torch")
    case = contrast(Case(own.model, own.pipeline, "I like soccer", "me gusta el fútbol"), "la", 2)
    found = explain(case, "erasure")
    torch.testing.assert_close(torch.tensor(why["importance"]), found.importance, rtol=0, atol=2e-3)
    assert why["contrast"] == pytest.approx({"word": 2, "instead_of": "la", "log_odds": case.log_odds}, abs=2e-3)
    assert why["faithfulness"] == pytest.approx(faithfulness(case, found)._asdict(), abs=2e-3)
    for wrong in (
        {"explain": ""},
        {"instead_of": "", "word": 2},
        {"word": 9},
        {"word": "x"},
        {"instead_of": "x" * 101},
    ):
        assert look(client, **asked | wrong).status_code == 400, wrong
    assert look(client, q="I sing. You sing.", explain="erasure", instead_of="la").status_code == 400


def test_ways_to_go_on_begin_with_the_prefix_and_the_best_comes_first(client):
    piece = look(client, q="I like soccer").json()["sentences"][0]["pieces"][0]
    prefix = piece["tokens"][0]
    ways = client.post(
        "/continue", json={"q": "I like soccer", "source": "en", "target": "es", "prefix": prefix}
    ).json()
    assert len(ways) == 8
    assert all(way["tokens"][: len(prefix)] == prefix for way in ways)
    assert [way["probability"] for way in ways] == sorted((way["probability"] for way in ways), reverse=True)
    assert len({tuple(way["tokens"][: len(prefix) + 1]) for way in ways}) == 8


@pytest.mark.parametrize("prefix", [None, "x", [1], [2.5], [10**9], [True], [5] * 5000])
def test_wrong_prefixes(client, prefix):
    answer = client.post("/continue", json={"q": "a", "source": "en", "target": "es", "prefix": prefix})
    assert answer.status_code == 400


def test_the_tree_of_the_beam_search_of_each_sentence(client, run):
    asked = {"q": "I sing. You sing.", "source": "en", "target": "es"}
    trees = client.post("/beam", json=asked).json()["trees"]
    assert len(trees) == 2
    own = Translator.load(run, engine="torch")
    for tree, sentence in zip(trees, ("I sing.", "You sing."), strict=True):
        best = own.translate(sentence, beam=tree["beam"])
        assert tree["finished"][0]["node"] == tree["best"]
        assert tree["finished"][0]["text"] == best.text
        assert tree["finished"][0]["score"] == pytest.approx(best.score, abs=1e-4)
        assert tree["finished"][0]["log_prob"] == pytest.approx(best.nbest[0].hypotheses[0].log_probability, abs=1e-4)
        for node in tree["nodes"][1:]:
            assert node["log_prob"] <= tree["nodes"][node["parent"]]["log_prob"]
    assert client.post("/beam", json={**asked, "q": ""}).json() == {"trees": []}
    assert client.post("/beam", json={**asked, "q": "a" * 501}).status_code == 400


def test_all_maps_are_the_attention_of_the_library(client, run):
    pair = "I like soccer", "Me gusta el fútbol"
    piece = look(client, q=pair[0], translations=[pair[1]], maps="all").json()["sentences"][0]["pieces"][0]
    own = Translator.load(run, engine="torch")
    (seen,) = own.inspect([pair])
    heads = {(one["kind"], one["layer"], one["head"]): one["weights"] for one in piece["maps"]}
    names = {"encoder": "encoder.{}.self", "decoder": "decoder.{}.self", "cross": "decoder.{}.cross"}
    for kind, layers in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        for layer in range(layers):
            weights = seen.maps[names[kind].format(layer)].numpy()
            down, across = _merging(seen.source if kind == "encoder" else seen.target, "mean"), _merging(seen.source)
            if kind == "decoder":
                across = _merging(["<s>", *seen.target[:-1]])
            for head in range(2):
                expected = down @ weights[head] @ across.T
                np.testing.assert_allclose(heads[kind, layer, head], expected, atol=1e-4)
            np.testing.assert_allclose(heads[kind, layer, None], down @ weights.mean(0) @ across.T, atol=1e-4)
    assert len(piece["fed"]) == len(piece["target"]) == len(piece["sizes"])
    assert sum(piece["sizes"]) == len(seen.target)
    assert look(client, q="I sing", maps="some").status_code == 400


def _merging(pieces, how="sum"):
    """Return a matrix [words, pieces] that merges pieces to words, written without `word_spans`."""
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
        {"view": "map", "kind": "rollout"},
        {"view": "heads"},
        {"view": "beam"},
        {"view": "why", "method": "erasure"},
    ],
    ids=lambda view: " ".join(map(str, view.values())),
)
def test_every_view_is_saved_as_pdf(client, view):
    asked = {"q": "I sing", "source": "en", "target": "es", "translation": "Yo canto"}
    answer = client.post("/picture", json={**asked, **view})
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.content.startswith(b"%PDF")


def test_what_is_no_picture_is_refused(client):
    asked = {"q": "I sing", "source": "en", "target": "es", "translation": "Yo canto", "view": "map"}
    for wrong in (
        {"view": "all"},
        {"layer": 9},
        {"layer": "x"},
        {"kind": "none"},
        {"translation": " "},
        {"translation": "y" * 3000},
        {"view": "why", "method": "magic"},
    ):
        assert client.post("/picture", json={**asked, **wrong}).status_code == 400, wrong


def test_limits_and_names(client):
    assert look(client, q="a" * 501).status_code == 400
    assert look(client, q="a", model="other").status_code == 400
    assert look(client, q="a", explain="magic").status_code == 400
    assert look(client, q=" ").json()["sentences"] == []
    assert client.get("/models").json() == [{"name": "tiny", "reads": "text", "sources": ["en"], "targets": ["es"]}]


def test_two_models_of_one_folder_have_two_names(serve, run):
    client = serve(str(run), f"en-fr={run}")
    assert client.get("/models").json() == [
        {"name": "tiny", "reads": "text", "sources": ["en"], "targets": ["es"]},
        {"name": "tiny 2", "reads": "text", "sources": ["en"], "targets": ["fr"]},
    ]
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


def test_given_translations_are_looked_into_and_explained(client):
    asked = {"q": "I sing.  You sing.", "translations": ["Yo canto.", "Cantas."], "explain": "erasure"}
    answer = look(client, **asked).json()
    assert answer["translation"] == "Yo canto.  Cantas."
    for sentence, target in zip(answer["sentences"], asked["translations"], strict=True):
        assert sentence["text"] == target
        assert sentence["pieces"][0]["target"] == [*target.split(), "</s>"]
        assert sentence["explanation"]["target"] == target.split()
    for wrong in ("x", ["x"], ["x", 3], ["x", " "], ["x", "y" * 3000]):
        answer = look(client, q="I sing. You sing.", translations=wrong)
        assert answer.status_code == 400, wrong


def test_only_explanations_that_are_there_are_offered(client, monkeypatch):
    assert client.get("/frontend/settings").json()["explanations"] == ["erasure", "lime", "gradients"]
    known = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "captum" else known(name))
    assert client.get("/frontend/settings").json()["explanations"] == ["erasure", "lime"]
    refused = look(client, q="I sing", explain="gradients")
    assert refused.status_code == 400
    assert "pip" not in refused.json()["error"]


def test_what_is_missing_for_images_alone_is_not_missing_for_texts(client, monkeypatch):
    known = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "skimage" else known(name))
    settings = client.get("/frontend/settings").json()
    assert settings["explanations"] == ["erasure", "lime", "gradients"]
    assert settings["imageExplanations"] == ["erasure", "gradients"]


def test_what_looks_wrong_comes_with_each_sentence(client):
    first, second = look(client, q="I sing. 足球").json()["sentences"]
    assert "unknown characters: 足 球" in second["warnings"]
    assert not any(warning.startswith("unknown") for warning in first["warnings"])


def test_words_that_the_model_does_not_know_are_named(client):
    piece = look(client, q="She reads 足球").json()["sentences"][0]["pieces"][0]
    assert piece["source"] == ["She", "reads", "足球", "</s>"]
    assert piece["unknown"] == [2]


def test_the_language_is_found_out_by_the_same_question(serve, run):
    client = serve(str(run), f"es-en={run}")
    text = "Los niños leen un libro en el jardín"
    answer = look(client, q=text, source="auto", target="es", model="tiny").json()
    assert (answer["source"], answer["target"], answer["model"]) == ("es", "en", "tiny 2")
    assert answer["detectedLanguage"]["language"] == "es" and answer["detectedLanguage"]["confidence"] > 90
    answer = look(client, q="The children read a book in the garden", source="auto", target="es").json()
    assert (answer["source"], answer["target"]) == ("en", "es")
    answer = look(client, q="12", source="auto").json()
    assert (answer["source"], answer["detectedLanguage"]["confidence"]) == ("en", 0)
    assert client.post("/beam", json={"q": text, "source": "auto", "target": "es"}).status_code == 400


def test_the_terms_of_the_server_are_kept_to_and_told(run):
    terms = [Term("soccer", "balompié")]
    options = ServerOptions(hosts=("testserver",))
    with TestClient(create_app(load([str(run), f"es-en={run}"], "cpu", options, terms=terms), options)) as client:
        assert "balompié" in look(client, q="I like soccer").json()["translation"]
        asked = {"q": "I like soccer", "source": "es", "target": "en"}  # of the first model's languages alone
        assert "balompié" not in client.post("/translate", json=asked).json()["translatedText"]
        job = ended(client, send(client, b"I like soccer.\n").json())
        hints = client.get(f"/documents/{job['id']}/segments/0/hints").json()
        assert hints == {"matches": [], "terms": [{"source": "soccer", "target": "balompié"}]}
