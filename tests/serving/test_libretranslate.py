"""The shapes that LibreTranslate's clients expect, and clear errors for everything else."""

import re
import time

import pytest

from translucid.serving.server_options import Quota
from translucid.translator import Translator


def say(client, **fields):
    return client.post("/translate", json={"source": "en", "target": "es", **fields})


def test_a_text_gives_a_text_and_a_list_a_list(client, run):
    expected = Translator.load(run).translate("I like soccer").text
    assert say(client, q="I like soccer").json() == {"translatedText": expected}
    assert say(client, q=["I like soccer", ""]).json() == {"translatedText": [expected, ""]}
    form = client.post("/translate", data={"q": "I like soccer", "source": "en", "target": "es"})
    assert form.json() == {"translatedText": expected}


def test_alternatives_only_when_asked_for_and_never_more_than_allowed(client):
    one = say(client, q="I like soccer", alternatives=3).json()
    assert 0 < len(one["alternatives"]) <= 3
    assert one["translatedText"] not in one["alternatives"]
    many = say(client, q=["I like soccer", "You sing"], alternatives=2).json()
    assert len(many["alternatives"]) == 2
    assert all(isinstance(others, list) for others in many["alternatives"])
    for wanted in (6, 10_000):
        refused = say(client, q="I like soccer", alternatives=wanted)
        assert refused.status_code == 400
        assert "alternatives is more than 5" in refused.json()["error"]
    assert "alternatives" not in say(client, q="I like soccer", alternatives=0).json()


def test_auto_tells_what_it_found(client):
    one = say(client, q="The children are reading a book in the garden", source="auto").json()
    assert one["detectedLanguage"]["language"] == "en"
    assert 0 < one["detectedLanguage"]["confidence"] <= 100
    many = say(client, q=["I would like to read the newspaper", "Los niños leen un libro"], source="auto").json()
    assert [found["language"] for found in many["detectedLanguage"]] == ["en", "es"]
    assert many["translatedText"][1] == "Los niños leen un libro"  # it is in that language already


def test_languages_health_settings_and_detection(client):
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["en", "es"]},
        {"code": "es", "name": "Spanish", "targets": ["es"]},
    ]
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/frontend/settings").json()["charLimit"] == 5000
    found = client.post("/detect", data={"q": "Los niños leen un libro en el jardín"}).json()
    assert found[0]["language"] == "es"
    assert found[0]["confidence"] > 50


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "I sing.\n\n  You sing.\r\nShe sings.\n",
        "  I sing. You sing.  She sings.\n\tHe sings.",
        "a\u2028b\vc",
        "😀",
        "שלום עולם",
        "x" * 3000,
    ],
)
def test_white_space_stays_as_it_is(client, text):
    answer = say(client, q=text)
    assert answer.status_code == 200
    translated = answer.json()["translatedText"]
    assert re.findall(r"[\n\r\t\v\u2028]", translated) == re.findall(r"[\n\r\t\v\u2028]", text)
    space = r"^\s*"
    assert re.match(space, translated)[0] == re.match(space, text)[0]
    if not text.strip():
        assert translated == text


def test_no_sentence_is_lost(client):
    """Users of other servers lose all but the first."""
    alone = [say(client, q=text).json()["translatedText"] for text in ("I sing.", "You sing.", "She sings.")]
    assert (
        say(client, q="I sing. You sing.\nShe sings.").json()["translatedText"] == f"{alone[0]} {alone[1]}\n{alone[2]}"
    )


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"q": None}, 400, "missing q"),
        ({"q": 3}, 400, "neither a text"),
        ({"q": ["a", 3]}, 400, "neither a text"),
        ({"q": "a", "source": None}, 400, "missing source"),
        ({"q": "a", "source": "xx"}, 400, "xx is not supported"),
        ({"q": "a", "target": "xx"}, 400, "xx is not supported"),
        ({"q": "a", "source": "es", "target": "en"}, 400, "not available"),
        ({"q": "a", "source": "auto", "target": "xx"}, 400, "not supported"),
        ({"q": "a", "format": "pdf"}, 400, "format is not supported"),
        ({"q": "a", "alternatives": -1}, 400, "whole number"),
        ({"q": "a", "alternatives": "many"}, 400, "whole number"),
        ({"q": "a" * 5001}, 400, "limit of 5000"),
        ({"q": ["a"] * 201}, 400, "limit of 200"),
        ({"q": "a", "target": ["es"]}, 400, "not a text"),
    ],
)
def test_what_is_wrong_is_said(client, fields, status, said):
    answer = say(client, **fields)
    assert answer.status_code == status
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"[" * 100_000, "application/json", 413),
        (b"[" * 50_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"q=a", "text/csv", 415),
        (b'{"q": "a", "source": "en", "target": "es"}', "text/plain", 415),
        (b"q=a&source=en&target=es", "application/x-www-form-urlencoded", 200),
        (b"x" * 1_000_000, "application/json", 413),
        (b'{"q": "\\ud800", "source": "en", "target": "es"}', "application/json", 200),
        (b"", "application/json", 400),
    ],
)
def test_bodies_of_all_kinds(client, body, kind, status):
    answer = client.post("/translate", content=body, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert ("error" in answer.json()) == (status != 200)


def test_unknown_paths_and_methods(client):
    assert "error" in client.get("/nothing").json()
    assert client.get("/translate").status_code == 405
    assert client.get("/../../etc/passwd").status_code == 404


def test_files(client, run):
    files = {"file": ("a.txt", b"I sing.\n\nYou sing.\n")}
    answer = client.post("/translate_file", data={"source": "en", "target": "es"}, files=files)
    assert answer.status_code == 200, answer.text
    text = client.get(answer.json()["translatedFileUrl"]).text
    assert text.count("\n") == 3
    assert client.get("/download_file/no-such-key").status_code == 404
    for files, said in (
        ({"file": ("a.exe", b"x")}, "only .txt"),
        ({"file": ("a.txt", b"\xff")}, "UTF-8"),
        ({"other": ("a.txt", b"x")}, "missing file"),
        ({"file": ("a.txt", b"x" * 1_100_000)}, "more than"),
    ):
        answer = client.post("/translate_file", data={"source": "en", "target": "es"}, files=files)
        assert answer.status_code in (400, 413)
        assert said in answer.json()["error"]


def test_few_files_are_kept_and_not_for_long(serve, monkeypatch):
    monkeypatch.setattr("translucid.serving.libretranslate.FILES", 2)
    client = serve()

    def send():
        files = {"file": ("a.txt", b"I sing.")}
        return client.post("/translate_file", data={"source": "es", "target": "es"}, files=files).json()

    urls = [send()["translatedFileUrl"] for _ in range(3)]
    assert [client.get(url).status_code for url in urls] == [404, 200, 200]
    monkeypatch.setattr("translucid.serving.libretranslate.FILE_SECONDS", 0.05)
    client = serve()
    url = send()["translatedFileUrl"]
    time.sleep(0.1)
    assert client.get(url).status_code == 404


def test_keys(serve):
    client = serve(api_keys={"secret": None})
    assert say(client, q="a").status_code == 400
    assert say(client, q="a", api_key="wrong").status_code == 403
    assert say(client, q="a", api_key=["secret"]).status_code == 403
    assert say(client, q="a", api_key="secret").status_code == 200
    assert client.get("/frontend/settings").json()["apiKeys"] is True


def test_slowdown(serve):
    client = serve(quota=Quota(per_minute=3))
    answers = [say(client, q="a") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert "Slowdown" in answers[-1].json()["error"]
    assert 0 < int(answers[-1].headers["retry-after"]) <= 61


def test_metrics(client):
    say(client, q="I sing")
    client.get("/made/up/path")
    text = client.get("/metrics").text
    assert 'translucid_http_request_duration_seconds_count{path="/translate",status="200"}' in text
    assert "made" not in text


def test_the_schema_names_every_route_and_every_field_that_is_asked_for(client):
    schema = client.get("/openapi.json").json()
    fields = {}
    for path, operations in schema["paths"].items():
        for kind in operations.get("post", {}).get("requestBody", {}).get("content", {}).values():
            if "properties" in kind["schema"]:  # and is not an image as it is
                fields.setdefault(path, []).append(set(kind["schema"]["properties"]))
    asked = {"q", "source", "target", "api_key"}
    assert fields == {
        "/translate": [asked | {"format", "alternatives"}] * 3,
        "/detect": [{"q", "api_key"}] * 3,
        "/translate_file": [{"file", "source", "target", "api_key"}],
        "/suggest": [asked | {"s"}] * 3,
        "/look": [asked | {"model", "explain", "translations"}] * 3,
        "/continue": [asked | {"model", "prefix"}] * 3,
        "/beam": [asked | {"model", "theme"}] * 3,
        "/classify": [{"q", "api_key", "model", "explain", "label"}] * 3,
        "/generate": [
            {"q", "api_key", "model", "max_tokens", "considered", "temperature", "top_k", "top_p", "seed", "beam"}
        ]
        * 3,
        "/caption": [{"file", "api_key", "model", "beam", "nbest", "prefix", "ways", "caption"}],
    }
    gets = {path for path, operations in schema["paths"].items() if "get" in operations}
    assert gets == {"/languages", "/health", "/frontend/settings", "/models", "/download_file/{key}"}
    for path, operations in schema["paths"].items():  # every error has its form
        for operation in operations.values():
            assert {"400", "403", "421", "429", "503"} <= set(operation["responses"]), path
