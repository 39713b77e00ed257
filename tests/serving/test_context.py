"""A server of a run with document context: sentences of texts, segments of documents, DeepL's `context`."""

import pytest

from translucid.data.document_context import Source
from translucid.serving.queue import Batcher

COLORS = {"red": "rojo", "green": "verde", "blue": "azul"}


@pytest.fixture(scope="module")
def context_client(serve_for_all, context_run):
    return serve_for_all(str(context_run))


def deepl_translation(client, **fields):
    response = client.post("/v2/translate", json={"target_lang": "ES", "source_lang": "EN", **fields})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("fields", [{}, {"split_sentences": "0"}, {"tag_handling": "html"}, {"tag_handling": "xml"}])
def test_the_context_of_deepls_api_is_read(context_client, fields):
    for color, target in COLORS.items():
        answer = deepl_translation(context_client, text=["it is so", "it is so"], context=f"a {color} one", **fields)
        assert [row["text"] for row in answer["translations"]] == [f"es {target}"] * 2
        assert "warning" not in answer


def test_a_run_without_context_warns(client):
    answer = deepl_translation(client, text=["I sing"], context="She sings.")
    assert "context was not read" in answer["warning"] and "data.context" in answer["warning"]
    assert "warning" not in deepl_translation(client, text=["I sing"])


def test_the_sentences_of_a_text_see_those_before_them(context_client):
    texts = [f"a {color} one\nit is so" for color in COLORS]
    answer = context_client.post("/translate", json={"q": texts, "source": "en", "target": "es"}).json()
    assert answer["translatedText"] == [f"uno {target}\nes {target}" for target in COLORS.values()]
    html = "".join(f"<p>a {color} one</p><p>it is so</p>" for color in COLORS)
    answer = context_client.post(
        "/translate", json={"q": html, "source": "en", "target": "es", "format": "html"}
    ).json()
    assert answer["translatedText"] == "".join(f"<p>uno {target}</p><p>es {target}</p>" for target in COLORS.values())


def test_one_batch_for_several_contexts(context_run):
    from translucid import Translator

    translator = Translator.load(context_run, "cpu", "torch")

    class Task:
        client = "a"

        def over(self):
            return False

    batcher = Batcher(100, 100)
    futures = [batcher.submit(Task(), translator, [Source("it is so", (f"a {color} one",))]) for color in COLORS]
    futures.append(batcher.submit(Task(), translator, [Source("a red one")]))
    texts = [future.result()[0].text for future in futures]
    batcher.close()
    assert texts == ["es rojo", "es verde", "es azul", "uno rojo"]


def test_what_is_inspected_includes_the_sentence_before(context_client):
    request = {
        "q": "a green one\nit is so",
        "source": "en",
        "target": "es",
        "explain": "erasure",
        "maps": "contributions",
    }
    for translations in ({}, {"translations": ["uno verde", "es verde"]}):
        answer = context_client.post("/look", json=request | translations).json()
        first, second = answer["sentences"]
        assert first["pieces"][0]["context"] == 0
        (record,) = second["pieces"]
        assert record["source"] == ["a", "green", "one", "‖", "it", "is", "so", "</s>"] and record["context"] == 4
        explanation = second["explanation"]
        assert explanation["source"] == [record["source"][position] for position in record["words"]]
        assert explanation["context"] == 3
        most_important = max(range(6), key=explanation["importance"][1].__getitem__)
        assert most_important < 3, "a word of the sentence before"


def test_what_is_looked_at_was_translated_in_its_context(context_client):
    answer = context_client.post("/look", json={"q": "a green one\nit is so", "source": "en", "target": "es"}).json()
    assert answer["translation"] == "uno verde\nes verde"
