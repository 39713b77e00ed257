"""A run of several directions with documents, terms, memories and files that have one of its directions."""

import pytest

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from tests.cli.conftest import call  # noqa: F401
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.runs.run_folder import RunFolder

SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>{}</i>\n"
TEXTS = {"en": ["I like soccer.", "My house is big."], "es": ["Me gusta el fútbol.", "Mi casa es grande."]}
DIRECTIONS = [("en", "es"), ("es", "en")]


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_a_document_in_each_direction(call, multilingual_run, tmp_path, source, target):  # noqa: F811
    (tmp_path / "in.srt").write_text(SUBTITLES.format(*TEXTS[source]))
    languages = ["--source-language", source, "--target-language", target]
    files = ["--input", tmp_path / "in.srt", "--output", tmp_path / "out.srt"]
    assert call("translate", multilingual_run, *files, *languages).code == 0
    translator = Translator.load(multilingual_run, source=source, target=target)
    translations = [result.text for result in translator.translate(TEXTS[source])]
    assert (tmp_path / "out.srt").read_text() == SUBTITLES.format(*translations)


@pytest.mark.parametrize(("source", "target", "term"), [("en", "es", "house\tvivienda"), ("es", "en", "casa\thome")])
def test_terms_in_each_direction(multilingual_run, source, target, term):
    translator = Translator.load(multilingual_run, source=source, target=target)
    with_terms = translator.with_terms([tuple(term.split("\t"))])
    assert term.split("\t")[1] in with_terms.translate(TEXTS[source][1]).text.lower()


def test_a_file_is_scored_in_the_direction_to_the_chosen_language(call, multilingual_run, corpus):  # noqa: F811
    scores = []
    for languages in (["--target-language", "en"], ["--target-language", "en", "--source-language", "es"]):
        scores.append(call("score", multilingual_run, f"{corpus}/test.tsv:en-es", *languages).out)
    assert scores[0] == scores[1] and scores[0].count("\n") == 20


@pytest.fixture
def memory(tmp_path, corpus):
    """Write a memory from Spanish to English, with languages if any are given: memory("es", "en")."""

    def write(*languages):
        file = tmp_path / "m.memory"
        with TranslationMemory.open(file, write=True) as translation_memory:
            translation_memory.add([pair.swapped for pair in read_pairs(corpus / "train.tsv")][:60], "Ana")
            translation_memory.note(dict(zip(("source language", "target language"), languages, strict=False)))
        return file

    return write


def test_a_run_learns_a_memory_in_its_direction(call, multilingual_run, memory, corpus, tmp_path):  # noqa: F811
    settings = ["--set", "training.max_steps=1", "training.validate_sentences=3"]
    result = call("memory", "learn", multilingual_run, memory("es", "en"), "--out", tmp_path / "out", *settings)
    assert result.code == 0, result.err
    data = RunFolder(tmp_path / "out").configuration().data
    assert {*data.corpus_directions} == {*DIRECTIONS} and data.train[0].endswith(".tsv:es-en")
    (corpus_of_memory,) = [corpus for corpus in data.corpora(data.train) if corpus.direction == ("es", "en")]
    known = {pair.swapped for pair in read_pairs(corpus / "train.tsv")}
    assert {Pair(*pair) for pair in corpus_of_memory.pairs()} <= known


def test_a_memory_without_languages_is_not_learned(call, multilingual_run, memory, tmp_path):  # noqa: F811
    result = call("memory", "learn", multilingual_run, memory(), "--out", tmp_path / "out")
    assert result.code == 2 and "the memory has no languages, and the run translates several directions" in result.err
