"""POST /caption: captions, where the model looked, ways to go on."""

import io
import math

import pytest
import torch
from PIL import Image

from translucid.api.captioner import Captioner
from translucid.ground.errors import UserError
from translucid.inspection.explain import contrast, explain, faithfulness, random_faithfulness
from translucid.inspection.explain.faithfulness import part_count
from translucid.inspection.explain.image_case import image_case
from translucid.models.captioner.image_encoder import ImageEncoder
from translucid.serving.catalogue import load
from translucid.serving.server_options import ServerOptions

from .conftest import png


@pytest.fixture(scope="module")
def client(serve_for_all, eyes):
    return serve_for_all(str(eyes))


def ask(client, image, **fields):
    return client.post("/caption", files={"file": ("photo.png", image)}, data=fields)


def raw(client, image, kind="image/png", **fields):
    return client.post("/caption", content=image, params=fields, headers={"Content-Type": kind})


def test_the_caption_is_the_librarys_with_where_it_looked(client, eyes, scene):
    answer = ask(client, scene).json()
    found = Captioner.load(eyes).caption(scene)
    assert found.text
    assert (answer["model"], answer["caption"]) == ("eyes", found.text)
    assert answer["score"] == pytest.approx(found.score, abs=1e-3)
    assert answer["alternatives"] == [] and "ways" not in answer
    assert answer["grid"] == [8, 8] and answer["size"] == 64
    assert " ".join(row["word"] for row in answer["words"]) == found.text
    for row, weights, log_prob in zip(
        answer["words"], found.looked.weights().tolist(), found.looked.log_probs, strict=True
    ):
        assert row["probability"] == pytest.approx(math.exp(log_prob), abs=1e-4)
        assert len(row["weights"]) == 8
        for line, expected in zip(row["weights"], weights, strict=True):
            assert line == pytest.approx(expected, abs=1e-3)
        assert sum(map(sum, row["weights"])) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    "asked", [{"nbest": "3"}, {"ways": "2"}, {"prefix": "a", "ways": "2"}, {"caption": "a red star"}]
)
def test_the_network_looks_once_however_much_is_asked(client, scene, monkeypatch, asked):
    look, seen = ImageEncoder.compute_grids, []
    monkeypatch.setattr(
        ImageEncoder, "compute_grids", lambda eye, pixels: seen.append(len(pixels)) or look(eye, pixels)
    )
    assert ask(client, scene, **asked).status_code == 200
    assert seen == [1]


def test_the_body_may_be_the_image(client, scene):
    assert raw(client, scene).json() == ask(client, scene).json()
    opened = Image.open(io.BytesIO(scene))
    for kind in ("JPEG", "WEBP", "GIF", "BMP"):
        assert raw(client, png(opened.convert("RGB"), kind), f"image/{kind.lower()}").status_code == 200


def test_a_wider_search_and_more_captions(client, eyes, scene):
    found = Captioner.load(eyes).caption(scene, beam=6, nbest=4)
    answer = raw(client, scene, beam=6, nbest=4).json()
    assert [answer["caption"], *(one["caption"] for one in answer["alternatives"])] == found.alternatives
    scores = [answer["score"], *(one["score"] for one in answer["alternatives"])]
    assert scores == pytest.approx([one.score for one in found.nbest], abs=1e-3)
    assert len(raw(client, scene, beam=1, nbest=3).json()["alternatives"]) == 2


def test_a_caption_begins_with_a_prefix_and_ways_to_go_on_are_the_likeliest(client, eyes, scene):
    captioner = Captioner.load(eyes)
    found = captioner.continued(captioner.picture(scene), "a red", 5)
    answer = ask(client, scene, prefix="a red", ways=5).json()
    assert answer["caption"] == found[0].text
    assert [way["caption"] for way in answer["ways"]] == [one.text for one in found]
    assert all(way["caption"].startswith("a red") for way in answer["ways"])
    probabilities = [way["probability"] for way in answer["ways"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1
    begun = len(captioner.tokenizer.encode_target(["a red"])[0])
    assert probabilities[0] == pytest.approx(math.exp(found[0].hypothesis.token_log_probabilities[begun]), abs=1e-4)
    for way in answer["ways"]:
        assert way["caption"] == "a red" or way["next"] in way["caption"][5:]
    alternatives = ask(client, scene, prefix="a red", nbest=3).json()["alternatives"]
    assert [one["caption"] for one in alternatives] == [one.text for one in found[1:3]]


def test_each_layer_and_head_and_the_tree_are_those_of_the_library(client, eyes, scene):
    answer = ask(client, scene, maps="true", tree="true").json()
    captioner = Captioner.load(eyes)
    picture = captioner.picture(scene)
    found = captioner.caption(picture)
    (only,) = answer["maps"]  # of one layer with one head
    assert answer["heads"] == 1
    assert (only["name"], only["layer"], only["head"]) == ("all layers and heads", None, None)
    torch.testing.assert_close(torch.tensor(only["weights"]), found.looked.weights(), rtol=0, atol=1e-3)
    assert sum(row["pieces"] for row in answer["words"]) == len(found.nbest[0].hypothesis.tokens)
    tree = answer["tree"]
    assert tree["beam"] == tree["own"] == captioner.configuration.decoding.beam
    assert len(tree["nodes"]) == len(captioner.trace(picture, tree["beam"]).nodes)
    assert tree["finished"][0]["text"] == found.text
    assert tree["finished"][0]["score"] == pytest.approx(found.score, abs=1e-4)


@pytest.mark.parametrize("method", ["erasure", "gradients", "lime"])
def test_an_explanation_is_that_of_the_library_and_comes_with_its_test(client, eyes, scene, method):
    answer = ask(client, scene, caption="a red star", explain=method).json()["explanation"]
    captioner = Captioner.load(eyes)
    picture = captioner.picture(scene)
    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, "a red star", captioner.grid)
    found = explain(case, method, samples=200)
    assert answer["method"] == method and answer["target"] == ["a", "red", "star"]
    laid = torch.tensor(answer["importance"])
    if method == "lime":  # every so many pixels of it
        assert laid.shape[0] == 3 and max(laid.shape[1:]) <= 48 and len(answer["fit"]) == 3
        known = torch.tensor(found.importance).unique()
        assert all((known - value).abs().min() < 1e-3 for value in laid.unique())
    else:
        assert list(laid.shape[1:]) == list(captioner.grid)
        torch.testing.assert_close(laid.flatten(1), found.importance, rtol=0, atol=1e-3)
    k = part_count(0.1, len(found.source))
    assert answer["faithfulness"] == pytest.approx(faithfulness(case, found, k)._asdict(), abs=1e-3)
    assert answer["random"] == pytest.approx(random_faithfulness(case, k)._asdict(), abs=1e-3)


def test_a_contrast_is_that_of_the_library(client, eyes, scene):
    asked = {"caption": "a red star", "explain": "erasure", "instead_of": "blue", "word": "1"}
    answer = ask(client, scene, **asked).json()["explanation"]
    captioner = Captioner.load(eyes)
    picture = captioner.picture(scene)
    case = image_case("erasure", captioner.model, captioner.tokenizer, picture.pixels, "a red star", captioner.grid)
    contrasted = contrast(case, "blue", 1)
    found = explain(contrasted, "erasure").importance
    torch.testing.assert_close(torch.tensor(answer["importance"]).flatten(1), found, rtol=0, atol=1e-3)
    assert answer["contrast"] == pytest.approx(contrasted.to_json(), abs=1e-3)
    drawn = {"data": {**asked, "view": "why", "method": "erasure"}, "files": {"file": ("a.png", scene)}}
    assert client.post("/caption/picture", **drawn).content.startswith(b"%PDF")


def test_only_explanations_of_images_that_are_there_are_offered(client, scene):
    assert client.get("/frontend/settings").json()["imageExplanations"] == ["erasure", "lime", "gradients"]
    refused = ask(client, scene, explain="magic")
    assert refused.status_code == 400 and "no explanation by 'magic'" in refused.json()["error"]


@pytest.mark.parametrize("view", ["map", "heads", "beam", "why"])
def test_every_view_is_saved_as_pdf(client, scene, view):
    asked = {"data": {"caption": "a red star", "view": view}, "files": {"file": ("a.png", scene)}}
    answer = client.post("/caption/picture", **asked)
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.content.startswith(b"%PDF")


def test_ways_to_begin_leave_the_caption_as_it_is(client, scene):
    answer = ask(client, scene, ways=8).json()
    assert answer["caption"] == ask(client, scene).json()["caption"]
    assert len(answer["ways"]) == 8


def test_a_given_caption_is_looked_at_and_not_written(client, eyes, scene):
    answer = ask(client, scene, caption="a red circle").json()
    captioner = Captioner.load(eyes)
    looked = captioner.inspect(captioner.picture(scene), "a red circle")
    assert answer["caption"] == "a red circle"
    assert [row["word"] for row in answer["words"]] == ["a", "red", "circle"]
    expected = [math.exp(log_prob) for log_prob in looked.log_probs]
    assert [row["probability"] for row in answer["words"]] == pytest.approx(expected, abs=1e-4)
    best = ask(client, scene).json()
    again = ask(client, scene, caption=best["caption"]).json()
    # A model that knows next to nothing writes words in other pieces than the tokenizer would cut them into.
    assert [row["word"] for row in again["words"]] == [row["word"] for row in best["words"]]


def test_it_is_counted(serve, eyes, scene):
    client = serve(str(eyes))
    ask(client, scene)
    counted = 'translucid_http_request_duration_seconds_count{path="/caption",status="200"} 1.0'
    assert counted in client.get("/metrics").text


def test_translators_and_captioners_beside_each_other(serve, run, eyes, scene):
    client = serve(str(run), str(eyes), str(eyes))
    assert client.get("/models").json() == [
        {"name": "tiny", "reads": "text", "sources": ["en"], "targets": ["es"]},
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
    asked = {"q": "I sing", "source": "en", "target": "es"}
    for path in ("/translate", "/look", "/continue", "/beam", "/detect"):
        for fields in (asked, {**asked, "source": "auto"}):
            answer = client.post(path, json={**fields, "prefix": []})
            assert answer.status_code == 400, path
            assert "No translator is served here" in answer.json()["error"]
    file = client.post("/translate_file", files={"file": ("a.txt", b"I sing")}, data={"source": "en", "target": "es"})
    assert "No translator is served here" in file.json()["error"]


def test_translators_alone(serve, scene):
    answer = ask(serve(), scene)
    assert answer.status_code == 400
    assert "No model that writes about images" in answer.json()["error"]


def test_languages_are_not_given_to_a_model_of_images(eyes):
    with pytest.raises(UserError, match="does not go from one language to another"):
        load([f"en-es={eyes}"], "cpu", ServerOptions())


def test_a_model_without_attention(serve, eyes, scene, monkeypatch):
    monkeypatch.setattr("translucid.inspection.saliency_overlay.AttentionResult.looks", property(lambda _: False))
    answer = ask(serve(str(eyes)), scene).json()
    assert answer["grid"] is None
    assert answer["words"] and not any("weights" in row for row in answer["words"])


def test_it_is_documented(client):
    spec = client.get("/spec").json()["paths"]["/caption"]["post"]
    kinds = spec["requestBody"]["content"]
    assert {"multipart/form-data", "image/jpeg", "image/png"} <= kinds.keys()
    wanted = {
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
    assert wanted == {one["name"] for one in spec["parameters"]}
    assert wanted | {"file"} == kinds["multipart/form-data"]["schema"]["properties"].keys()
    assert "words" in spec["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert {"413", "415", "503"} <= spec["responses"].keys()
