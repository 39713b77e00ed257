"""The server's translation memory: it is used for texts and documents, and filled by suggestions and corrections."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from fastapi.testclient import TestClient

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.ground.errors import UserError
from translucid.serving import memory as remembering
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.memory import ServerMemory
from translucid.serving.server_options import ServerOptions

from .test_documents import finished_job, send, wait_until

LANGUAGES = {"source": "en", "target": "es"}


@pytest.fixture
def begin(run, memory_file):
    """Return a function that starts a server with a memory: begin(grows=True)."""
    clients = []

    def start(**settings):
        options = ServerOptions(hosts=("testserver",))
        memory = ServerMemory.open(memory_file, ("en", "es"), **settings)
        clients.append(TestClient(create_app(load([str(run)], "cpu", options), options, memory)))
        clients[-1].memory = memory
        return clients[-1].__enter__()

    yield start
    for client in clients:
        client.__exit__(None, None, None)


def suggest(client, **fields):
    return client.post("/suggest", json={"q": "You sing.", "s": "Tú cantas.", **LANGUAGES, **fields})


def translate_document(client, text):
    job = finished_job(client, send(client, text.encode()).json())
    return client.get(f"/documents/{job['id']}/result").text


def test_documents_and_tags_are_translated_with_it(begin):
    client = begin(grows=False)
    assert translate_document(client, "I like soccer.\n") == "Me encanta.\n"
    texts = ["<p>I like soccer.</p>", "<p>I like soccer.</p><p>You sing.</p>", "<p>You sing.</p>", "<p></p>"]
    answer = client.post("/translate", json={"q": texts, "format": "html", **LANGUAGES}).json()
    assert answer["translatedText"][0] == "<p>Me encanta.</p>"
    assert answer["origin"] == ["memory", "mixed", "model", "model"]
    job = finished_job(client, send(client, b"I like soccer.\nYou sing.").json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["origin"] for row in rows] == ["memory", "model"]


def test_a_glossary_that_the_memory_overrides_is_named(begin):
    """A person has written the whole sentence, so that the memory comes first, but not in silence."""
    client = begin(grows=False)
    entries = {"entries": "soccer\tpelota", "entries_format": "tsv", "source_lang": "en", "target_lang": "es"}
    glossary = client.post("/v2/glossaries", json={"name": "g", **entries}).json()["glossary_id"]
    request = {"source_lang": "EN", "target_lang": "ES", "glossary_id": glossary}
    answer = client.post("/v2/translate", json={"text": ["I like soccer."], **request}).json()
    assert answer["translations"][0]["text"] == "Me encanta."
    assert answer["warning"] == "term not used: soccer (pelota)"
    assert "warning" not in client.post("/v2/translate", json={"text": ["You sing."], **request}).json()


def test_suggestions_go_into_one_that_grows(begin, memory_file):
    client = begin(grows=True)
    assert client.get("/frontend/settings").json()["suggestions"] is True
    assert translate_document(client, "You sing.\n") != "Tú cantas.\n"
    assert suggest(client).json() == {"success": True}
    assert translate_document(client, "You sing.\n") == "Tú cantas.\n"
    for invalid, status in (({"target": "de"}, 400), ({"s": " "}, 400), ({"q": None}, 400)):
        assert suggest(client, **invalid).status_code == status
    with TranslationMemory.open(memory_file) as memory:
        assert memory.languages == ("en", "es")
        assert [(entry.source, entry.who) for entry in memory.entries()][1:] == [("You sing.", "suggested")]


def test_corrections_are_added(begin, memory_file):
    client = begin(grows=True)
    job = finished_job(client, send(client, b"<p>You <b>sing</b>.</p>", "a.html").json())
    correction = client.put(f"/documents/{job['id']}/segments/0", json={"text": "Tú ⟨1⟩cantas⟨/1⟩."})
    assert correction.json()["remembered"] is True
    with TranslationMemory.open(memory_file) as memory:
        assert memory.exact("You sing.").entry.target == "Tú cantas."
        assert memory.exact("You sing.").entry.who == "accepted on the page"


def test_withdrawn_corrections_are_taken_back_unless_the_entry_was_changed(begin, memory_file):
    client = begin(grows=True)
    job = finished_job(client, send(client, b"I like soccer.\nYou sing.\nWe sing.\nThey dance.\nThey dance.").json())
    path = f"/documents/{job['id']}"
    for number, text in ((0, "Me gusta."), (0, "Me gustó."), (1, "Cantas."), (2, "Cantamos.")):
        assert client.put(f"{path}/segments/{number}", json={"text": text}).json()["remembered"]
    suggest(client, q="We sing.", s="Otra.")
    client.post(f"{path}/accept", json={"texts": {"3": "Bailan.", "4": "Ellos bailan."}})
    answer = client.post(f"{path}/withdraw", json={"numbers": [0, 1, 2, 4]}).json()
    assert (answer["staying"], answer["segments"][0]["target"]) == (1, "Me encanta.")
    with TranslationMemory.open(memory_file) as memory:
        entries = sorted((entry.source, entry.target, entry.who) for entry in memory.entries())
    assert entries == [
        ("I like soccer.", "Me encanta.", "Ana"),
        ("They dance.", "Bailan.", "accepted on the page"),
        ("We sing.", "Otra.", "suggested"),
    ]


def test_while_another_program_writes_all_goes_on_and_only_suggestions_are_refused(begin, memory_file, monkeypatch):
    monkeypatch.setattr(remembering, "WRITE_SECONDS", 0.1)
    client = begin(grows=True)
    connection = sqlite3.connect(memory_file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")  # as `memory add` does for a complete file
    response = suggest(client)
    assert (response.status_code, response.headers["retry-after"]) == (503, "30")
    assert "Another program is writing" in response.json()["error"]
    job = finished_job(client, send(client, b"I like soccer.\nYou sing.").json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["origin"] for row in rows] == ["memory", "model"]
    correction = client.put(f"/documents/{job['id']}/segments/1", json={"text": "Cantas."})
    assert (correction.status_code, correction.json()["remembered"]) == (200, False)
    assert client.get(f"/documents/{job['id']}/result").text == "Me encanta.\nCantas."
    connection.execute("ROLLBACK")
    assert suggest(client).json() == {"success": True}
    connection.close()


def test_a_memory_that_is_locked_or_damaged_is_done_without_and_the_log_says_so(
    begin, memory_file, monkeypatch, caplog
):
    monkeypatch.setattr(remembering, "READ_SECONDS", 0.05)
    monkeypatch.setattr(remembering, "PAUSE", 0.2)
    connection = sqlite3.connect(memory_file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    client = begin(grows=False)
    connection.execute("BEGIN EXCLUSIVE")
    request = {"q": "<p>I like soccer.</p>", "format": "html", **LANGUAGES}
    response = client.post("/translate", json=request)
    assert (response.status_code, response.json()["translatedText"] == "<p>Me encanta.</p>") == (200, False)
    assert "without the memory" in caplog.text and "locked" in caplog.text
    connection.execute("ROLLBACK")
    time.sleep(0.25)
    assert client.post("/translate", json=request).json()["translatedText"] == "<p>Me encanta.</p>"
    connection.execute("DROP TABLE segments")
    connection.close()
    assert client.post("/translate", json=request).status_code == 200


def test_suggestions_that_wait_hold_nobody_else_up_and_are_bounded(begin, monkeypatch):
    monkeypatch.setattr(remembering, "PENDING", 50)
    client, go, add = begin(grows=True), threading.Event(), TranslationMemory.add

    def add_slowly(self, *arguments):
        go.wait(60)
        return add(self, *arguments)

    monkeypatch.setattr(TranslationMemory, "add", add_slowly)
    with ThreadPoolExecutor(50) as pool:  # more than the server has worker threads for files
        waiting = [pool.submit(suggest, client, q=f"text {i}") for i in range(50)]
        wait_until(lambda: not client.memory._pending._value)
        assert suggest(client).status_code == 503
        assert client.get("/languages").status_code == 200
        assert client.post("/translate", json={"q": "I sing", "source": "auto", "target": "es"}).status_code == 200
        assert translate_document(client, "I like soccer.\n") == "Me encanta.\n"
        go.set()
        assert {request.result().status_code for request in waiting} == {200}


def test_texts_that_tmx_can_not_contain_are_refused(begin, memory_file):
    client = begin(grows=True)
    for name, character in product(("q", "s"), "\0\x01\x1b\ufffe\uffff"):
        response = suggest(client, **{name: f"You{character} sing."})
        assert (response.status_code, f"U+{ord(character):04X}" in response.json()["error"]) == (400, True)
    with TranslationMemory.open(memory_file) as memory:
        assert len(memory) == 1


def test_a_correction_stands_where_the_memory_is_full_or_broken(begin, monkeypatch, caplog):
    client = begin(grows=True)

    def fail(*_):
        raise UserError("database or disk is full")

    monkeypatch.setattr(TranslationMemory, "add", fail)
    job = finished_job(client, send(client).json())
    correction = client.put(f"/documents/{job['id']}/segments/0", json={"text": "Canto."})
    assert (correction.status_code, correction.json()["remembered"]) == (200, False)
    assert suggest(client).status_code == 500
    assert caplog.text.count("disk is full") >= 2


def test_a_memory_that_does_not_grow_accepts_nothing(begin):
    client = begin(grows=False)
    assert client.get("/frontend/settings").json()["suggestions"] is False
    assert suggest(client).status_code == 403
    job = finished_job(client, send(client).json())
    correction = client.put(f"/documents/{job['id']}/segments/0", json={"text": "Canto."})
    assert (correction.status_code, correction.json()["remembered"]) == (200, False)


def test_a_memory_is_only_used_for_its_languages(memory_file):
    memory = ServerMemory.open(memory_file, ("en", "es"), grows=True)
    assert memory.is_between("en", "es-MX") and not memory.is_between("es", "en")
    memory.close()
    with pytest.raises(UserError, match=r"mine\.memory"):
        ServerMemory.open(memory_file.with_suffix(".tmx"), ("en", "es"), grows=True)


def test_plain_text_is_taken_from_it_and_says_so(begin):
    client = begin(grows=True)
    request = {"q": "  I like soccer.\nYou sing. I like soccer. ", **LANGUAGES}
    answer = client.post("/translate", json=request).json()
    assert answer["translatedText"].startswith("  Me encanta.\n") and answer["translatedText"].endswith(" Me encanta. ")
    assert answer["origin"] == "mixed"
    request_of_several = {"q": ["I like soccer.", "You sing.", ""], **LANGUAGES}
    assert client.post("/translate", json=request_of_several).json()["origin"] == ["memory", "model", "model"]
    sentences = client.post("/look", json=request).json()["sentences"]
    assert [row["origin"] for row in sentences] == ["memory", "model", "memory"]
    assert sentences[0]["text"] == "Me encanta." and sentences[0]["pieces"][0]["target"] == ["Me", "encanta.", "</s>"]
    deepl = client.post("/v2/translate", json={"text": ["I like soccer."], "source_lang": "EN", "target_lang": "ES"})
    assert deepl.json()["translations"][0]["text"] == "Me encanta."


def test_a_whole_line_is_known_although_it_has_several_sentences(begin):
    client = begin(grows=True)
    text = "You sing. They sing."
    assert suggest(client, q=text, s="Cantáis.").json() == {"success": True}
    answer = client.post("/translate", json={"q": f"We sing.\n{text}\n", **LANGUAGES}).json()
    assert answer["translatedText"].endswith("\nCantáis.\n") and answer["origin"] == "mixed"
    (sentence,) = client.post("/look", json={"q": text, **LANGUAGES}).json()["sentences"]
    assert (sentence["source_text"], sentence["text"], sentence["origin"]) == (text, "Cantáis.", "memory")
    assert len(client.post("/beam", json={"q": text, **LANGUAGES}).json()["trees"]) == 1


def test_alternatives_to_matches_are_those_of_the_model(begin):
    client = begin(grows=False)
    request = {"q": "I like soccer.", "alternatives": 2, **LANGUAGES}
    answer = client.post("/translate", json=request).json()
    assert answer["translatedText"] == "Me encanta."
    assert len(answer["alternatives"]) == 2 and "Me encanta." not in answer["alternatives"]
    assert client.post("/translate", json=request | {"confidence": True}).json()["confidence"] is None


def test_a_translation_that_is_chosen_on_the_page_is_none_of_it(begin):
    client = begin(grows=False)
    for translation, origin in (("Me encanta.", "memory"), ("Me gusta.", "model")):
        request = {"q": "I like soccer.", "translations": [translation], **LANGUAGES}
        assert client.post("/look", json=request).json()["sentences"][0]["origin"] == origin


def test_lines_are_suggested_line_by_line(begin, memory_file):
    client = begin(grows=True)
    suggest(client, q="You sing.\n\nWe sing.\n", s="Cantas.\n\nCantamos.")
    suggest(client, q="They sing.\nThey go.", s="Cantan y van.")
    with TranslationMemory.open(memory_file) as memory:
        entries = {entry.source: entry.target for entry in memory.entries()}
    assert entries == {
        "I like soccer.": "Me encanta.",
        "You sing.": "Cantas.",
        "We sing.": "Cantamos.",
        "They sing. They go.": "Cantan y van.",
    }


def test_a_very_long_entry_is_used_but_not_looked_into(begin, memory_file):
    with TranslationMemory.open(memory_file, write=True) as memory:
        memory.add([Pair("You sing.", "la " * 2000)], "Ana")
    (sentence,) = begin(grows=False).post("/look", json={"q": "You sing.", **LANGUAGES}).json()["sentences"]
    assert sentence["pieces"] == [] and len(sentence["text"]) == 5999


def test_many_are_accepted_at_once_and_go_into_it(begin, memory_file):
    client = begin(grows=True)
    job = finished_job(client, send(client, "You sing.\nI like 足球.\nWe sing.\nI like soccer.".encode()).json())
    path = f"/documents/{job['id']}"
    assert (job["accepted"], job["segments"]) == (0, 4) and job["doubtful"] >= 1
    answer = client.post(f"{path}/accept", json={"texts": {"0": "Cantas.", "2": "Cantamos ⟨1⟩."}, "rest": True}).json()
    assert answer["problems"] == {}
    rows = client.get(f"{path}/segments").json()
    assert rows[0]["target"] == "Cantas." and rows[0]["origin"] == "person" and rows[0]["accepted"]
    assert rows[3]["accepted"] and rows[3]["target"] == "Me encanta."
    assert not rows[1]["accepted"]  # it is doubtful
    progress = client.get(path).json()
    assert progress["accepted"] == sum(row["accepted"] for row in rows) == answer["accepted"]
    client.post(f"{path}/accept", json={"rest": True, "doubtful": True})
    assert client.get(path).json()["accepted"] == 4 and client.get(path).json()["doubtful"] == 0
    assert client.get(f"{path}/result").text.startswith("Cantas.\n")
    with TranslationMemory.open(memory_file) as memory:
        assert memory.exact("You sing.").target == "Cantas." and len(memory) == 4
    for invalid, status in (({"texts": ["x"]}, 400), ({"texts": {"a": "x"}}, 400), ({"texts": {"0": " "}}, 400)):
        assert client.post(f"{path}/accept", json=invalid).status_code == status
    assert client.post(f"{path}/accept", json={"texts": {"4": "x"}}).status_code == 404


def test_a_segment_has_hints(begin):
    client = begin(grows=False)
    job = finished_job(client, send(client, b"I like soccer too.\nWe sing.").json())
    hints = client.get(f"/documents/{job['id']}/segments/0/hints").json()
    (match,) = hints["matches"]
    assert (match["percent"], match["target"], match["who"]) == (75, "Me encanta.", "Ana")
    assert match["differing"] == [["too", ""]] and hints["terms"] == []
    assert client.get(f"/documents/{job['id']}/segments/1/hints").json() == {"matches": [], "terms": []}
    assert client.get(f"/documents/{job['id']}/segments/2/hints").status_code == 404
