"""Complete answers of the DeepL API, and the values of its fields."""

import asyncio
import re
from datetime import datetime
from types import SimpleNamespace

import pytest

from bitext.documents.document import PDF_FIX
from translucid.api.translator import Translator
from translucid.serving.dialects import deepl
from translucid.serving.dialects.deepl import DeepLDocuments
from translucid.serving.edge.failures import ApiError, GoneError
from translucid.serving.requests import Call
from translucid.serving.server_options import ServerOptions

from .test_documents import wait_until

GLOSSARY = {
    "name": "n",
    "source_lang": "en",
    "target_lang": "es",
    "entries": "soccer\tbalompié",
    "entries_format": "tsv",
}


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


@pytest.fixture(scope="module")
def translation_of(run):
    """Return a function that translates a text directly with the model."""
    return lambda text: Translator.load(run).translate(text).text


def translate(client, **fields):
    response = client.post("/v2/translate", json={"text": "I sing", "target_lang": "ES", **fields})
    return (
        response.json()["translations"]
        if response.status_code == 200
        else (response.status_code, response.json()["message"])
    )


def test_translations_of_several_texts(client, translation_of):
    texts = ["I sing", "Los niños leen un libro en el jardín", ""]
    translations = [("EN", translation_of("I sing")), ("ES", texts[1]), ("EN", "")]
    rows = [{"detected_source_language": code, "text": text} for code, text in translations]
    assert translate(client, text=texts) == rows
    sizes = [{**row, "billed_characters": len(text)} for row, text in zip(rows, texts, strict=True)]
    assert translate(client, text=texts, show_billed_characters=True) == sizes
    for requested, used in (
        ("latency_optimized",) * 2,
        ("quality_optimized",) * 2,
        ("prefer_quality_optimized", "quality_optimized"),
    ):
        assert translate(client, model_type=requested, source_lang="EN") == [{**rows[0], "model_type_used": used}]


def test_comments_and_instructions_of_xml_stay(client):
    text = "<p><!-- a note -->I sing.<?page 2?></p><!-- the end -->"
    (row,) = translate(client, text=text, tag_handling="xml", source_lang="EN")
    (words,) = re.fullmatch(r"<p><!-- a note -->(.*?)<\?page 2\?></p><!-- the end -->", row["text"]).groups()
    assert words and "<" not in words


def test_a_text_in_the_target_language_stays_without_a_translator(many):
    assert translate(many, target_lang="EN", source_lang="en-GB") == [
        {"detected_source_language": "EN", "text": "I sing"}
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target_lang": "", "source_lang": "EN"}, "Value for 'target_lang' not supported."),
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
        ({"target_lang": "EN"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "ES"}, "Value for 'source_lang' not supported."),
        ({"formality": "more"}, "'formality' is not supported for given 'target_lang'."),
        ({"formality": "less"}, "'formality' is not supported for given 'target_lang'."),
        ({"formality": "polite"}, "Value for 'formality' not supported."),
        ({"tag_handling": "pdf"}, "Value for 'tag_handling' not supported."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"split_sentences": None}, "Value for 'split_sentences' not supported."),
        ({"model_type": "best"}, "Value for 'model_type' not supported."),
        ({"show_billed_characters": 2}, "Value for 'show_billed_characters' not supported."),
        ({"preserve_formatting": 2}, "Value for 'preserve_formatting' not supported."),
        ({"text": None}, "Invalid request: missing text parameter"),
        *(({name: "x"}, f"'{name}' is not supported by this server") for name in deepl.REFUSED),
        ({"glossary_id": "none", "source_lang": "EN"}, "Glossary not found"),
        ({"tag_handling": "xml", "ignore_tags": [3]}, "Value for 'ignore_tags' not supported."),
        ({"tag_handling": "xml", "outline_detection": 3}, "Value for 'outline_detection' not supported."),
    ],
)
def test_fields_that_are_refused(client, fields, message):
    assert translate(client, **fields) == (404 if "Glossary" in message else 400, message)


@pytest.mark.parametrize(
    "fields",
    [
        {"split_sentences": 0},
        {"split_sentences": True},
        {"formality": "prefer_less"},
        {"formality": "default"},
        {"tag_handling": ""},
        {"style_id": "", "glossary_ids": [], "context": "x"},
        {"preserve_formatting": "1"},
        {"show_billed_characters": "false"},
        {"model_type": ""},
        {"target_lang": "es-MX", "source_lang": "en-us"},
    ],
)
def test_fields_that_change_nothing(client, translation_of, fields):
    assert translate(client, **fields) == [{"detected_source_language": "EN", "text": translation_of("I sing")}]


def test_a_text_that_is_not_split_goes_to_the_model_unchanged(client, run):
    address = "https://example.org"  # otherwise copied
    (row,) = translate(client, text=[address], split_sentences="0")
    (unsplit,) = Translator.load(run).stream([address], split=False)
    assert row["text"] == unsplit.text != address


def parsed(**fields):
    context = SimpleNamespace(options=ServerOptions())
    return deepl.TranslateFields.of({"text": "a", "target_lang": "ES", "tag_handling": "xml", **fields}, context)


def test_values_of_fields():
    splits = [parsed(split_sentences=value).split_sentences for value in (0, 1, True, False, "0", "nonewlines")]
    assert splits == ["0", "1", "1", "0", "0", "nonewlines"]
    flags = [
        parsed(outline_detection=value).outline_detection for value in (0, 1, "0", "1", True, False, "TRUE", "False")
    ]
    assert flags == [False, True, False, True, True, False, True, False]
    defaults = parsed()
    assert (defaults.split_sentences, defaults.outline_detection, defaults.show_billed_characters) == ("1", True, False)
    for name in ("outline_detection", "preserve_formatting", "show_billed_characters"):
        for value in (2, "", None, "yes"):
            with pytest.raises(ApiError, match=f"Value for '{name}' not supported."):
                parsed(**{name: value})
    assert parsed(ignore_tags=" b,c ,,d").ignore_tags == {"b", "c", "d"} == parsed(ignore_tags=["b,c", "d"]).ignore_tags
    assert parsed().splitting_tags == parsed(splitting_tags="").splitting_tags == frozenset()
    assert parsed(tag_handling="html", ignore_tags=[3]).ignore_tags == frozenset()


def test_white_space_with_line_breaks_becomes_a_space(client, translation_of):
    (row,) = translate(
        client, text="I sing. \n\n You sing.  She sings.", split_sentences="nonewlines", source_lang="EN"
    )
    assert row["text"] == f"{translation_of('I sing.')} {translation_of('You sing.')}  {translation_of('She sings.')}"


def test_xml_with_all_its_settings(client, translation_of):
    def translate_xml(text, **fields):
        (row,) = translate(client, text=text, tag_handling="xml", source_lang="EN", **fields)
        return row["text"]

    text = "<a>I sing</a><b>You sing</b>"
    separately_translated = f"<a>{translation_of('I sing')}</a><b>{translation_of('You sing')}</b>"
    assert translate_xml(text, splitting_tags="a,b", outline_detection=False) == separately_translated
    assert translate_xml(text, splitting_tags=["a", "b"]) == separately_translated
    assert (
        translate_xml(text, ignore_tags=["a"], splitting_tags="a,b")
        == f"<a>I sing</a><b>{translation_of('You sing')}</b>"
    )
    assert translate_xml(text, outline_detection="0") != separately_translated
    status, message = translate(client, text="<a>I sing", tag_handling="xml", source_lang="EN")
    assert status == 400 and message.startswith("Tag handling parsing failed, please check input: ")


def test_languages_with_their_names(many, serve_for_all, run):
    rows = [{"language": "EN", "name": "English"}, {"language": "ES", "name": "Spanish"}]
    assert many.get("/v2/languages").json() == many.get("/v2/languages?type=source").json() == rows
    names = [("EN-GB", "English (United Kingdom)"), ("EN-US", "English (United States)"), ("ES", "Spanish")]
    targets = [{"language": code, "name": name, "supports_formality": False} for code, name in names]
    assert many.get("/v2/languages?type=target").json() == targets
    response = many.get("/v2/languages?type=x")
    assert (response.status_code, response.json()) == (400, {"message": "Value for 'type' not supported."})
    pairs = [{"source_lang": "en", "target_lang": "es"}, {"source_lang": "es", "target_lang": "en"}]
    assert many.get("/v2/glossary-language-pairs").json() == {"supported_languages": pairs}


def test_usage_is_counted_for_each_client(serve, translation_of):
    client = serve(api_keys={"one": None, "two": None})
    first_headers, second_headers = ({"Authorization": f"DeepL-Auth-Key {key}"} for key in ("one", "two"))
    for _ in range(2):
        client.post("/v2/translate", json={"text": ["I sing", "We"], "target_lang": "ES"}, headers=first_headers)
    usage = [client.get("/v2/usage", headers=headers).json() for headers in (first_headers, second_headers)]
    assert usage == [{"character_count": count, "character_limit": 1_000_000_000_000} for count in (16, 0)]
    for response in (client.get("/v2/usage"), client.post("/v2/translate", json={"api_key": "one"})):
        assert (response.status_code, response.json()) == (403, {"message": "Authorization: DeepL-Auth-Key is missing"})
    assert client.post("/v2/document", files={"file": ("a.txt", b"x")}).status_code == 403


def test_glossaries_of_version_2(client):
    response = client.post("/v2/glossaries", json=GLOSSARY)
    record = response.json()
    assert response.status_code == 201 and datetime.fromisoformat(record["creation_time"]).tzinfo
    assert record == {
        "glossary_id": record["glossary_id"],
        "name": "n",
        "ready": True,
        "source_lang": "en",
        "target_lang": "es",
        "entry_count": 1,
        "creation_time": record["creation_time"],
    }
    path = f"/v2/glossaries/{record['glossary_id']}"
    assert client.get(path).json() == record and record in client.get("/v2/glossaries").json()["glossaries"]
    entries = client.get(f"{path}/entries")
    assert (entries.text, entries.headers["content-type"]) == (
        "soccer\tbalompié\n",
        "text/tab-separated-values; charset=utf-8",
    )
    (row,) = translate(client, text="I like soccer", source_lang="EN", glossary_id=record["glossary_id"])
    assert "balompié" in row["text"]
    refusal = (400, "Value for 'source_lang' is needed with 'glossary_id'.")
    assert translate(client, glossary_id=record["glossary_id"]) == refusal
    deleted = client.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    not_found = client.get(path)
    assert (not_found.status_code, not_found.json()) == (404, {"message": "Glossary not found"})


def test_a_name_of_a_glossary_has_1_to_200_characters(client):
    for name, status in (("x" * 200, 201), ("x" * 201, 400), ("", 400)):
        for path, fields in (("/v2/glossaries", GLOSSARY), ("/v3/glossaries", {"dictionaries": [GLOSSARY]})):
            response = client.post(path, json={**fields, "name": name})
            assert response.status_code == status
            if status == 400:
                assert response.json() == {"message": "Invalid request: name has between 1 and 200 characters"}
            else:
                client.delete(f"{path}/{response.json()['glossary_id']}")


def test_a_glossary_is_for_its_languages(many):
    glossary = many.post("/v3/glossaries", json={"name": "n", "dictionaries": [GLOSSARY]}).json()
    fields = {"text": "Canto", "source_lang": "ES", "target_lang": "EN", "glossary_id": glossary["glossary_id"]}
    assert translate(many, **fields) == (400, "The glossary is for en to es.")
    response = many.get(f"/v2/glossaries/{glossary['glossary_id']}")
    assert response.status_code == 200
    path = f"/v3/glossaries/{glossary['glossary_id']}"
    many.delete(f"{path}/dictionaries?source_lang=en&target_lang=es")
    assert translate(many, **fields) == (400, "The glossary is for no languages.")
    message = "The glossary is of several pairs of languages; ask for it under /v3/glossaries."
    empty = many.get(f"/v2/glossaries/{glossary['glossary_id']}")
    assert (empty.status_code, empty.json()) == (400, {"message": message})
    assert many.get(f"{path}/entries?source_lang=en&target_lang=es").status_code == 404


def test_glossaries_of_version_3_are_changed(client):
    glossary = client.post("/v3/glossaries", json={"name": "n", "dictionaries": [GLOSSARY]}).json()
    url = f"/v3/glossaries/{glossary['glossary_id']}"
    addition = {**GLOSSARY, "entries": "dog\tcan\nsoccer\tfútbol"}
    changed = client.patch(url, json={"dictionaries": [addition]}).json()
    assert changed == {**glossary, "dictionaries": [{"source_lang": "en", "target_lang": "es", "entry_count": 2}]}
    pair = {"source_lang": "en", "target_lang": "es"}
    entries = client.get(f"{url}/entries", params=pair).json()["dictionaries"]
    assert entries == [{**pair, "entries": "soccer\tfútbol\ndog\tcan\n", "entries_format": "tsv"}]
    assert client.patch(url, json={"name": "other"}).json() == {**changed, "name": "other"}
    assert client.patch(url, json={}).json() == {**changed, "name": "other"}
    replaced = client.put(f"{url}/dictionaries", json=GLOSSARY)
    assert (replaced.status_code, replaced.json()) == (200, {**pair, "entry_count": 1})
    for method, path in (
        ("DELETE", f"{url}/dictionaries?source_lang=en&target_lang=es"),
        ("DELETE", url),
    ):
        response = client.request(method, path)
        assert (response.status_code, response.content) == (204, b"")
    assert client.delete(url).status_code == 404


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dictionaries": None}, "missing dictionaries parameter"),
        ({"dictionaries": {}}, "missing dictionaries parameter"),
        ({"dictionaries": "x"}, "dictionaries is not a list of objects"),
        ({"dictionaries": [GLOSSARY, "x"]}, "dictionaries is not a list of objects"),
        ({"dictionaries": [GLOSSARY, GLOSSARY]}, "two of the dictionaries are for the same languages"),
        ({"name": 3}, "name is not a text"),
        ({"dictionaries": [GLOSSARY] * 100}, "two of the dictionaries are for the same languages"),
        ({"dictionaries": [GLOSSARY] * 101}, "a glossary has 100 dictionaries and 5000 entries at most"),
    ],
)
def test_glossaries_of_version_3_that_are_refused(client, fields, message):
    response = client.post("/v3/glossaries", json={"name": "n", "dictionaries": [GLOSSARY], **fields})
    assert (response.status_code, response.json()) == (400, {"message": f"Invalid request: {message}"})


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"state": "waiting"}, {"status": "queued"}),
        ({"state": "translating", "seconds_left": None}, {"status": "translating", "seconds_remaining": 1}),
        ({"state": "translating", "seconds_left": 2.1}, {"status": "translating", "seconds_remaining": 3}),
        ({"state": "done", "characters": 7}, {"status": "done", "seconds_remaining": 0, "billed_characters": 7}),
        ({"state": "failed", "error": "no"}, {"status": "error", "error_message": "no", "message": "no"}),
        ({"state": "cancelled", "error": "no"}, {"status": "error", "error_message": "no", "message": "no"}),
    ],
)
def test_the_status_of_a_document(job, expected):
    job = SimpleNamespace(**{"id": "the id", "key": "the key", "error": "", **job})
    routes = DeepLDocuments(None, SimpleNamespace(find=lambda key: job))

    def status(key):
        call = Call(deepl.DocumentKeyFields(document_key=key), None)
        return asyncio.run(routes.status(call, "the id"))

    response = status("the key")
    assert response.body == type(response)({"document_id": "the id", **expected}).body
    for wrong_key in ("the ke", "", "thé key"):
        with pytest.raises(GoneError):
            status(wrong_key)


def test_a_document_is_uploaded_translated_and_downloaded(client, translation_of):
    def upload(name="a.txt", **fields):
        form = {"target_lang": "ES", "source_lang": "EN", **fields}
        return client.post("/v2/document", data=form, files={"file": (name, b"I sing.\n")})

    handle = upload().json()
    assert set(handle) == {"document_id", "document_key"} and re.fullmatch("[0-9a-f]{64}", handle["document_key"])
    path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    final_status = wait_until(lambda: (status := client.post(path, json=key).json())["status"] == "done" and status)
    assert final_status == {
        "document_id": handle["document_id"],
        "status": "done",
        "seconds_remaining": 0,
        "billed_characters": 7,
    }
    assert client.post(f"{path}/result", data=key).text == translation_of("I sing.") + "\n"
    without_key = client.post(f"{path}/result", json={})
    assert (without_key.status_code, without_key.json()) == (
        400,
        {"message": "Invalid request: missing document_key parameter"},
    )
    for fields, message in (
        ({"output_format": "docx"}, "Value for 'output_format' not supported."),
        ({"output_format": "xt"}, "Value for 'output_format' not supported."),
        ({"formality": "more"}, "'formality' is not supported for given 'target_lang'."),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported."),
        ({"filename": "a.pdf"}, f"Invalid request: 'a.pdf' is of no kind that is translated here. {PDF_FIX}"),
        ({"filename": "a.exe"}, "Invalid request: 'a.exe' is of no kind that is translated here"),
    ):
        response = upload(**fields)
        assert (response.status_code, response.json()) == (400, {"message": message}), fields
    assert upload(output_format="TXT").status_code == upload(name="x", filename="b.md").status_code == 200
    without_file = client.post("/v2/document", data={"target_lang": "ES"}, files={"other": ("a.txt", b"x")})
    assert (without_file.status_code, without_file.json()) == (400, {"message": "Invalid file data."})
