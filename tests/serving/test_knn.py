"""A server that retrieves in the decoder: corrections change the next translations of their clients, and no others."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from bitext.memory.translation_memory import TranslationMemory
from tests.probes import killed_server
from tests.probes.common import Start
from translucid.ground.errors import UserError
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.memory import ServerMemory
from translucid.serving.server_options import ApiKey, ServerOptions, reload_keys

from .test_documents import finished_job

LANGUAGES = {"source": "en", "target": "es"}
TEXT, SIMILAR = "I like soccer", "I like soccer a lot."
UNRELATED = "Xyz qqq"
ANA, EVA = "Me encanta el fútbol mucho.", "Nos gusta la casa grande."


@pytest.fixture(scope="module")
def server(run, tmp_path_factory):
    """A client of a server where two keys have a memory each, and a third one has none."""
    folder = tmp_path_factory.mktemp("memories")
    keys = {f"{name}-key": ApiKey(memory=folder / f"{name}.memory") for name in ("ana", "eva")}
    memories = {key.memory: ServerMemory.open(key.memory, ("en", "es"), grows=True, knn=True) for key in keys.values()}
    options = ServerOptions(hosts=("testserver",), api_keys={**keys, "guest-key": None})
    app = create_app(load([str(run)], "cpu", options), options, None, key_memories=memories)
    with TestClient(app) as client:
        client.memories = {file.stem: memory for file, memory in memories.items()}
        yield client


@pytest.fixture
def post(server):
    """A function that posts as one of the users; afterwards the memories are empty."""

    def post_as(user, path, **fields):
        return server.post(path, json={**LANGUAGES, "api_key": f"{user}-key", **fields})

    yield post_as
    for user, memory in server.memories.items():
        for entry in list(memory.memory.entries()):
            assert post_as(user, "/memory/remove", q=entry.source).json() == {"success": True}


def translations(server, post, user):
    """Return what all routes translate TEXT to, for a user."""
    texts = [post(user, "/translate", q=TEXT).json()["translatedText"]]
    texts.append(post(user, "/translate", q=f"<p>{TEXT}</p>", format="html").json()["translatedText"][3:-4])
    texts.append(post(user, "/look", q=TEXT).json()["translation"])
    headers = {"Authorization": f"DeepL-Auth-Key {user}-key"}
    fields = {"text": [TEXT], "source_lang": "EN", "target_lang": "ES", "split_sentences": "0"}
    texts.append(server.post("/v2/translate", json=fields, headers=headers).json()["translations"][0]["text"])
    file = {"file": ("a.txt", TEXT.encode())}
    sent = server.post("/documents", data={**LANGUAGES, "api_key": f"{user}-key"}, files=file).json()
    texts.append(server.get(f"/documents/{finished_job(server, sent)['id']}/result").text)
    return texts


def test_a_correction_changes_the_next_translations_of_its_user_and_of_nobody_else(server, post):
    def translation(user):
        return post(user, "/translate", q=TEXT).json()["translatedText"]

    plain = translation("guest")
    assert translation("ana") == translation("eva") == plain
    assert post("ana", "/suggest", q=SIMILAR, s=ANA).json() == {"success": True}
    (anas,) = set(translations(server, post, "ana"))
    assert anas.startswith("Me encanta") and not plain.startswith("Me")
    assert set(translations(server, post, "eva")) == {plain} and translation("guest") == plain
    post("eva", "/suggest", q=SIMILAR, s=EVA)
    evas = translation("eva")
    assert evas.startswith("Nos gusta") and translation("ana") == anas
    # Together in the queue, and in batches of several texts, which a user's other texts do not change either.
    texts = [TEXT, UNRELATED, f"{UNRELATED}. {TEXT}."]
    alone = {}
    for user in ("ana", "eva", "guest"):
        alone[user] = [post(user, "/translate", q=text).json()["translatedText"] for text in texts]
    assert alone["ana"][1] == alone["eva"][1] == alone["guest"][1]
    with ThreadPoolExecutor(6) as threads:
        users = ["ana", "eva", "guest"] * 2
        for user, answer in zip(users, threads.map(lambda user: post(user, "/translate", q=texts), users), strict=True):
            assert answer.json()["translatedText"] == alone[user]
    # Another translation of the same entry, then none.
    post("ana", "/suggest", q=SIMILAR, s=EVA)
    assert translation("ana") == evas
    assert post("ana", "/memory/remove", q=SIMILAR).json() == {"success": True}
    assert translation("ana") == plain and translation("eva") == evas


def test_an_answer_names_the_entry_of_each_word(server, post):
    post("ana", "/suggest", q=SIMILAR, s=ANA)
    answer = post("ana", "/translate", q=[TEXT, f" {UNRELATED}.\n{TEXT}", UNRELATED]).json()
    first, second, third = answer["retrieved"]
    assert third == [] and answer["origin"] == ["model"] * 3
    words = answer["translatedText"][1].split()
    for word in second:
        assert words[word["position"]] == word["word"]
    without_position = [{**word, "position": 0} for word in first]
    assert without_position == [{**word, "position": 0} for word in second] and first[0]["word"] == "Me"
    assert {(word["source"], word["target"]) for word in first} == {(SIMILAR, ANA)}
    assert all(0.05 <= word["share"] <= 1.0001 for word in first) and any(word["changed"] for word in first)
    (sentence,) = post("ana", "/look", q=TEXT).json()["sentences"]
    assert sentence["retrieved"] == first
    # Positions in HTML count the words of the text without tags; DeepL's API has them on request.
    (tagged,) = post("ana", "/translate", q=[f"<p>{UNRELATED}.</p><p><b>{TEXT}</b></p>"], format="html").json()[
        "retrieved"
    ]
    words = post("ana", "/translate", q=f"{UNRELATED}.\n{TEXT}").json()["translatedText"].split()
    assert [word["word"] for word in tagged] == [word["word"] for word in first]
    assert [words[word["position"]] for word in tagged] == [word["word"] for word in first]
    headers = {"Authorization": "DeepL-Auth-Key ana-key"}
    fields = {"text": [TEXT], "source_lang": "EN", "target_lang": "ES"}
    for further in ({"split_sentences": "0"}, {"tag_handling": "html"}, {}):
        asked = {**fields, **further, "show_retrieved": True}
        (row,) = server.post("/v2/translate", json=asked, headers=headers).json()["translations"]
        assert row["retrieved"] == first
    assert "retrieved" not in server.post("/v2/translate", json=fields, headers=headers).json()["translations"][0]
    assert "retrieved" not in post("guest", "/translate", q=TEXT).json()
    assert "retrieved" not in post("guest", "/look", q=TEXT).json()["sentences"][0]


def test_a_segment_is_translated_again_after_a_correction_of_another_one(server, post):
    file = {"file": ("a.txt", f"{SIMILAR}\n{TEXT}.\nYou sing.".encode())}
    job = finished_job(server, server.post("/documents", data={**LANGUAGES, "api_key": "ana-key"}, files=file).json())
    address, key = f"/documents/{job['id']}", {"api_key": "ana-key"}
    before = server.get(f"{address}/segments").json()
    accepted = server.put(f"{address}/segments/0", json={**key, "text": ANA}).json()
    assert accepted["remembered"] and server.get(f"{address}/segments").json()[1] == before[1]
    first, second, third = (server.post(f"{address}/segments/{i}/translate", json=key).json() for i in range(3))
    assert first["accepted"] and first["target"] == ANA and third == before[2]
    assert second["target"].startswith("Me encanta") and not second["accepted"]
    assert {(word["source"], word["target"]) for word in second["retrieved"]} == {(SIMILAR, ANA)}
    assert server.get(f"{address}/segments").json()[1] == second
    assert server.get(f"{address}/result").text == f"{ANA}\n{second['target']}\n{third['target']}"
    assert server.post(f"{address}/segments/3/translate", json=key).status_code == 404


def test_entries_belong_to_a_user(server, post):
    post("ana", "/suggest", q=SIMILAR, s=ANA)
    entry = post("ana", "/memory/entry", q=f" {SIMILAR} ").json()
    assert {**entry, "when": ""} == {"source": SIMILAR, "target": ANA, "who": "suggested", "when": ""}
    for user in ("eva", "guest"):
        answer = post(user, "/memory/entry", q=SIMILAR)
        assert (answer.status_code, answer.json()) == (404, {"error": "The memory has no such entry"})
        assert post(user, "/memory/remove", q=SIMILAR).status_code == 404
    assert post("ana", "/memory/find", q="SOCCER").json() == {"entries": [entry], "complete": True}
    assert post("ana", "/memory/find", q="sombrero").json() == {"entries": [], "complete": True}
    assert post("guest", "/memory/find", q="soccer").status_code == 404
    assert post("ana", "/memory/find", q="x" * 201).status_code == 400
    assert post("ana", "/memory/entry", q=SIMILAR, target="en").status_code == 404
    assert post("ana", "/memory/remove", q=SIMILAR, source="es").status_code == 400
    assert post("guest", "/suggest", q=SIMILAR, s=ANA).status_code == 403
    assert post("ana", "/memory/entry", q=SIMILAR).json() == entry


def test_a_memory_that_cant_be_read_changes_nothing_until_it_can(server, post, monkeypatch):
    plain = post("guest", "/translate", q=TEXT).json()["translatedText"]
    post("ana", "/suggest", q=SIMILAR, s=ANA)

    def fail(*_):
        raise UserError("can't be read")

    with monkeypatch.context() as broken:
        broken.setattr(TranslationMemory, "matches", fail)
        assert post("ana", "/translate", q=TEXT).json()["translatedText"] == plain
        assert post("ana", "/translate", q=TEXT).json()["translatedText"] == plain
    server.memories["ana"].memory._pause_until = 0
    assert post("ana", "/translate", q=TEXT).json()["translatedText"].startswith("Me encanta")


def test_keys_that_are_read_later_get_their_memories_first_and_removed_ones_lose_theirs(server, post, tmp_path):
    context, file = server.app.state.context, tmp_path / "keys.txt"
    before = dict(context.options.api_keys)
    file.write_text(f"eva-key memory={context.options.api_keys['eva-key'].memory}\nnew-key name=new memory=a.memory\n")
    read = []
    try:
        reload_keys(context.options, file, lambda keys: read.append((set(keys), set(context.options.api_keys))))
        assert read == [({"eva-key", "new-key"}, set(before))]
        assert str(context.options.api_keys["new-key"].memory) == "a.memory"
        assert context.options.api_keys["new-key"].quota is None
        assert context.memory_of("key ana-key") is None  # a document that is still being translated
        assert context.memory_of("key eva-key") is server.memories["eva"]
    finally:
        context.options.api_keys.clear()
        context.options.api_keys.update(before)


def test_no_confirmed_correction_is_lost_when_the_server_is_killed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Start, "fork", True)
    finding = killed_server.kills(tmp_path, run, 1)
    assert finding.failures == [] and finding.figures["corrections confirmed"] >= 1
