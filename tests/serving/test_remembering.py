"""The server's translation memory: used for documents, and filled by suggestions and corrections."""

import pytest
from fastapi.testclient import TestClient

from translucid.data.corpus import Pair
from translucid.ground.errors import UserError
from translucid.memory.translation_memory import TranslationMemory
from translucid.serving.app import create_app
from translucid.serving.catalogue import load
from translucid.serving.remembering import Remembering
from translucid.serving.server_options import ServerOptions

from .test_documents import ended, send

LANGUAGES = {"source": "en", "target": "es"}


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "mine.memory"
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("I like soccer.", "Me encanta.")], "Ana")
    return file


@pytest.fixture
def begin(run, file):
    """Start a server with a memory: begin(grows=True)."""
    clients = []

    def start(**given):
        options = ServerOptions(hosts=("testserver",))
        memory = Remembering.open(file, ("en", "es"), **given)
        clients.append(TestClient(create_app(load([str(run)], "cpu", options), options, memory)))
        return clients[-1].__enter__()

    yield start
    for client in clients:
        client.__exit__(None, None, None)


def suggest(client, **fields):
    return client.post("/suggest", json={"q": "You sing.", "s": "Tú cantas.", **LANGUAGES, **fields})


def translated(client, text):
    job = ended(client, send(client, text.encode()).json())
    return client.get(f"/documents/{job['id']}/result").text


def test_documents_and_tags_are_translated_with_it(begin):
    client = begin(grows=False)
    assert translated(client, "I like soccer.\n") == "Me encanta.\n"
    asked = {"q": "<p>I like soccer.</p>", "format": "html", **LANGUAGES}
    assert client.post("/translate", json=asked).json()["translatedText"] == "<p>Me encanta.</p>"
    job = ended(client, send(client, b"I like soccer.\nYou sing.").json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["origin"] for row in rows] == ["memory", "model"]


def test_suggestions_go_into_one_that_grows(begin, file):
    client = begin(grows=True)
    assert client.get("/frontend/settings").json()["suggestions"] is True
    assert translated(client, "You sing.\n") != "Tú cantas.\n"
    assert suggest(client).json() == {"success": True}
    assert translated(client, "You sing.\n") == "Tú cantas.\n"
    for wrong, status in (({"target": "de"}, 400), ({"s": " "}, 400), ({"q": None}, 400)):
        assert suggest(client, **wrong).status_code == status
    with TranslationMemory.open(file) as memory:
        assert memory.languages == ("en", "es")
        assert [(one.source, one.who) for one in memory.entries()][1:] == [("You sing.", "suggested")]


def test_corrections_go_in_too(begin, file):
    client = begin(grows=True)
    job = ended(client, send(client, b"<p>You <b>sing</b>.</p>", "a.html").json())
    corrected = client.put(f"/documents/{job['id']}/segments/0", json={"text": "Tú ⟨1⟩cantas⟨/1⟩."})
    assert corrected.json()["remembered"] is True
    with TranslationMemory.open(file) as memory:
        assert memory.exact("You sing.").entry.target == "Tú cantas."
        assert memory.exact("You sing.").entry.who == "corrected on the page"


def test_one_that_does_not_grow_takes_nothing(begin, monkeypatch):
    client = begin(grows=False)
    assert client.get("/frontend/settings").json()["suggestions"] is False
    assert suggest(client).status_code == 403
    job = ended(client, send(client).json())
    corrected = client.put(f"/documents/{job['id']}/segments/0", json={"text": "Canto."})
    assert (corrected.status_code, corrected.json()["remembered"]) == (200, False)
    monkeypatch.setattr("translucid.serving.remembering.MOST", 1)
    full = begin(grows=True)
    assert "full" in suggest(full).json()["error"]


def test_it_is_only_used_between_its_languages(file):
    memory = Remembering.open(file, ("en", "es"), grows=True)
    assert memory.recall("en", "es-MX") and not memory.recall("es", "en")
    memory.close()
    with pytest.raises(UserError, match=r"mine\.memory"):
        Remembering.open(file.with_suffix(".tmx"), ("en", "es"), grows=True)
