"""Version 3 of DeepL's glossary API: DeepL's official client against a real server, and the raw answers."""

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries

from translucid.serving.dialects import deepl_glossaries

from .test_clients import address  # noqa: F401

DICTIONARY = {"source_lang": "en", "target_lang": "es", "entries": "soccer\tbalompié", "entries_format": "tsv"}


@pytest.fixture
def official(address, monkeypatch):  # noqa: F811
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)
    return deepl.DeepLClient("any key", server_url=address)


def counts(glossary):
    return [
        (dictionary.source_lang, dictionary.target_lang, dictionary.entry_count) for dictionary in glossary.dictionaries
    ]


def test_deepls_client_makes_edits_and_deletes_them(official):
    glossary = official.create_multilingual_glossary("mine", [Entries("EN", "ES", {"soccer": "balompié"})])
    assert (glossary.name, counts(glossary)) == ("mine", [("EN", "ES", 1)])
    assert counts(official.get_multilingual_glossary(glossary.glossary_id)) == [("EN", "ES", 1)]
    assert glossary.glossary_id in [stored.glossary_id for stored in official.list_multilingual_glossaries()]
    text = official.translate_text(
        "I like soccer", source_lang="EN", target_lang="ES", glossary=glossary.glossary_id
    ).text
    assert "balompié" in text

    extended = official.update_multilingual_glossary_dictionary(glossary, Entries("EN", "ES", {"music": "melodía"}))
    assert counts(extended) == [("EN", "ES", 2)]
    (entries,) = official.get_multilingual_glossary_entries(glossary, "EN", "ES").dictionaries
    assert (entries.source_lang.upper(), entries.target_lang.upper()) == ("EN", "ES")
    assert entries.entries == "soccer\tbalompié\nmusic\tmelodía\n"  # the client returns what the server sent
    assert official.update_multilingual_glossary_name(glossary, "ours").name == "ours"

    replaced = official.replace_multilingual_glossary_dictionary(glossary, Entries("EN", "ES", {"dog": "can"}))
    assert (replaced.source_lang, replaced.target_lang, replaced.entry_count) == ("EN", "ES", 1)
    (entries,) = official.get_multilingual_glossary_entries(glossary, "EN", "ES").dictionaries
    assert entries.entries == "dog\tcan\n"
    official.delete_multilingual_glossary_dictionary(glossary, source_lang="EN", target_lang="ES")
    assert official.get_multilingual_glossary(glossary.glossary_id).dictionaries == []
    with pytest.raises(deepl.GlossaryNotFoundException):
        official.get_multilingual_glossary_entries(glossary, "EN", "ES")
    official.delete_multilingual_glossary(glossary)
    with pytest.raises(deepl.GlossaryNotFoundException):
        official.get_multilingual_glossary(glossary.glossary_id)


def test_several_pairs_of_languages(serve, run):
    client = serve(f"en-es={run}", f"en-fr={run}")
    dictionaries = [DICTIONARY, {**DICTIONARY, "target_lang": "fr", "entries": "soccer\tfoot"}]
    glossary = client.post("/v3/glossaries", json={"name": "n", "dictionaries": dictionaries}).json()
    assert [dictionary["target_lang"] for dictionary in glossary["dictionaries"]] == ["es", "fr"]
    for target, word in (("ES", "balompié"), ("FR", "foot")):
        fields = {"text": "I like soccer", "source_lang": "EN", "target_lang": target}
        answer = client.post("/v2/translate", data={**fields, "glossary_id": glossary["glossary_id"]}).json()
        assert word in answer["translations"][0]["text"]
    assert client.get("/v2/glossaries").json() == {"glossaries": []}
    assert client.get(f"/v2/glossaries/{glossary['glossary_id']}").status_code == 400
    shortened = f"/v3/glossaries/{glossary['glossary_id']}/dictionaries?source_lang=en&target_lang=fr"
    assert client.delete(shortened).status_code == 204
    assert client.get(f"/v2/glossaries/{glossary['glossary_id']}").json()["entry_count"] == 1


def test_version_3_returns_glossaries_of_version_2(client):
    glossary_id = client.post("/v2/glossaries", json={"name": "n", **DICTIONARY}).json()["glossary_id"]
    (dictionary,) = client.get(f"/v3/glossaries/{glossary_id}").json()["dictionaries"]
    assert dictionary == {"source_lang": "en", "target_lang": "es", "entry_count": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": None}, "name"),
        ({"dictionaries": []}, "dictionaries"),
        ({"dictionaries": [{**DICTIONARY, "entries": "a"}]}, "line 1"),
        ({"dictionaries": [{**DICTIONARY, "target_lang": "DE"}]}, "target_lang"),
    ],
)
def test_errors_are_reported(client, fields, message):
    response = client.post("/v3/glossaries", json={"name": "n", "dictionaries": [DICTIONARY], **fields})
    assert response.status_code == 400 and message in response.json()["message"]


def test_changes_are_checked(client, monkeypatch):
    glossary = client.post("/v3/glossaries", json={"name": "n", "dictionaries": [DICTIONARY]}).json()
    path = f"/v3/glossaries/{glossary['glossary_id']}"
    monkeypatch.setattr(deepl_glossaries, "ENTRIES", 1)
    addition = {"dictionaries": [{**DICTIONARY, "entries": "dog\tcan"}]}
    assert client.patch(path, json=addition).status_code == 400
    assert client.patch(path, json={"name": ""}).status_code == 400
    assert client.get(path).json() == glossary
    assert client.patch("/v3/glossaries/none", json={"name": "x"}).json() == {"message": "Glossary not found"}
    assert client.get(f"{path}/entries").status_code == 400
    assert client.delete(f"{path}/dictionaries?source_lang=es&target_lang=en").status_code == 404
