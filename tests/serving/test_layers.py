"""The routes for what a model computes inside: as the library does, and within the limits of all inspections."""

import pytest

from translucid.api.translator import Translator

PAIR = {"q": "I like soccer", "translation": "Me gusta el fútbol"}
ASKED = {**PAIR, "source": "en", "target": "es"}
OTHER = {"other": "I like music", "words": ["el", "la"]}


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


def test_layers_are_those_of_the_library(client, run):
    own = Translator.load(run, engine="torch")
    (lens,) = own.lens(*PAIR.values())
    answer = client.post("/layers", json=ASKED).json()
    assert answer.pop("encoder") == own.decoder_lens(PAIR["q"]).to_json()
    assert answer == lens.to_json()
    assert [word["word"] for word in answer["words"]] == ["Me", "gusta", "el", "fútbol", "</s>"]


def test_patching_is_that_of_the_library(client, run):
    own = Translator.load(run, engine="torch")
    patching = own.patch(PAIR["q"], OTHER["other"], ("el", "la"), target=PAIR["translation"])
    answer = client.post("/patch", json=ASKED | OTHER).json()
    assert answer.pop("translations") == [PAIR["translation"], own.translate(OTHER["other"]).text]
    assert answer == patching.to_json()


@pytest.mark.parametrize("view", [{"view": "layers"}, {"view": "patching", **OTHER}], ids=["layers", "patching"])
def test_they_are_saved_as_pdf(client, view):
    assert client.post("/picture", json=ASKED | view).content.startswith(b"%PDF")


@pytest.mark.parametrize(
    "wrong",
    [{"other": 3}, {"other": "a" * 501}, {"words": "el"}, {"words": ["el"]}, {"words": ["el", "a" * 101]}]
    + [{"other": PAIR["q"]}, {"other": " "}, {"words": ["la", "el"]}, {"translation": " "}],
)
def test_what_can_not_be_patched_is_refused(client, wrong):
    assert client.post("/patch", json=ASKED | OTHER | wrong).status_code == 400


@pytest.mark.parametrize("wrong", [{"q": " "}, {"q": "a" * 501}, {"translation": ""}, {"translation": "y" * 1001}])
def test_other_texts_are_refused(client, wrong):
    assert client.post("/layers", json=ASKED | wrong).status_code == 400
