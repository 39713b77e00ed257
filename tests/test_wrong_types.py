"""One text in place of several, or the reverse, is accepted if the meaning is clear, and otherwise a clear error."""

import re
from operator import attrgetter

import numpy as np
import pytest

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.api.translator import MOVED, Translator
from translucid.evaluation.metrics import corpus_scores
from translucid.language.embedder import Embedder
from translucid.language.generator import Generator


@pytest.fixture(scope="module")
def translator(small_run):
    return Translator.load(small_run, "cpu", "torch")


@pytest.mark.parametrize(("source", "target"), [("a", ["c"]), (["a"], "c"), (["a", "b"], "cd")])
def test_a_text_is_not_scored_with_several(translator, source, target):
    with pytest.raises(TypeError, match="one source is scored with one target"):
        translator.inspector.score(source, target)


def test_as_many_targets_as_sources(translator):
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        translator.inspector.score(["a", "b"], ["c"])
    single, (listed,) = (
        translator.inspector.score("I like it", "Me gusta"),
        translator.inspector.score(["I like it"], ["Me gusta"]),
    )
    assert single.log_probability == pytest.approx(listed.log_probability)


@pytest.mark.parametrize("pairs", [("I like it", "Me gusta"), "ab"])
def test_one_pair_is_no_list_of_pairs(translator, pairs):
    with pytest.raises(TypeError, match="list of pairs"):
        translator.inspector.inspect(pairs)


@pytest.mark.parametrize("texts", ["I like it", b"I like it"])
def test_one_text_is_no_stream_of_texts(translator, texts):
    with pytest.raises(TypeError, match="put it into a list"):
        list(translator.stream(texts))


def test_one_text_in_place_of_several_for_language_models(language_run):
    run = language_run("lm-lstm")
    embedder, generator = Embedder.load(run, "cpu"), Generator.load(run, "cpu")
    single, (listed,) = embedder.embed("I like soccer", 0), embedder.embed(["I like soccer"], 0)
    assert single.shape[0] == 3 and np.array_equal(single, listed)
    assert len(embedder.embed((text for text in ("I like", "soccer")), 0)) == 2
    for call in (lambda: embedder.embed(b"I like"), lambda: embedder.embed([1]), lambda: generator.generate([b"a"])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="put it into a list"):
        embedder.nearest("I like soccer", "like", "I like it", layer=0)
    with pytest.raises(TypeError, match="put it into a list"):
        generator.evaluate("I like it")


def test_references_are_lists():
    with pytest.raises(TypeError, match="references a list of such lists"):
        corpus_scores(["a b"], ["a b"])
    with pytest.raises(TypeError):
        corpus_scores("a b", [["a b"]])


def test_matches_of_any_share_of_the_words(tmp_path):
    with TranslationMemory.open(tmp_path / "a.memory", write=True) as memory:
        memory.add([Pair("Save the file", "Guardar"), Pair("Open the large old file", "Abrir"), Pair("x y", "z")], "me")
        matches = memory.matches("Save the file", 0)
        assert [match.entry.source for match in matches][:1] == ["Save the file"]
        assert matches == memory.matches("Save the file", 1)
        assert memory.matches("Save the file", 101) == memory.matches("Save the file", 50, 0) == []
        assert memory.matches("Save the file", 50, -1) == []


def test_a_file_name_that_is_not_utf8_is_stored(tmp_path):
    with TranslationMemory.open(tmp_path / "a.memory", write=True) as memory:
        assert memory.add([Pair("a", "b")], "b\udce9d.tsv").new == 1
        assert [who for who, _, _ in memory.by_origin()] == ["b?d.tsv"]


def test_former_names_of_a_translator_are_refused_with_the_current_ones(translator):
    for name, place in MOVED.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; it is now {re.escape(place)}"):
            getattr(translator, name)
        if place.startswith(("inspector.", "pipeline.", "quality")):
            attrgetter(place)(translator)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        translator.nothing  # noqa: B018
