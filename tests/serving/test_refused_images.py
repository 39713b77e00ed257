"""POST /caption: which images and fields are refused, and when; images are neither logged nor written to disk."""

import io
import struct
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from translucid.serving.server_options import Quota

from .conftest import png
from .test_captioning import ask, raw


@pytest.fixture(scope="module")
def client(serve_for_all, captioner_run):
    return serve_for_all(str(captioner_run))


@pytest.mark.parametrize(
    ("fields", "message"),
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
def test_files_that_are_not_images_are_refused(client, scene, fields, message):
    fields_sent = {"caption": "a red star", "view": "map", **fields}
    response = client.post("/caption/picture", data=fields_sent, files={"file": ("a.png", scene)})
    assert response.status_code == 400
    assert message in response.json()["error"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "other"}, "'other'"),
        ({"beam": 11}, "more than 10"),
        ({"ways": "x"}, "whole number"),
        ({"prefix": ["a", "b"]}, "not a text"),
    ],
)
def test_wrong_fields(client, scene, fields, message):
    response = ask(client, scene, **fields)
    assert response.status_code == 400
    assert message in response.json()["error"]


def bomb(width, height):
    """Return a PNG whose header promises more pixels than its data contain."""

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


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_images_are_one_clear_line(client, kind):
    image, message = HOSTILE[kind]
    for response in (ask(client, image), raw(client, image, "image/jpeg")):
        assert response.status_code == 400
        assert message in response.json()["error"] and "\n" not in response.json()["error"]
    assert client.get("/health").status_code == 200


def test_good_and_bad_images_at_once_are_answered_as_alone(client, scene):
    small = png(Image.open(io.BytesIO(scene)).resize((40, 40)), "JPEG")
    images = [scene, *(image for image, _ in HOSTILE.values()), small, scene[: len(scene) // 2]]
    expected = [raw(client, image) for image in images]
    assert [response.status_code == 200 for response in expected] == [image in (scene, small) for image in images]
    with ThreadPoolExecutor(4) as pool:
        concurrent = list(pool.map(lambda image: raw(client, image), images * 3))
    assert [(response.status_code, response.json()) for response in concurrent] == [
        (response.status_code, response.json()) for response in expected * 3
    ]


def test_a_truncated_photograph(client, scene):
    jpeg = png(Image.open(io.BytesIO(scene)).resize((400, 300)), "JPEG")
    response = raw(client, jpeg[: len(jpeg) // 2], "image/jpeg")
    assert response.status_code == 400
    assert "truncated or broken" in response.json()["error"]


def test_no_image(client):
    for response in (raw(client, b""), client.post("/caption", files={"other": b"x"}), ask(client, b"")):
        assert response.status_code == 400
        assert "missing file" in response.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/x-www-form-urlencoded", ""])
def test_bodies_with_another_content_type(client, scene, kind):
    response = raw(client, scene, kind)
    assert response.status_code == 415
    assert "image/jpeg" in response.json()["error"]


def test_bytes_are_bounded(serve, captioner_run, scene):
    client = serve(str(captioner_run), image_bytes=len(scene))
    assert raw(client, scene).status_code == ask(client, scene).status_code == 200
    for response in (raw(client, scene + b"\0"), ask(client, scene + b"\0"), ask(client, bytes(len(scene) + 30_000))):
        assert response.status_code == 413
        assert "more than" in response.json()["error"]


def test_the_command_says_how_many_bytes(captioner_run, serve_arguments):
    runs, options = serve_arguments(captioner_run, "--image-bytes", "5000")
    assert (runs, options.image_bytes) == ([str(captioner_run)], 5000)


def test_keys_quotas_and_time(serve, captioner_run, scene):
    client = serve(str(captioner_run), api_keys={"secret": None})
    assert ask(client, scene).status_code == 401
    assert ask(client, scene, api_key="wrong").status_code == 403
    assert ask(client, scene, api_key="secret").status_code == 200
    limited = serve(str(captioner_run), quota=Quota(per_minute=1))
    assert [ask(limited, scene).status_code for _ in range(2)] == [200, 429]
    without_time = serve(str(captioner_run), seconds=0.0)
    response = ask(without_time, scene)
    assert response.status_code == 503
    assert "more than 0 seconds" in response.json()["error"]


def test_a_full_worker_pool_refuses_requests(client, scene, monkeypatch):
    monkeypatch.setattr("translucid.serving.queue.PLACES", 0)
    assert ask(client, scene).status_code == 503


def test_images_are_not_written_to_a_disk_nor_logged(serve, captioner_run, monkeypatch, caplog):
    def refuse(*_, **__):
        raise AssertionError("an image is written to a disk")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
    large_image = png(Image.effect_noise((1400, 1400), 80))
    assert len(large_image) > 1 << 20
    caplog.set_level(0)
    response = serve(str(captioner_run), log="text").post(
        "/caption", files={"file": ("secret-holiday.png", large_image)}
    )
    assert response.status_code == 200
    assert any("/caption 200" in record.getMessage() for record in caplog.records)
    our_messages = [record.getMessage() for record in caplog.records if record.name.startswith("translucid")]
    assert not any("holiday" in line or response.json()["caption"] in line for line in our_messages)
