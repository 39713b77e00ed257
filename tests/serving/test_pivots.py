"""Servers that pivot: two models together offer a third pair, and responses name the pivot language."""

import pytest

from translucid import PivotTranslator, Translator
from translucid.cli import serve as serve_command
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions

from .test_documents import finished_job

TEXT = "I like soccer."
REQUEST = {"q": TEXT, "source": "es", "target": "fr"}
SPANISH = "Ayer por la tarde fuimos a la playa con nuestros amigos."


@pytest.fixture(scope="module")
def names(pivot_runs):
    return [str(pivot_runs / name) for name in ("es-en", "en-fr")]


@pytest.fixture(scope="module")
def client(serve_for_all, names):
    return serve_for_all(*names)


@pytest.fixture(scope="module")
def pivot(names):
    return PivotTranslator(*[Translator.load(name, "cpu") for name in names])


def test_the_pair_is_listed_with_its_pivot(client):
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["en", "fr"]},
        {"code": "es", "name": "Spanish", "targets": ["en", "es", "fr"], "pivots": {"fr": "en"}},
        {"code": "fr", "name": "French", "targets": ["fr"]},
    ]

    def codes(side):
        rows = client.get("/v2/languages", params={"type": side}).json()
        return [row["language"] for row in rows]

    assert (codes("source"), codes("target")) == (["EN", "ES"], ["EN-GB", "EN-US", "FR"])
    assert client.get("/models").json()[2] == {
        "name": "es-en + en-fr",
        "reads": "text",
        "sources": ["es"],
        "targets": ["fr"],
        "pivot": "en",
    }


def test_the_start_of_the_server_names_it(names, capfd):
    catalog = load(names, "cpu", ServerOptions())
    serve_command.announce(catalog)
    catalog.close()
    assert "es → fr: es-en + en-fr, through en" in capfd.readouterr().err.splitlines()


def test_texts_go_through_it_and_the_answer_says_so(client, pivot):
    translation = pivot.translate(TEXT)
    assert client.post("/translate", json=REQUEST).json() == {"translatedText": translation.text, "pivot": "en"}
    direct = client.post("/translate", json={**REQUEST, "target": "en"}).json()
    assert direct == {"translatedText": translation.first.text}
    texts = [TEXT, "", "She works. Do you sing?"]
    several = client.post("/translate", json={**REQUEST, "q": texts, "alternatives": 1, "confidence": True}).json()
    assert several["translatedText"] == [pivot.translate(text, nbest=2).text for text in texts]
    assert several["alternatives"][0] == pivot.translate(TEXT, nbest=2).alternatives[1:]
    assert several["confidence"][0] == pytest.approx(translation.confidence, abs=1e-4)
    assert several["pivot"] == ["en"] * 3


def test_the_source_is_detected_among_all_offered_languages(client, pivot):
    answer = client.post("/translate", json={**REQUEST, "q": SPANISH, "source": "auto"}).json()
    assert answer["detectedLanguage"]["language"] == "es"
    assert (answer["translatedText"], answer["pivot"]) == (pivot.translate(SPANISH).text, "en")
    (row,) = client.post("/v2/translate", json={"text": [SPANISH], "target_lang": "FR"}).json()["translations"]
    assert row == {"detected_source_language": "ES", "text": answer["translatedText"]}


def test_html_and_documents_go_through_it(client, pivot):
    html = client.post("/translate", json={**REQUEST, "q": f"<p>{TEXT}</p>", "format": "html"}).json()
    assert html == {"translatedText": f"<p>{pivot.translate(TEXT).text}</p>", "pivot": "en"}
    fields = {"source": "es", "target": "fr"}
    job = client.post("/documents", data=fields, files={"file": ("a.txt", TEXT.encode())}).json()
    assert finished_job(client, job)["state"] == "done"
    assert client.get(f"/documents/{job['id']}/result").text == pivot.translate(TEXT).text
    assert client.get(f"/documents/{job['id']}/segments/0/hints").json() == {"matches": [], "terms": []}


def test_both_steps_are_inspected(client, pivot):
    answer = client.post("/look", json={**REQUEST, "q": f"{TEXT}\n{TEXT}", "explain": "erasure"}).json()
    translation = pivot.translate(TEXT)
    assert (answer["model"], answer["pivot"]) == ("es-en + en-fr", "en")
    assert answer["translation"] == f"{translation.text}\n{translation.text}"
    assert [(row["source_text"], row["text"], row["pieces"]) for row in answer["sentences"]] == [
        (TEXT, translation.text, [])
    ] * 2
    steps = answer["steps"]
    assert [(step["model"], step["source"], step["target"]) for step in steps] == [
        ("es-en", "es", "en"),
        ("en-fr", "en", "fr"),
    ]

    def texts(step):
        return [(row["source_text"], row["text"]) for row in step["sentences"]]

    assert texts(steps[0]) == [(TEXT, translation.first.text)] * 2
    assert texts(steps[1]) == [(translation.first.text, translation.text)] * 2
    first = client.post("/look", json={**REQUEST, "target": "en", "explain": "erasure"}).json()["sentences"][0]
    assert steps[0]["sentences"][0] == first
    detected = client.post("/look", json={**REQUEST, "q": SPANISH, "source": "auto"}).json()
    assert (detected["source"], detected["pivot"]) == ("es", "en") and detected["detectedLanguage"]["language"] == "es"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/look", {"translations": ["x"]}),
        ("/look", {"ablate": ["encoder.0.self.head.0"]}),
        ("/continue", {"prefix": []}),
        ("/beam", {}),
        ("/layers", {"translation": "x"}),
    ],
)
def test_what_is_for_one_model_is_refused(client, path, fields):
    response = client.post(path, json={**REQUEST, **fields})
    assert response.status_code == 400
    assert response.json()["error"].endswith("es to fr is translated through en: inspect es to en, or en to fr.")


def test_glossaries_are_for_models_with_the_pair(client):
    fields = {"name": "x", "source_lang": "es", "target_lang": "fr", "entries": "a\tb", "entries_format": "tsv"}
    response = client.post("/v2/glossaries", json=fields)
    message = "No model translates es to fr directly, as a glossary requires."
    assert (response.status_code, response.json()["message"]) == (400, message)
    pairs = client.get("/v2/glossary-language-pairs").json()["supported_languages"]
    assert [(row["source_lang"], row["target_lang"]) for row in pairs] == [("en", "fr"), ("es", "en")]
