"""DeepL's API as other clients use it: forms, keys, and errors in its format."""

import pytest


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def translate(client, **fields):
    return client.post("/v2/translate", data={"text": "I sing", "target_lang": "ES", **fields})


def test_forms_and_json_say_the_same(client):
    form = client.post("/v2/translate", data={"text": ["I sing", "You sing"], "target_lang": "es", "source_lang": "en"})
    fields = {"text": ["I sing", "You sing"], "target_lang": "ES", "source_lang": "EN"}
    assert form.json() == client.post("/v2/translate", json=fields).json()
    rows = form.json()["translations"]
    assert [set(row) for row in rows] == [{"detected_source_language", "text"}] * 2
    billed = translate(client, show_billed_characters="1").json()["translations"]
    assert billed[0]["billed_characters"] == 6


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"text": "x" * 5001}, 400, "limit of 5000"),
        ({"text": ["x"] * 201}, 400, "limit of 200"),
        ({"show_billed_characters": "maybe"}, 400, "show_billed_characters"),
    ],
)
def test_errors_are_in_its_format(client, fields, status, message):
    response = translate(client, **fields)
    assert response.status_code == status
    assert message in response.json()["message"]


def test_unknown_paths_have_errors_in_its_format(client):
    assert client.get("/v2/nothing").json() == {"message": "Not Found"}
    assert client.post("/v2/document/none", json={"document_key": "x"}).status_code == 404
    assert client.post("/v2/document", data={"target_lang": "ES"}).status_code == 400
    assert set(client.post("/v2/translate", content=b"{", headers={"content-type": "text/csv"}).json()) == {"message"}


def test_keys(serve):
    client = serve(api_keys={"secret": None, "other": None})
    response = client.get("/v2/usage")
    assert (response.status_code, set(response.json())) == (403, {"message"})
    wrong_headers = {"Authorization": "DeepL-Auth-Key wrong"}
    assert client.get("/v2/usage", headers=wrong_headers).status_code == 403
    own_headers, other_headers = ({"Authorization": f"DeepL-Auth-Key {key}"} for key in ("secret", "other"))
    client.post("/v2/translate", data={"text": "I sing", "target_lang": "ES"}, headers=own_headers)
    assert client.get("/v2/usage", headers=own_headers).json() == {"character_count": 6, "character_limit": 10**12}
    assert client.get("/v2/usage", headers=other_headers).json()["character_count"] == 0
    form = {"name": "n", "source_lang": "en", "target_lang": "es", "entries": "a\tb", "entries_format": "tsv"}
    glossary_id = client.post("/v2/glossaries", json=form, headers=own_headers).json()["glossary_id"]
    assert client.get(f"/v2/glossaries/{glossary_id}", headers=own_headers).status_code == 200
    assert client.get(f"/v2/glossaries/{glossary_id}", headers=other_headers).status_code == 404
    assert client.delete(f"/v2/glossaries/{glossary_id}", headers=other_headers).status_code == 404
    assert client.get("/v2/glossaries", headers=other_headers).json() == {"glossaries": []}


def test_regions_are_offered_where_clients_have_to_name_them(serve, run):
    client = serve(f"es-en={run}", f"es-pt={run}", f"es-de={run}")
    targets = client.get("/v2/languages", params={"type": "target"}).json()
    assert [target["language"] for target in targets] == ["DE", "EN-GB", "EN-US", "PT-BR", "PT-PT"]
    assert client.get("/v2/languages").json() == [{"language": "ES", "name": "Spanish"}]
    assert client.get("/v2/languages?type=both").status_code == 400
    for code in ("EN", "EN-US", "pt-br", "PT-PT", "DE"):
        assert translate(client, target_lang=code, source_lang="ES").status_code == 200, code


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"entries": "a"}, "line 1"),
        ({"entries_format": "xml"}, "tsv"),
        ({"source_lang": None}, "source_lang"),
        ({"target_lang": "DE"}, "target_lang"),
    ],
)
def test_what_is_wrong_in_a_glossary(client, fields, message):
    form = {"name": "n", "source_lang": "en", "target_lang": "es", "entries": "a\tb", "entries_format": "tsv", **fields}
    response = client.post("/v2/glossaries", json=form)
    assert response.status_code == 400
    assert message in response.json()["message"]
