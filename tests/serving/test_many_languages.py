"""A multilingual model is served as its languages: pairs are created on request, and few are kept in memory."""

import threading

import pytest

from tests.probes.foreign import marian_folder
from translucid.data.document_context import Source
from translucid.decoding.decoding_options import length_penalty
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.runs.run_folder import RunFolder
from translucid.serving import catalog as language_pairs
from translucid.serving.catalog import load
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ServerOptions

REQUEST = {"q": "I like soccer", "source": "en", "target": "es"}


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    marian_folder(folder / "theirs", languages=("spa", "por", "zho_Hant", "nonsense"), end=2.0)
    import_model(folder / "theirs", folder / "targets")
    return folder / "targets"


@pytest.fixture
def many(serve, m2m):
    return serve(str(m2m))


def languages(client):
    return {row["code"]: row["targets"] for row in client.get("/languages").json()}


def test_languages_are_listed_by_their_usual_codes(many):
    assert many.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["en", "es"]},
        {"code": "es", "name": "Spanish", "targets": ["en", "es"]},
    ]
    assert many.get("/models").json() == [
        {"name": "many", "reads": "text", "sources": ["en", "es"], "targets": ["en", "es"]}
    ]
    first = many.get("/frontend/settings").json()["language"]
    assert (first["source"]["code"], first["target"]["code"]) == ("en", "es")


def test_every_pair_is_translated_by_usual_codes_and_by_the_models_own(many, m2m):
    from translucid.api.translator import Translator

    ours = Translator.load(m2m, "cpu", source="en", target="es")
    spanish = ours.translate(REQUEST["q"]).text
    english = ours.between("es", "en").translate(REQUEST["q"]).text
    assert spanish != english
    for source, target, expected in (
        ("en", "es", spanish),
        ("eng_Latn", "spa_Latn", spanish),
        ("en", "spa_Latn", spanish),
        ("es", "en", english),
        ("es-MX", "en", english),
        ("en", "en", REQUEST["q"]),
    ):
        response = many.post("/translate", json={**REQUEST, "source": source, "target": target})
        assert response.json() == {"translatedText": expected}
    response = many.post("/translate", json={**REQUEST, "target": "fr"})
    assert (response.status_code, response.json()["error"]) == (400, "fr is not supported")


def test_detection_is_among_its_languages(many):
    text = "Ayer por la tarde fuimos a la playa con nuestros amigos"
    assert many.post("/detect", json={"q": text}).json()[0]["language"] == "es"
    answer = many.post("/translate", json={"q": text, "source": "auto", "target": "en"}).json()
    assert answer["detectedLanguage"]["language"] == "es"
    answer = many.post("/translate", json={"q": "xyz", "source": "auto", "target": "es"}).json()
    assert answer["detectedLanguage"] == {"confidence": 0, "language": "en"}


def test_inspections_have_no_language_token_among_the_words(many, m2m):
    (sentence,) = many.post("/look", json={**REQUEST, "explain": "erasure"}).json()["sentences"]
    (piece,) = sentence["pieces"]
    assert piece["source"] == ["eng_Latn", "I", "like", "soccer", "</s>"]
    assert "spa_Latn" not in piece["target"] and len(piece["tokens"]) == len(piece["target"])
    assert sentence["explanation"]["source"] == ["I", "like", "soccer"]
    first = piece["tokens"][0]
    continuations = many.post("/continue", json={**REQUEST, "prefix": []}).json()
    assert len(continuations) == 8
    assert all(continuation["probability"] <= 0 for continuation in continuations)
    assert [
        continuation["tokens"][: len(first)]
        for continuation in continuations
        if continuation["text"] == sentence["text"]
    ] == [first]
    (tree,) = many.post("/beam", json=REQUEST).json()["trees"]
    assert "spa_Latn" in [node["name"] for node in tree["nodes"]]
    best = tree["finished"][0]
    assert best["text"] == sentence["text"]
    token_count = sum(map(len, piece["tokens"]))  # without the language token
    alpha = RunFolder(m2m).configuration().decoding.length_penalty
    assert best["score"] == pytest.approx(best["log_prob"] / length_penalty(float(token_count), alpha), abs=1e-4)


def test_a_model_of_many_targets_has_to_say_what_it_reads(serve, marian):
    with pytest.raises(UserError, match=r"does not say which language it reads. Write 'en-\*=.*targets'"):
        load([str(marian)], "cpu", ServerOptions())
    client = serve(f"en-*={marian}")
    assert languages(client) == {
        "en": ["en", "es", "nonsense", "pt", "zh-Hant"],
        "es": ["es"],
        "nonsense": ["nonsense"],
        "pt": ["pt"],
        "zh-Hant": ["zh-Hant"],
    }
    translations = {
        target: client.post("/translate", json={**REQUEST, "target": target}).json()["translatedText"]
        for target in ("es", "spa", "pt", "nonsense", "zh-TW")
    }
    assert translations["es"] == translations["spa"] != translations["pt"]
    response = client.post("/translate", json={**REQUEST, "source": "es", "target": "pt"})
    assert (response.status_code, response.json()["error"]) == (400, "pt is not available as a target language from es")


@pytest.mark.parametrize(
    ("label", "expected"),
    [("es-*", {"es": ["en", "es"], "en": ["en"]}), ("*-es", {"en": ["en", "es"], "es": ["es"]})],
)
def test_a_label_chooses_among_them(serve, m2m, label, expected):
    assert languages(serve(f"{label}={m2m}")) == expected


def test_a_label_that_it_does_not_have_is_refused(m2m):
    with pytest.raises(UserError, match=r"has no language 'fr'\. It has en, es\."):
        load([f"en-fr={m2m}"], "cpu", ServerOptions())


def test_requests_for_all_pairs_do_not_fill_the_memory(m2m, monkeypatch):
    monkeypatch.setattr(language_pairs, "PAIRS", 1)
    catalog = load([str(m2m)], "cpu", ServerOptions())
    before = threading.active_count()
    (model,) = catalog
    assert model.between("en", "es") is model.between("eng_Latn", "spa_Latn")
    for _ in range(20):
        assert catalog.find("en", "es").target == "es"
        assert catalog.find("es", "en").target == "en"
        assert len(model._translators) == 1
    assert catalog.find("es", "en").translator.torch_engine.model is model.translator.torch_engine.model
    with pytest.raises(ApiError, match="is not supported"):
        catalog.find("en", "x" * 10_000)
    assert threading.active_count() == before
    catalog.close()


def test_pairs_do_not_mix_in_a_batch(m2m):
    from translucid.serving.queue import Task

    catalog = load([str(m2m)], "cpu", ServerOptions())
    pairs = [catalog.find("en", "es"), catalog.find("es", "en")] * 3
    expected = [pair.translator.translate(REQUEST["q"]).text for pair in pairs]
    futures = [pair.batcher.submit(Task("x", 60), pair.translator, [Source(REQUEST["q"])]) for pair in pairs]
    assert [future.result(60)[0].text for future in futures] == expected
    assert expected[0] != expected[1]
    catalog.close()
