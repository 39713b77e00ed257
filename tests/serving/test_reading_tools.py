"""The request formats of reading tools: DeepLX, Immersive Translate, hcfy."""

import pytest

from translucid.api.translator import Translator
from translucid.serving.server_options import ApiKey, Quota

SPANISH = "Los niños leen un libro en el jardín de la casa."
SENTENCES = ["I like soccer.", "You like music."]


@pytest.fixture(scope="module")
def expected(run):
    """The model's translations of the sentences."""
    return [translation.text for translation in Translator.load(run).translate(SENTENCES)]


@pytest.fixture(scope="module")
def shared(serve_for_all):
    return serve_for_all()


def test_deeplx(shared, expected):
    fields = {"text": SENTENCES[0], "source_lang": "EN", "target_lang": "ES"}
    answer = shared.post("/deeplx/translate", json=fields).json()
    assert isinstance(answer.pop("id"), int)
    alternatives = answer.pop("alternatives")
    assert len(set(alternatives)) == 3 and expected[0] not in alternatives
    languages = {"source_lang": "EN", "target_lang": "ES"}
    assert answer == {"code": 200, "data": expected[0], **languages, "method": "Free"}
    for unknown in ({"source_lang": "auto"}, {"source_lang": ""}):
        unchanged = shared.post("/deeplx/translate", json={**fields, "text": SPANISH, **unknown}).json()
        assert (unchanged["data"], unchanged["source_lang"], unchanged["alternatives"]) == (SPANISH, "ES", [])
    tagged = {**fields, "text": "<p>I like <b>soccer</b>.</p>", "tag_handling": "html"}
    answer = shared.post("/deeplx/translate", json=tagged).json()
    assert answer["data"].startswith("<p>") and answer["data"].count("<b>") == 1 and answer["alternatives"] == []


def test_errors_of_deeplx(shared):
    for invalid, message in (
        ({"target_lang": "XX"}, "XX is not supported"),
        ({"tag_handling": "sgml"}, "Invalid request: tag_handling is none of , html, xml"),
        ({"text": None}, "Invalid request: missing text parameter"),
    ):
        response = shared.post("/deeplx/translate", json={"text": "a", "target_lang": "ES", **invalid})
        assert (response.status_code, response.json()) == (400, {"code": 400, "message": message})
    assert shared.get("/deeplx/translate").json() == {"code": 405, "message": "Method Not Allowed"}


def test_immersive_translate(shared, expected):
    def translated(text, kind):
        request = {"q": text, "source": "en", "target": "es", "format": kind}
        return shared.post("/translate", json=request).json()["translatedText"]

    tagged = "<b0></b0> I like\n<b1>soccer</b1>."
    fields = {
        "source_lang": "auto",
        "target_lang": "es",
        "text_list": [SENTENCES[0], SPANISH, tagged],
    }
    rows = shared.post("/immersive", json=fields).json()["translations"]
    assert [row["detected_source_lang"] for row in rows] == ["en", "es", "en"]
    assert [row["text"] for row in rows[:2]] == [expected[0], SPANISH]
    for tag in ("<b0>", "</b0>", "<b1>", "</b1>"):
        assert rows[2]["text"].count(tag) == 1
    # They are within the sentence: with the tags around words, the model reads the whole of it.
    (row,) = shared.post("/immersive", json={**fields, "text_list": ["<b0>I like</b0> soccer."]}).json()["translations"]
    assert (
        row["text"].replace("<b0>", "").replace("</b0>", "")
        == shared.post("/immersive", json={**fields, "text_list": ["I like soccer."]}).json()["translations"][0]["text"]
    )
    # Text with such tags is HTML, in which a line break is a space.
    assert rows[2]["text"] == translated(tagged, "html") != translated(tagged, "text")
    plain = shared.post("/immersive", json={**fields, "text_list": ["\n".join(SENTENCES)]}).json()
    assert plain["translations"][0]["text"] == "\n".join(expected)


def test_chinese_has_other_codes_there(serve, run):
    client = serve(f"zh-Hans-en={run}")
    fields = {"source_lang": "auto", "target_lang": "en", "text_list": ["我喜欢足球，也喜欢去海滩。"]}
    (row,) = client.post("/immersive", json=fields).json()["translations"]
    assert row["detected_source_lang"] == "zh-CN"
    assert client.post("/immersive", json={**fields, "source_lang": "zh-CN"}).status_code == 200


def test_hcfy(shared, expected):
    fields = {"name": "Translucid", "text": "\n\n".join(SENTENCES), "destination": ["西班牙语", "英语"]}
    answer = shared.post("/hcfy", json={**fields, "source": "英语"}).json()
    result = [expected[0], "", expected[1]]
    assert answer == {"text": fields["text"], "from": "英语", "to": "西班牙语", "result": result}
    assert shared.post("/hcfy", json=fields).json() == answer
    # Text in the first language is translated into the second, but no model here does that.
    answer = shared.post("/hcfy", json={**fields, "text": SPANISH})
    assert (answer.status_code, answer.json()["error"]) == (400, "en is not supported")
    request = {**fields, "text": SPANISH, "destination": ["西班牙语"]}
    assert shared.post("/hcfy", json=request).json()["result"] == [SPANISH]


def test_hcfy_uses_the_second_language_for_a_text_in_the_first(many):
    fields = {"text": SPANISH, "destination": ["西班牙语", "英语"]}
    answer = many.post("/hcfy", json=fields).json()
    assert (answer["from"], answer["to"]) == ("西班牙语", "英语")


def test_chinese_names_of_hcfy(serve, run):
    client = serve(f"en-zh-Hant={run}")
    answer = client.post("/hcfy", json={"text": "I sing.", "destination": ["中文(繁体)"]}).json()
    assert (answer["from"], answer["to"]) == ("英语", "中文(繁体)")
    for invalid in ("英语", [], [1]):
        assert client.post("/hcfy", json={"text": "I sing.", "destination": invalid}).status_code == 400
    answer = client.post("/hcfy", json={"text": "I sing.", "destination": ["世界语"]})
    assert answer.json() == {"error": "eo is not supported"}


REQUESTS = {
    "/deeplx/translate": {"text": "I sing.", "target_lang": "ES"},
    "/immersive": {"text_list": ["I sing."], "target_lang": "es"},
    "/hcfy": {"text": "I sing.", "destination": ["西班牙语"]},
}


def test_keys_and_limits_apply(serve):
    client = serve(api_keys={"secret": ApiKey(Quota(per_minute=4))}, characters=10)
    for path, fields in REQUESTS.items():
        response = client.post(path, json=fields)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert client.post(path, params={"token": "wrong"}, json=fields).status_code == 403
    for (path, fields), query in zip(REQUESTS.items(), ("token", "api_key", "token"), strict=True):
        assert client.post(path, params={query: "secret"}, json=fields).status_code == 200
    too_long = {**REQUESTS["/hcfy"], "text": "I sing and sing."}
    response = client.post("/hcfy", params={"token": "secret"}, json=too_long)
    assert response.json() == {"error": "Invalid request: 16 characters exceed the limit of 10"}
    for path, fields in REQUESTS.items():
        assert client.post(path, params={"token": "secret"}, json=fields).status_code == 429


def test_extensions_of_browsers_may_ask_and_pages_may_not(shared):
    for origin, status in (
        ("chrome-extension://amkbmndfnliijdhojkpoglbnaaahippg", 200),
        ("moz-extension://d2ab6c4f-1d8b-4a43-9b8b-0a6d1b2f6a5e", 200),
        ("https://chrome-extension.example.org", 403),
        ("http://[", 403),
    ):
        response = shared.post("/immersive", json=REQUESTS["/immersive"], headers={"origin": origin})
        assert response.status_code == status
