"""Formal and informal address in the APIs of the server: ours, LibreTranslate's and DeepL's."""

import pytest
from fastapi.testclient import TestClient

from translucid import Translator
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.memory import ServerMemory
from translucid.serving.queue import Portion
from translucid.serving.server_options import ServerOptions
from translucid.terminology.glossary import Term

from .test_documents import wait_until

TEXT = "Do you like sports?"
VALUES = {"more": "formal", "less": "informal", "prefer_more": "formal", "prefer_less": "informal", "default": None}


@pytest.fixture(scope="module")
def client(formality_run, tmp_path_factory):
    """A client for a server with a memory."""
    file, options = tmp_path_factory.mktemp("memory") / "pairs.tsv", ServerOptions(hosts=("testserver",))
    file.write_text("Where do you live?\t¿Dónde vives?\n", encoding="utf-8")
    memory = ServerMemory.open(file, ("en", "es"), grows=False)
    with TestClient(create_app(load([str(formality_run)], "cpu", options), options, memory)) as client:
        yield client


@pytest.fixture(scope="module")
def translations(formality_run):
    """The translations of the text by the form of address."""
    translator = Translator.load(formality_run, "cpu")
    texts = {form: translator.with_formality(form).translate(TEXT).text for form in (None, "formal", "informal")}
    assert len(set(texts.values())) == 3
    return texts


def test_deepl_chooses_it(client, translations):
    for value, form in VALUES.items():
        response = client.post("/v2/translate", json={"text": TEXT, "target_lang": "ES", "formality": value})
        assert response.json()["translations"][0]["text"] == translations[form]
    (row,) = [row for row in client.get("/v2/languages?type=target").json() if row["language"] == "ES"]
    assert row["supports_formality"] is True


def test_our_routes_choose_it(client, translations):
    fields = {"q": TEXT, "source": "en", "target": "es"}
    for form, text in translations.items():
        choice = {"formality": form} if form else {}
        assert client.post("/translate", json=fields | choice).json()["translatedText"] == text
        assert client.post("/look", json=fields | choice).json()["translation"] == text
    assert client.post("/translate", json=fields | {"formality": "polite"}).status_code == 400
    (model,) = client.get("/models").json()
    assert model["formality"] == ["es"]


@pytest.fixture
def informal_client(formality_run):
    """A client for a server with a term that makes translations informal."""
    options = ServerOptions(hosts=("testserver",))
    catalog = load([str(formality_run)], "cpu", options, terms=[Term("xylophone", "vives")])
    with TestClient(create_app(catalog, options)) as client:
        yield client


def test_the_other_form_of_address_is_reported(informal_client):
    fields, client = {"q": "A xylophone.", "source": "en", "target": "es"}, informal_client
    for form, is_other in (("formal", True), ("informal", False)):
        answer = client.post("/translate", json=fields | {"formality": form}).json()
        assert "vives" in answer["translatedText"] and answer["otherFormality"] is is_other
    assert "otherFormality" not in client.post("/translate", json=fields).json()
    request = {"text": "A xylophone.", "target_lang": "ES", "source_lang": "EN"}
    answer = client.post("/v2/translate", json=request | {"formality": "more"}).json()
    assert answer["warning"] == "form of address: informal, not formal"
    assert "warning" not in client.post("/v2/translate", json=request | {"formality": "less"}).json()


def test_live_translation_has_it(client, formality_run):
    start, written = {"source": "en", "target": "es"}, []
    translator = Translator.load(formality_run, "cpu", "torch")
    for form in ("formal", "informal"):
        session = client.post("/live", json=start | {"formality": form}).json()["session"]
        written.append(client.post(f"/live/{session}", json={"text": TEXT, "finish": True}).json()["text"])
        expected = translator.with_formality(form).live()
        assert written[-1] == expected.read(TEXT) + expected.finish()
    assert written[0] != written[1]


def test_documents_have_it(client, translations):
    file, languages = {"file": ("a.txt", f"{TEXT}\n".encode())}, {"source": "en", "target": "es"}
    job = client.post("/documents", data=languages | {"formality": "formal"}, files=file).json()
    path = f"/documents/{job['id']}"
    wait_until(lambda: client.get(path).json()["state"] == "done")
    assert client.get(f"{path}/result").text == f"{translations['formal']}\n"


def test_documents_of_deepl_have_it(client, translations):
    file = {"file": ("a.txt", f"{TEXT}\n".encode())}
    fields = {"target_lang": "ES", "source_lang": "EN", "formality": "prefer_less"}
    job = client.post("/v2/document", data=fields, files=file).json()
    path, key = f"/v2/document/{job['document_id']}", {"document_key": job["document_key"]}
    wait_until(lambda: client.post(path, json=key).json()["status"] == "done")
    assert client.post(f"{path}/result", json=key).text == f"{translations['informal']}\n"


def test_matches_with_the_other_form_of_address_are_not_used(client):
    fields = {"q": "Where do you live?", "source": "en", "target": "es"}
    for form, origin in (("informal", "memory"), ("formal", "model"), ("", "memory")):
        assert client.post("/translate", json=fields | {"formality": form}).json()["origin"] == origin


def test_requests_with_different_forms_are_in_different_batches(formality_run):
    catalog = load([str(formality_run)], "cpu", ServerOptions())
    served, kinds = catalog.find("en", "es"), []
    for form in ("formal", "informal", "formal", None):
        kinds.append(Portion(None, catalog.addressing(served, form).translator, [], 1).kind)
    assert kinds[0] == kinds[2] and len(set(kinds)) == 3
    catalog.close()
