"""The parts of an inspection in isolation."""

import asyncio
from types import SimpleNamespace

import pytest

from translucid.data.document_context import Source
from translucid.ground.errors import UserError
from translucid.serving.catalog import Catalog
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import ContrastFields
from translucid.serving.routes import inspection


@pytest.mark.parametrize("source", ["I sing.", "picture"])
def test_a_wide_beam_is_drawn_narrower(monkeypatch, source):
    calls = []
    options = SimpleNamespace(beam=7, length_penalty=0.5)
    model = SimpleNamespace(
        configuration=SimpleNamespace(decoding=options),
        tokenizer="tokenizer",
    )
    monkeypatch.setattr(inspection, "beam_record", lambda *arguments: {"given": arguments})
    record = inspection.beam_tree(model, lambda *arguments: calls.append(arguments), source)
    assert record == {"given": (None, 6, "tokenizer", 0.5), "own": 7} and calls == [(source, 6)]


def test_the_first_word_of_pieces():
    assert [inspection.first_word(pieces) for pieces in (["▁hel", "lo", "▁you"], ["</s>"], [])] == ["hello", "</s>", ""]


def test_a_language_that_is_detected_and_translated(monkeypatch):
    def find(source, target, name=None):
        if name == "none":
            raise ApiError(400, "there is no such model")
        return source, target, name

    models = [
        SimpleNamespace(pair=("fr", "de"), sources={"fr": None}, targets={}),
        SimpleNamespace(pair=("en", "es"), sources={"en": None}, targets={}),
    ]
    targets = {"fr": ["de", "fr"], "en": ["en", "es", "it"]}
    catalog = Catalog(models)
    monkeypatch.setattr(Catalog, "find", lambda self, *arguments: find(*arguments))
    monkeypatch.setattr(Catalog, "targets", lambda self, source: [*targets[source]])
    monkeypatch.setattr(Catalog, "languages", ["de", "en", "es", "fr", "it"])

    def detect_language(*probabilities, target="it", name=None):
        monkeypatch.setattr(inspection, "detect", lambda text, languages: list(probabilities))
        fields = SimpleNamespace(q="text", target=target, model=name)
        served, confidence = asyncio.run(inspection._detect(SimpleNamespace(catalog=catalog), fields))
        return confidence, *served

    assert detect_language(("es", 70.0), ("en", 20.0), ("fr", 10.0)) == (20.0, "en", "it", None)
    assert detect_language(("en", 0.0), ("fr", 0.0)) == (0.0, "fr", "de", None)
    assert detect_language(("en", 0.5), target="fr", name="tiny") == (0.5, "en", "es", "tiny")
    assert detect_language(("en", 0.5), target="en", name="none") == (0.5, "en", "es", None)


def test_a_long_translation_from_the_memory_has_no_attention(monkeypatch):
    def force_decode(self, source, target):
        if source.text == "too long":
            raise UserError("it is too long for the model")
        return {"text": target, "pieces": ["attention"]}

    monkeypatch.setattr(inspection.SentenceInspector, "_forced_row", force_decode)
    served = SimpleNamespace(translator=SimpleNamespace(terms=None))
    inspector = inspection.SentenceInspector(served, "", ContrastFields(), "cross")
    with_attention = {"text": "x" * 1000, "pieces": ["attention"], "origin": "memory", "warnings": []}
    assert inspector._memory_row(Source("I"), "x" * 1000) == with_attention
    without_attention = {"pieces": [], "warnings": [], "confidence": None, "origin": "memory"}
    for source, text in (("I", "x" * 1001), ("too long", "x")):
        assert inspector._memory_row(Source(source), text) == {"source_text": source, "text": text, **without_attention}
