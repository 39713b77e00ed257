"""POST /caption: captions, attention over the image, and continuations."""

import io
import math

import pytest
import torch
from PIL import Image

from translucid.captions.captioner import Captioner
from translucid.captions.image_cases import image_case
from translucid.captions.image_encoder import ImageEncoder
from translucid.ground.errors import UserError
from translucid.inspection.explain import contrast, explain, faithfulness, part_count, random_faithfulness
from translucid.runs.run_folder import RunFolder
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions

from .conftest import png


@pytest.fixture(scope="module")
def client(serve_for_all, captioner_run):
    return serve_for_all(str(captioner_run))


def ask(client, image, **fields):
    return client.post("/caption", files={"file": ("photo.png", image)}, data=fields)


def raw(client, image, kind="image/png", **fields):
    return client.post("/caption", content=image, params=fields, headers={"Content-Type": kind})


@pytest.mark.parametrize(
    "fields", [{"nbest": "3"}, {"ways": "2"}, {"prefix": "a", "ways": "2"}, {"caption": "a red star"}]
)
def test_the_network_looks_once_however_much_is_asked(client, scene, monkeypatch, fields):
    look, calls = ImageEncoder.compute_grids, []
    monkeypatch.setattr(
        ImageEncoder, "compute_grids", lambda encoder, pixels: calls.append(len(pixels)) or look(encoder, pixels)
    )
    assert ask(client, scene, **fields).status_code == 200
    assert calls == [1]


def test_the_body_may_be_the_image(client, scene):
    assert raw(client, scene).json() == ask(client, scene).json()
    image = Image.open(io.BytesIO(scene))
    for format_name in ("JPEG", "WEBP", "GIF", "BMP"):
        assert raw(client, png(image.convert("RGB"), format_name), f"image/{format_name.lower()}").status_code == 200


def test_a_wider_search_and_more_captions(client, captioner_run, scene):
    caption = Captioner.load(captioner_run).caption(scene, beam=6, nbest=4)
    answer = raw(client, scene, beam=6, nbest=4).json()
    assert [answer["caption"], *(row["caption"] for row in answer["alternatives"])] == caption.alternatives
    scores = [answer["score"], *(row["score"] for row in answer["alternatives"])]
    assert scores == pytest.approx([hypothesis.score for hypothesis in caption.nbest], abs=1e-3)
    assert len(raw(client, scene, beam=1, nbest=3).json()["alternatives"]) == 2


def test_each_layer_and_head_and_the_tree_are_those_of_the_library(client, captioner_run, scene):
    answer = ask(client, scene, maps="true", tree="true").json()
    captioner = Captioner.load(captioner_run)
    picture = captioner.picture(scene)
    caption = captioner.caption(picture)
    (attention_map,) = answer["maps"]  # the model has one layer with one head
    assert answer["heads"] == 1
    assert (attention_map["name"], attention_map["layer"], attention_map["head"]) == (
        "all layers and heads",
        None,
        None,
    )
    torch.testing.assert_close(torch.tensor(attention_map["weights"]), caption.looked.weights(), rtol=0, atol=1e-3)
    assert sum(row["pieces"] for row in answer["words"]) == len(caption.nbest[0].hypothesis.tokens)
    tree = answer["tree"]
    assert tree["beam"] == tree["own"] == captioner.configuration.decoding.beam
    assert len(tree["nodes"]) == len(captioner.trace(picture, tree["beam"]).nodes)
    assert tree["finished"][0]["text"] == caption.text
    assert tree["finished"][0]["score"] == pytest.approx(caption.score, abs=1e-4)


@pytest.mark.parametrize("method", ["erasure", "gradients", "lime"])
def test_an_explanation_is_that_of_the_library_and_comes_with_its_test(client, captioner_run, scene, method):
    answer = ask(client, scene, caption="a red star", explain=method).json()["explanation"]
    captioner = Captioner.load(captioner_run)
    picture = captioner.picture(scene)
    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, "a red star", captioner.grid)
    explanation = explain(case, method, samples=200)
    assert answer["method"] == method and answer["target"] == ["a", "red", "star"]
    importance = torch.tensor(answer["importance"])
    if method == "lime":  # importance per pixel, on a coarser grid
        assert importance.shape[0] == 3 and max(importance.shape[1:]) <= 48 and len(answer["fit"]) == 3
        expected_values = torch.tensor(explanation.importance).unique()
        assert all((expected_values - value).abs().min() < 1e-3 for value in importance.unique())
    else:
        assert list(importance.shape[1:]) == list(captioner.grid)
        torch.testing.assert_close(importance.flatten(1), explanation.importance, rtol=0, atol=1e-3)
    k = part_count(0.1, len(explanation.source))
    assert answer["faithfulness"] == pytest.approx(faithfulness(case, explanation, k)._asdict(), abs=1e-3)
    assert answer["random"] == pytest.approx(random_faithfulness(case, k)._asdict(), abs=1e-3)


def test_a_contrast_is_that_of_the_library(client, captioner_run, scene):
    fields = {"caption": "a red star", "explain": "erasure", "instead_of": "blue", "word": "1"}
    answer = ask(client, scene, **fields).json()["explanation"]
    captioner = Captioner.load(captioner_run)
    picture = captioner.picture(scene)
    case = image_case("erasure", captioner.model, captioner.tokenizer, picture.pixels, "a red star", captioner.grid)
    contrasted = contrast(case, "blue", 1)
    importance = explain(contrasted, "erasure").importance
    torch.testing.assert_close(torch.tensor(answer["importance"]).flatten(1), importance, rtol=0, atol=1e-3)
    assert answer["contrast"] == pytest.approx(contrasted.to_json(), abs=1e-3)
    request = {"data": {**fields, "view": "why", "method": "erasure"}, "files": {"file": ("a.png", scene)}}
    assert client.post("/caption/picture", **request).content.startswith(b"%PDF")


def test_only_explanations_of_images_that_are_there_are_offered(client, scene):
    assert client.get("/frontend/settings").json()["imageExplanations"] == ["erasure", "lime", "gradients"]
    response = ask(client, scene, explain="magic")
    assert response.status_code == 400 and "no explanation by 'magic'" in response.json()["error"]


@pytest.mark.parametrize("view", ["map", "heads", "beam", "why"])
def test_every_view_is_saved_as_pdf(client, scene, view):
    request = {"data": {"caption": "a red star", "view": view}, "files": {"file": ("a.png", scene)}}
    response = client.post("/caption/picture", **request)
    assert response.headers["content-type"] == "application/pdf"
    assert response.content.startswith(b"%PDF")


def test_ways_to_begin_leave_the_caption_as_it_is(client, scene):
    answer = ask(client, scene, ways=8).json()
    assert answer["caption"] == ask(client, scene).json()["caption"]
    assert len(answer["ways"]) == 8


def test_a_given_caption_is_inspected_and_not_generated(client, captioner_run, scene):
    answer = ask(client, scene, caption="a red circle").json()
    captioner = Captioner.load(captioner_run)
    inspected = captioner.inspect(captioner.picture(scene), "a red circle")
    assert answer["caption"] == "a red circle"
    assert [row["word"] for row in answer["words"]] == ["a", "red", "circle"]
    expected = [math.exp(log_prob) for log_prob in inspected.log_probs]
    assert [row["probability"] for row in answer["words"]] == pytest.approx(expected, abs=1e-4)
    best = ask(client, scene).json()
    repeated = ask(client, scene, caption=best["caption"]).json()
    # An untrained model writes words in pieces that differ from the tokenizer's.
    assert [row["word"] for row in repeated["words"]] == [row["word"] for row in best["words"]]


def test_caption_requests_are_counted(serve, captioner_run, scene):
    client = serve(str(captioner_run))
    ask(client, scene)
    expected = 'translucid_http_request_duration_seconds_count{path="/caption",status="200"} 1.0'
    assert expected in client.get("/metrics").text


def test_translators_and_captioners_beside_each_other(serve, run, captioner_run, scene):
    client = serve(str(run), str(captioner_run), str(captioner_run))
    assert client.get("/models").json() == [
        {
            "name": "tiny",
            "reads": "text",
            "sources": ["en"],
            "targets": ["es"],
            "package_version": RunFolder(run).last_version(),
        },
        {"name": "eyes", "reads": "images"},
        {"name": "eyes 2", "reads": "images"},
    ]
    assert [row["code"] for row in client.get("/languages").json()] == ["en", "es"]
    assert client.post("/translate", json={"q": "I sing", "source": "en", "target": "es"}).status_code == 200
    assert ask(client, scene).json()["model"] == "eyes"
    assert ask(client, scene, model="eyes 2").json()["model"] == "eyes 2"
    assert ask(client, scene, model="tiny").status_code == 400
    assert client.get("/frontend/settings").json()["language"]["source"]["code"] == "en"


def test_captioners_alone(client, scene):
    assert ask(client, scene).status_code == 200
    assert client.get("/languages").json() == []
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/frontend/settings").json()["language"] is None
    request = {"q": "I sing", "source": "en", "target": "es"}
    for path in ("/translate", "/look", "/continue", "/beam", "/detect"):
        for fields in (request, {**request, "source": "auto"}):
            response = client.post(path, json={**fields, "prefix": []})
            assert response.status_code == 400, path
            assert "No translator is served here" in response.json()["error"]
    file_response = client.post(
        "/translate_file", files={"file": ("a.txt", b"I sing")}, data={"source": "en", "target": "es"}
    )
    assert "No translator is served here" in file_response.json()["error"]


def test_translators_alone(serve, scene):
    response = ask(serve(), scene)
    assert response.status_code == 400
    assert "No model that writes about images" in response.json()["error"]


def test_languages_are_not_given_to_a_model_of_images(captioner_run):
    with pytest.raises(UserError, match="does not go from one language to another"):
        load([f"en-es={captioner_run}"], "cpu", ServerOptions())


def test_the_route_is_documented(client):
    spec = client.get("/spec").json()["paths"]["/caption"]["post"]
    kinds = spec["requestBody"]["content"]
    assert {"multipart/form-data", "image/jpeg", "image/png"} <= kinds.keys()
    expected = {
        "model",
        "beam",
        "nbest",
        "prefix",
        "ways",
        "caption",
        "maps",
        "tree",
        "explain",
        "instead_of",
        "word",
        "api_key",
    }
    assert expected == {parameter["name"] for parameter in spec["parameters"]}
    assert expected | {"file"} == kinds["multipart/form-data"]["schema"]["properties"].keys()
    assert "words" in spec["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert {"413", "415", "503"} <= spec["responses"].keys()
