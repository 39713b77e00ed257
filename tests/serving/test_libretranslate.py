"""The responses that LibreTranslate's clients expect, and clear errors for invalid requests."""

import re

import pytest

from translucid.api.quality import QualityEstimation
from translucid.api.translator import Translator


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def translate(client, **fields):
    return client.post("/translate", json={"source": "en", "target": "es", **fields})


def test_a_text_gives_a_text_and_a_list_a_list(client, run):
    expected = Translator.load(run).translate("I like soccer").text
    assert translate(client, q="I like soccer").json() == {"translatedText": expected}
    assert translate(client, q=["I like soccer", ""]).json() == {"translatedText": [expected, ""]}
    form = client.post("/translate", data={"q": "I like soccer", "source": "en", "target": "es"})
    assert form.json() == {"translatedText": expected}


def test_alternatives_only_when_asked_for_and_never_more_than_allowed(client):
    single = translate(client, q="I like soccer", alternatives=3).json()
    assert 0 < len(single["alternatives"]) <= 3
    assert single["translatedText"] not in single["alternatives"]
    several = translate(client, q=["I like soccer", "You sing"], alternatives=2).json()
    assert len(several["alternatives"]) == 2
    assert all(isinstance(alternatives, list) for alternatives in several["alternatives"])
    for count in (6, 10_000):
        response = translate(client, q="I like soccer", alternatives=count)
        assert response.status_code == 400
        assert "alternatives is more than 5" in response.json()["error"]
    assert "alternatives" not in translate(client, q="I like soccer", alternatives=0).json()


def test_a_largest_length_is_that_of_the_whole_text(client):
    text = "I like soccer. She works at the hospital."
    free = translate(client, q=text).json()["translatedText"]
    loose = translate(client, q=[text, ""], max_length=len(free)).json()
    assert loose == {"translatedText": [free, ""], "tooLong": [False, False]}
    answer = translate(client, q=text, max_length=1).json()
    assert answer["tooLong"] and len(answer["translatedText"]) <= len(free)
    assert translate(client, q=text, max_length=5, format="html").status_code == 400
    assert translate(client, q=text, max_length=5, session="a").status_code == 400


def test_auto_tells_what_it_found(client):
    single = translate(client, q="The children are reading a book in the garden", source="auto").json()
    assert single["detectedLanguage"]["language"] == "en"
    assert 0 < single["detectedLanguage"]["confidence"] <= 100
    several = translate(
        client, q=["I would like to read the newspaper", "Los niños leen un libro"], source="auto"
    ).json()
    assert [language["language"] for language in several["detectedLanguage"]] == ["en", "es"]
    assert several["translatedText"][1] == "Los niños leen un libro"  # already in that language


def test_languages_health_settings_and_detection(client):
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["en", "es"]},
        {"code": "es", "name": "Spanish", "targets": ["es"]},
    ]
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/frontend/settings").json()["charLimit"] == 5000
    detected = client.post("/detect", data={"q": "Los niños leen un libro en el jardín"}).json()
    assert detected[0]["language"] == "es"
    assert detected[0]["confidence"] > 50


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
        "x" * 1000,
    ],
)
def test_white_space_stays_as_it_is(client, text):
    response = translate(client, q=text)
    assert response.status_code == 200
    translated = response.json()["translatedText"]
    assert re.findall(r"[\n\r\t\v\u2028]", translated) == re.findall(r"[\n\r\t\v\u2028]", text)
    space = r"^\s*"
    assert re.match(space, translated)[0] == re.match(space, text)[0]
    if not text.strip():
        assert translated == text


def test_no_sentence_is_lost(client):
    """Some servers translate only the first sentence."""
    expected = [translate(client, q=text).json()["translatedText"] for text in ("I sing.", "You sing.", "She sings.")]
    assert (
        translate(client, q="I sing. You sing.\nShe sings.").json()["translatedText"]
        == f"{expected[0]} {expected[1]}\n{expected[2]}"
    )


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"q": None}, 400, "missing q"),
        ({"q": 3}, 400, "neither a text"),
        ({"q": ["a", 3]}, 400, "neither a text"),
        ({"q": "a", "source": None}, 400, "missing source"),
        ({"q": "a", "source": "xx"}, 400, "xx is not supported"),
        ({"q": "a", "target": "xx"}, 400, "xx is not supported"),
        ({"q": "a", "source": "auto", "target": "xx"}, 400, "not supported"),
        ({"q": "a", "format": "pdf"}, 400, "format is not supported"),
        ({"q": "a", "alternatives": -1}, 400, "whole number"),
        ({"q": "a", "alternatives": "many"}, 400, "whole number"),
        ({"q": "a" * 5001}, 400, "limit of 5000"),
        ({"q": ["a"] * 201}, 400, "limit of 200"),
        ({"q": "a", "target": ["es"]}, 400, "not a text"),
    ],
)
def test_errors_are_reported(client, fields, status, message):
    response = translate(client, **fields)
    assert response.status_code == status
    assert message in response.json()["error"]


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
    response = client.post("/translate", content=body, headers={"content-type": kind})
    assert response.status_code == status, response.text
    assert ("error" in response.json()) == (status != 200)


def test_unknown_paths_and_methods(client):
    assert "error" in client.get("/nothing").json()
    assert client.get("/translate").status_code == 405
    assert client.get("/../../etc/passwd").status_code == 404


@pytest.mark.parametrize("path", ["//translate", "/translate/", "///translate//"])
def test_slashes_too_many_are_ignored(client, path):
    response = client.post(
        f"http://testserver{path}", json={"q": "I sing.", "source": "en", "target": "es", "alternatives": None}
    )
    assert response.status_code == 200 and "translatedText" in response.json()


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/imme", "/immersive"),
        ("/kiss", "/deeplx/translate"),
        ("/v1/translate", "/translate"),
        ("/api/languages/", "/languages"),
        ("/transalte", "/translate"),
        ("/nothing-like-it", None),
    ],
)
def test_a_path_of_another_server_is_answered_with_ours(client, path, meant):
    response = client.post(path, json={})
    assert response.status_code == 404
    expected = "Not Found" if meant is None else f"Not Found: there is no {path.rstrip('/')}, but {meant}"
    assert response.json() == {"error": expected}


def test_placeholders_come_through_once(client):
    texts = ["Hello %s, I like {name}.", "I sing [X5X] and [X12X].", "See https://example.org/a?b=1 and 👋🏽"]
    translations = translate(client, q=texts, alternatives=1).json()["translatedText"]
    for translation, placeholders in zip(
        translations, (["%s", "{name}"], ["[X5X]", "[X12X]"], ["https://example.org/a?b=1", "👋🏽"]), strict=True
    ):
        assert [translation.count(part) for part in placeholders] == [1, 1], translation


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I like {a}{b}.", ["{a}", "{b}"]),
        ("You sing {h}h {m}m", ["{h}h", "{m}m"]),
        ("I like %1$s%2$s", ["%1$s", "%2$s"]),
        ("%s<b>dogs</b> sing", ["%s", "<b>", "</b>"]),
        ("{{#if x}}She{{/if}} sings", ["{{#if x}}", "{{/if}}"]),
        ("I like %ddogs and :name", ["%d", ":name"]),
        ("I have 10kg", ["10"]),
    ],
)
@pytest.mark.parametrize("kind", ["text", "html"])
def test_what_touches_letters_tags_or_others_comes_through_once(client, text, parts, kind):
    translation = translate(client, q=text, format=kind).json()["translatedText"]
    assert all(translation.count(part) == 1 for part in parts if kind == "text" or part not in ("%d", ":name"))


def test_a_sentence_translated_again_keeps_its_alternatives_and_says_its_own_confidence(client, monkeypatch):
    calls = []

    def confidence(source):
        return 0.25 if "{" in source else 0.5

    def confidences(self, translations):
        sources = [translation.source for translation in translations]
        calls.append(sources)
        return [confidence(source) for source in sources]

    monkeypatch.setattr(QualityEstimation, "confidences", confidences)
    answer = translate(client, q="I like {a}{b}.", alternatives=2, confidence=True).json()
    assert 0 < len(answer["alternatives"]) <= 2
    assert all(text.count("{a}{b}") == 1 for text in [answer["translatedText"], *answer["alternatives"]])
    retranslated = [source for sources in calls for source in sources if "{" not in source]
    assert retranslated and answer["confidence"] == 0.5


def test_html_keeps_its_tags_and_what_is_not_to_be_translated(client, run):
    page = """<!doctype html><html lang="en"><head><meta charset="latin-1"><title>You sing</title>
        <script>var sing = "You sing";</script></head><body><p translate="no">You sing</p><!-- You sing -->
        <p>I like soccer<br>and <a href="x?a=1&amp;b=2" title="I sing">the beach</a>…</p><code>You sing</code></body>"""
    response = translate(client, q=[page, "<p>I sing</p>", "", "<p> </p>"], format="html")
    assert response.status_code == 200, response.text
    translated_page, *short = response.json()["translatedText"]
    translations = {text: Translator.load(run).translate(text).text for text in ("You sing", "I sing")}
    assert short == [f"<p>{translations['I sing']}</p>", "", "<p> </p>"]
    assert f"<title>{translations['You sing']}</title>" in translated_page
    assert f'title="{translations["I sing"]}"' in translated_page
    assert 'lang="es"' in translated_page
    assert translated_page.count("You sing") == 4
    for tag in ("<br>", '<a href="x?a=1&amp;b=2"', "</a>", "<!-- You sing -->", '<meta charset="latin-1">'):
        assert translated_page.count(tag) == 1, tag
    broken = translate(client, q="<p>I <b>sing", format="html").json()["translatedText"]
    assert broken.startswith("<p>") and broken.count("<b>") == 1
    response_to_nested = translate(client, q="<div>" * 600 + "I sing", format="html")
    assert response_to_nested.status_code == 400
    assert "elements nested more than" in response_to_nested.json()["error"]


def test_keys(serve):
    client = serve(api_keys={"secret": None})
    assert translate(client, q="a").status_code == 400
    assert translate(client, q="a", api_key="wrong").status_code == 403
    assert translate(client, q="a", api_key=["secret"]).status_code == 403
    assert translate(client, q="a", api_key="secret").status_code == 200
    assert client.get("/frontend/settings").json()["apiKeys"] is True


def test_metrics(client):
    translate(client, q="I sing")
    client.get("/made/up/path")
    text = client.get("/metrics").text
    assert 'translucid_http_request_duration_seconds_count{path="/translate",status="200"}' in text
    assert "made" not in text


def test_the_schema_names_every_route_and_every_field_that_is_asked_for(client):
    described = []
    schema = client.get("/openapi.json").json(object_hook=lambda value: described.append(value) or value)
    chosen = [value for value in described if {"default", "enum"} <= value.keys()]
    assert chosen
    assert [value for value in chosen if value["default"] not in value["enum"]] == []
    fields = {}
    for path, operations in schema["paths"].items():
        for kind in operations.get("post", {}).get("requestBody", {}).get("content", {}).values():
            if "properties" in kind["schema"]:  # the body is a form, not a raw image
                fields.setdefault(path, []).append(set(kind["schema"]["properties"]))
    common, contrast = {"q", "source", "target", "api_key"}, {"instead_of", "word"}
    seen = common | {"model", "formality"}
    assert fields == {
        "/translate": [
            common | {"format", "alternatives", "confidence", "session", "finish", "formality", "max_length"}
        ]
        * 3,
        "/live": [
            {
                "source",
                "target",
                "policy",
                "lag",
                "beam",
                "attention",
                "record",
                "model",
                "formality",
                "session",
                "api_key",
            }
        ]
        * 3,
        "/live/{session}": [{"text", "finish", "api_key"}] * 3,
        "/detect": [{"q", "api_key"}] * 3,
        "/translate_file": [{"file", "source", "target", "api_key"}],
        "/suggest": [common | {"s"}] * 3,
        "/memory/entry": [common] * 3,
        "/memory/find": [common] * 3,
        "/memory/remove": [common] * 3,
        "/look": [seen | contrast | {"explain", "translations", "maps", "ablate"}] * 3,
        "/continue": [seen | {"prefix"}] * 3,
        "/beam": [seen] * 3,
        "/patch": [seen | {"translation", "other", "words"}] * 3,
        "/layers": [seen | {"translation"}] * 3,
        "/features": [seen | {"translation"}] * 3,
        "/features/card": [{"feature", "source", "target", "model", "api_key"}] * 3,
        "/features/steer": [seen | {"features"}] * 3,
        "/graph": [seen | contrast | {"translation"}] * 3,
        "/graph/ablate": [seen | contrast | {"translation", "features"}] * 3,
        "/graph/score": [seen | {"translation", "head", "query", "key"}] * 3,
        "/weights": [seen - {"q"}] * 3,
        "/picture": [
            seen
            | contrast
            | {"translation", "view", "kind", "layer", "head", "method", "ablate", "other", "words", "caption"}
        ]
        * 3,
        "/classify": [{"q", "api_key", "model", "explain", "label", "instead_of"}] * 3,
        "/generate": [
            {"q", "api_key", "model", "max_tokens", "considered", "temperature", "top_k", "top_p", "seed", "beam"}
        ]
        * 3,
        "/caption": [
            contrast
            | {"file", "api_key", "model", "beam", "nbest", "prefix", "ways", "caption", "maps", "tree", "explain"}
        ],
        "/caption/picture": [contrast | {"file", "api_key", "model", "caption", "view", "layer", "head", "method"}],
        "/frontend/key": [{"api_key"}] * 3,
        "/documents/{key}/segments/{number}/translate": [{"senses", "api_key"}] * 3,
        "/documents/{key}/accept": [{"texts", "rest", "doubtful", "api_key"}] * 3,
        "/documents/{key}/withdraw": [{"numbers", "api_key"}] * 3,
        "/documents/{key}/review": [{"file", "api_key"}],
        "/documents": [{"file", "source", "target", "model", "formality", "api_key"}],
        "/v2/translate": [
            {
                "text",
                "source_lang",
                "target_lang",
                "glossary_id",
                "formality",
                "tag_handling",
                "ignore_tags",
                "splitting_tags",
            }
            | {"non_splitting_tags", "outline_detection", "split_sentences", "preserve_formatting", "model_type"}
            | {"context", "show_billed_characters", "show_retrieved", "api_key"}
        ]
        * 3,
        "/v2/document": [
            {"file", "source_lang", "target_lang", "glossary_id", "formality", "filename", "api_key"}
            | {"output_format", "preserve_formatting", "tag_handling"}
        ],
        "/v2/document/{document_id}": [{"document_key", "api_key"}] * 3,
        "/v2/document/{document_id}/result": [{"document_key", "api_key"}] * 3,
        "/v2/glossaries": [{"name", "source_lang", "target_lang", "entries", "entries_format", "api_key"}] * 3,
        "/v3/glossaries": [{"name", "dictionaries", "api_key"}] * 3,
        "/deeplx/translate": [{"text", "source_lang", "target_lang", "tag_handling", "api_key"}] * 3,
        "/immersive": [{"text_list", "source_lang", "target_lang", "api_key"}] * 3,
        "/hcfy": [{"text", "destination", "source", "api_key"}] * 3,
    }
    gets = {path for path, operations in schema["paths"].items() if "get" in operations}
    assert gets == {
        *("/languages", "/health", "/frontend/settings", "/models", "/examples", "/download_file/{key}"),
        *("/live", "/live/{session}"),
        *("/documents/{key}", "/documents/{key}/result", "/documents/{key}/segments"),
        *("/documents/{key}/segments/{number}/hints", "/documents/{key}/review"),
        *("/v2/languages", "/v2/usage", "/v2/glossary-language-pairs", "/v2/glossaries"),
        *("/v2/glossaries/{glossary_id}", "/v2/glossaries/{glossary_id}/entries"),
        *("/v3/glossaries", "/v3/glossaries/{glossary_id}", "/v3/glossaries/{glossary_id}/entries"),
    }
    for path, operations in schema["paths"].items():  # every operation documents its errors
        for operation in operations.values():
            assert {"400", "403", "421", "429", "503"} <= set(operation["responses"]), path
