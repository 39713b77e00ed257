"""The route that returns what each layer predicts: as the library does, and within the limits of all inspections."""

import pytest

from translucid.api.translator import Translator

PAIR = {"q": "I like soccer", "translation": "Me gusta el fútbol"}
ASKED = {**PAIR, "source": "en", "target": "es"}


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


def test_layers_are_saved_as_pdf(client):
    answer = client.post("/picture", json={**ASKED, "view": "layers"})
    assert answer.content.startswith(b"%PDF")


@pytest.mark.parametrize("wrong", [{"q": " "}, {"q": "a" * 501}, {"translation": ""}, {"translation": "y" * 1001}])
def test_other_texts_are_refused(client, wrong):
    assert client.post("/layers", json=ASKED | wrong).status_code == 400
