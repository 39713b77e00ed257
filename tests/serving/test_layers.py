"""The routes /layers and /patch return the library's results, and have the limits of all inspections."""

import pytest

from translucid.api.inspector import Inspector
from translucid.api.translator import Translator

PAIR = {"q": "I like soccer", "translation": "Me gusta el fútbol"}
REQUEST = {**PAIR, "source": "en", "target": "es"}
OTHER = {"other": "I like music", "words": ["el", "la"]}


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def test_layers_are_those_of_the_library(client, run):
    translator = Translator.load(run, engine="torch")
    (lens,) = translator.inspector.lens(*PAIR.values())
    answer = client.post("/layers", json=REQUEST).json()
    assert answer.pop("encoder") == translator.inspector.decoder_lens(PAIR["q"]).to_json()
    assert answer == lens.to_json()
    assert [word["word"] for word in answer["words"]] == ["Me", "gusta", "el", "fútbol", "</s>"]


def test_patching_is_that_of_the_library(client, run):
    translator = Translator.load(run, engine="torch")
    patching = translator.inspector.patch(PAIR["q"], OTHER["other"], ("el", "la"), target=PAIR["translation"])
    answer = client.post("/patch", json=REQUEST | OTHER).json()
    assert answer.pop("translations") == [PAIR["translation"], translator.translate(OTHER["other"]).text]
    assert answer == patching.to_json()


def test_without_another_sentence_the_model_offers_one(client, monkeypatch):
    monkeypatch.setattr(Inspector, "contrasting_sentence", lambda self, clean, target: OTHER["other"])
    offered = client.post("/patch", json=REQUEST | {"words": OTHER["words"]}).json()
    assert offered == client.post("/patch", json=REQUEST | OTHER).json() and offered["other"] == OTHER["other"]


@pytest.mark.parametrize("view", [{"view": "layers"}, {"view": "patching", **OTHER}], ids=["layers", "patching"])
def test_they_are_saved_as_pdf(client, view):
    assert client.post("/picture", json=REQUEST | view).content.startswith(b"%PDF")


@pytest.mark.parametrize(
    "invalid",
    [{"other": 3}, {"other": "a" * 501}, {"words": "el"}, {"words": ["el"]}, {"words": ["el", "a" * 101]}]
    + [{"other": PAIR["q"]}, {"other": " "}, {"words": ["la", "el"]}, {"translation": " "}],
)
def test_what_can_not_be_patched_is_refused(client, invalid):
    assert client.post("/patch", json=REQUEST | OTHER | invalid).status_code == 400


@pytest.mark.parametrize("invalid", [{"q": " "}, {"q": "a" * 501}, {"translation": ""}, {"translation": "y" * 1001}])
def test_other_texts_are_refused(client, invalid):
    assert client.post("/layers", json=REQUEST | invalid).status_code == 400
