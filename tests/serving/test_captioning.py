"""POST /caption: captions, where the model looked, ways to go on; what is refused."""

import io
import math
import socket
import struct
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from PIL import Image

from translucid.api.captioner import Captioner
from translucid.cli import main
from translucid.ground.errors import UserError
from translucid.inspection.explain import explain, faithfulness, random_faithfulness
from translucid.inspection.explain.faithfulness import part_count
from translucid.inspection.explain.image_case import image_case
from translucid.models.captioner.image_encoder import ImageEncoder
from translucid.serving import catalogue
from translucid.serving.catalogue import load
from translucid.serving.server_options import Quota, ServerOptions

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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"view": "how"}, "view is none of"),
        ({"view": "why", "method": "magic"}, "no explanation by 'magic'"),
        ({"caption": " "}, "no caption"),
        ({"caption": "a" * 501}, "500"),
        ({"layer": "9"}, "layer"),
        ({"head": "x"}, "whole number"),
        ({"model": "other"}, "'other'"),
    ],
)
def test_what_is_no_picture_is_refused(client, scene, fields, said):
    asked = {"caption": "a red star", "view": "map", **fields}
    answer = client.post("/caption/picture", data=asked, files={"file": ("a.png", scene)})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "other"}, "'other'"),
        ({"beam": 0}, "less than 1"),
        ({"beam": 11}, "more than 10"),
        ({"nbest": 0}, "less than 1"),
        ({"nbest": 7}, "more than 6"),
        ({"ways": 9}, "more than 8"),
        ({"ways": "x"}, "whole number"),
        ({"prefix": "a" * 501}, "500"),
        ({"caption": "a" * 501}, "500"),
        ({"prefix": "足球"}, "does not know"),
        ({"caption": "足球"}, "does not know"),
        ({"prefix": ["a", "b"]}, "not a text"),
    ],
)
def test_wrong_fields(client, scene, fields, said):
    answer = ask(client, scene, **fields)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def bomb(width, height):
    """A PNG whose header promises more than there is."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100_000))


HOSTILE = {
    "a bomb": (bomb(60_000, 60_000), "pixels"),
    "a thread": (bomb(20_000, 10), "times the other"),
    "text": (b"I am no picture, but my name ends in .jpg", "not a picture"),
    "a page": (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not a picture"),
    "one that stops": (bomb(900, 900), "truncated or broken"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_images_are_one_clear_line(client, what):
    image, said = HOSTILE[what]
    for answer in (ask(client, image), raw(client, image, "image/jpeg")):
        assert answer.status_code == 400
        assert said in answer.json()["error"] and "\n" not in answer.json()["error"]
    assert client.get("/health").status_code == 200


def test_good_and_bad_images_at_once_are_answered_as_alone(client, scene):
    small = png(Image.open(io.BytesIO(scene)).resize((40, 40)), "JPEG")
    sent = [scene, *(image for image, _ in HOSTILE.values()), small, scene[: len(scene) // 2]]
    alone = [raw(client, image) for image in sent]
    assert [answer.status_code == 200 for answer in alone] == [image in (scene, small) for image in sent]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda image: raw(client, image), sent * 3))
    assert [(answer.status_code, answer.json()) for answer in together] == [
        (answer.status_code, answer.json()) for answer in alone * 3
    ]


def test_a_truncated_photograph(client, scene):
    jpeg = png(Image.open(io.BytesIO(scene)).resize((400, 300)), "JPEG")
    answer = raw(client, jpeg[: len(jpeg) // 2], "image/jpeg")
    assert answer.status_code == 400
    assert "truncated or broken" in answer.json()["error"]


def test_no_image(client):
    for answer in (raw(client, b""), client.post("/caption", files={"other": b"x"}), ask(client, b"")):
        assert answer.status_code == 400
        assert "missing file" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/x-www-form-urlencoded", ""])
def test_what_says_that_it_is_no_image(client, scene, kind):
    answer = raw(client, scene, kind)
    assert answer.status_code == 415
    assert "image/jpeg" in answer.json()["error"]


def test_bytes_are_bounded(serve, eyes, scene):
    client = serve(str(eyes), image_bytes=len(scene))
    assert raw(client, scene).status_code == ask(client, scene).status_code == 200
    for answer in (raw(client, scene + b"\0"), ask(client, scene + b"\0"), ask(client, bytes(len(scene) + 30_000))):
        assert answer.status_code == 413
        assert "more than" in answer.json()["error"]


def test_the_command_says_how_many_bytes(eyes, monkeypatch):
    class Enough(Exception):  # noqa: N818
        pass

    def load(runs, device, given, engine, *terms):
        assert (runs, given.image_bytes) == ([str(eyes)], 5000)
        raise Enough

    monkeypatch.setattr(catalogue, "load", load)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with pytest.raises(Enough):
        main.app(["serve", str(eyes), "--port", str(port), "--image-bytes", "5000"], standalone_mode=False)


def test_keys_quotas_and_time(serve, eyes, scene):
    client = serve(str(eyes), api_keys={"secret": None})
    assert ask(client, scene).status_code == 400
    assert ask(client, scene, api_key="wrong").status_code == 403
    assert ask(client, scene, api_key="secret").status_code == 200
    limited = serve(str(eyes), quota=Quota(per_minute=1))
    assert [ask(limited, scene).status_code for _ in range(2)] == [200, 429]
    hurried = serve(str(eyes), seconds=0.0)
    late = ask(hurried, scene)
    assert late.status_code == 503
    assert "more than 0 seconds" in late.json()["error"]


def test_a_full_workshop_sends_away(client, scene, monkeypatch):
    monkeypatch.setattr("translucid.serving.queue.worker_pool.PLACES", 0)
    assert ask(client, scene).status_code == 503


def test_images_are_not_written_to_a_disk_nor_logged(serve, eyes, monkeypatch, caplog):
    def refuse(*_, **__):
        raise AssertionError("an image is written to a disk")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
    big = png(Image.effect_noise((1400, 1400), 80))
    assert len(big) > 1 << 20
    caplog.set_level(0)
    answer = serve(str(eyes), log="text").post("/caption", files={"file": ("secret-holiday.png", big)})
    assert answer.status_code == 200
    assert any("/caption 200" in record.getMessage() for record in caplog.records)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("translucid")]
    assert not any("holiday" in line or answer.json()["caption"] in line for line in ours)


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
    monkeypatch.setattr("translucid.inspection.attention_result.AttentionResult.looks", property(lambda _: False))
    answer = ask(serve(str(eyes)), scene).json()
    assert answer["grid"] is None
    assert answer["words"] and not any("weights" in row for row in answer["words"])


def test_it_is_documented(client):
    spec = client.get("/spec").json()["paths"]["/caption"]["post"]
    kinds = spec["requestBody"]["content"]
    assert {"multipart/form-data", "image/jpeg", "image/png"} <= kinds.keys()
    wanted = {"model", "beam", "nbest", "prefix", "ways", "caption", "maps", "tree", "explain", "api_key"}
    assert wanted == {one["name"] for one in spec["parameters"]}
    assert wanted | {"file"} == kinds["multipart/form-data"]["schema"]["properties"].keys()
    assert "words" in spec["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert {"413", "415", "503"} <= spec["responses"].keys()
