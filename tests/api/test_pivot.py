"""Translation through a pivot language by two untrained models, compared with single steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.probes.foreign import many_languages_folder
from translucid import PivotTranslator, Translator, UserError
from translucid.api.pivot_translator import _sentences, composed, composed_alignment
from translucid.api.segment_translator import SegmentTranslator
from translucid.corpora.phrasebook import generate
from translucid.data import text_pipeline
from translucid.data.text_pipeline import Piece
from translucid.decoding.decoding_options import DecodingOptions
from translucid.interop.importing import import_model

TEXTS = ["I like soccer.", "", "She works at the hospital. Do you like sports?", "  ", "https://example.org/a.b"]


@pytest.fixture(scope="module")
def steps(pivot_runs):
    return [Translator.load(pivot_runs / name, "cpu", "torch") for name in ("es-en", "en-fr")]


@pytest.fixture(scope="module")
def pivot(steps):
    return PivotTranslator(*steps)


def matrix(links, rows, columns):
    weights = np.zeros((rows, columns))
    for row, column, weight in links:
        weights[row, column] = weight
    return weights


def links_of(weights):
    return [(i, j, weights[i, j]) for i, j in np.argwhere(weights).tolist()]


def alignment_matrix(translation, rows, columns):
    return matrix([(*link, 1) for link in translation.alignment], rows, columns)


def test_composed_links_are_the_product_of_matrices():
    draw = np.random.default_rng(3)
    first, second = (draw.random(shape) * (draw.random(shape) < 0.4) for shape in ((5, 7), (7, 6)))
    links = composed(links_of(first), links_of(second))
    np.testing.assert_allclose(matrix(links, 5, 6), first @ second, atol=1e-12)


def test_composed_alignments_go_by_way_of_pivot_words():
    # Me(0) gusta(1) el(2) fútbol(3) - I(0) like(1) soccer(2) - J'aime(0) le(1) foot(2)
    to_pivot, from_pivot = [(0, 0), (1, 1), (2, 2), (3, 2)], [(0, 0), (1, 0), (2, 1), (2, 2)]
    expected = [(0, 0), (1, 0), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert composed_alignment(to_pivot, from_pivot) == expected
    assert composed_alignment([(0, 1)], [(0, 0)]) == []


def test_the_second_step_translates_the_sentences_of_the_first(pivot, steps, monkeypatch):
    split, split_texts = text_pipeline.split_sentences, []
    monkeypatch.setattr(
        text_pipeline, "split_sentences", lambda text, code: split_texts.append(text) or split(text, code)
    )
    translations = pivot.translate(TEXTS)
    assert split_texts == [text for text in TEXTS if text.strip()], "sentences of the pivot language were split again"
    first, second = steps

    def by_steps(sentence):
        return second.translate(first.translate(sentence, split=False).text, split=False).text

    translated = [by_steps(sentence) for sentence in ("She works at the hospital.", "Do you like sports?")]
    assert [translation.text for translation in translations] == [
        by_steps(TEXTS[0]),
        "",
        " ".join(translated),
        "",
        TEXTS[4],
    ]
    assert [translation.source for translation in translations] == TEXTS
    score = second.translate(translations[0].first.text, split=False).score
    assert translations[0].score == pytest.approx(score, abs=1e-4)


def test_an_empty_sentence_of_the_first_step_is_left_out():
    pieces = [Piece("a", [1], "  "), Piece("b", [1], "\n"), Piece(TEXTS[4], [], "")]
    first = SimpleNamespace(pieces=pieces, sentences=[("a", ""), ("b", "c")])
    assert _sentences(first) == [("c", "\n"), (TEXTS[4], "")]


def test_a_translation_does_not_depend_on_its_batch(pivot):
    texts = [p.source for p in generate(6, split="test", max_words=12)]
    batched = [translation.text for translation in pivot.translate(texts)]
    assert batched == [pivot.translate(text).text for text in texts]


def test_words_are_aligned_by_way_of_the_pivot(pivot):
    translation = pivot.translate(f"{TEXTS[2]} {TEXTS[0]}")
    sizes = [len(text.split()) for text in (translation.source, translation.first.text, translation.text)]
    to_pivot = alignment_matrix(translation.first, *sizes[:2])
    from_pivot = alignment_matrix(translation.second, *sizes[1:])
    expected = [tuple(link) for link in np.argwhere(to_pivot @ from_pivot).tolist()]
    assert translation.alignment == expected != []
    weights = [
        matrix(step.word_weights, *shape)
        for step, shape in ((translation.first, sizes[:2]), (translation.second, sizes[1:]))
    ]
    product = matrix(translation.word_weights, sizes[0], sizes[2])
    np.testing.assert_allclose(product, weights[0] @ weights[1], atol=1e-9)
    assert pivot.translate(TEXTS[4]).alignment == [(0, 0)]  # copied


def test_a_translation_from_elsewhere_is_aligned_by_way_of_the_first_step(pivot, steps):
    first = steps[0].translate(TEXTS[0])
    expected = composed_alignment(first.alignment, steps[1].inspector.align(first.text, "J'aime le football."))
    assert pivot.inspector.align(TEXTS[0], "J'aime le football.") == expected != []


def test_several_outputs_are_those_of_the_second_step(pivot, steps):
    best = pivot.translate(TEXTS[0])
    several = pivot.translate(TEXTS[0], nbest=3)
    assert several.alternatives == steps[1].translate(best.first.text, nbest=3).alternatives
    samples = [pivot.translate([TEXTS[0]] * 4, sample=True, seed=7) for _ in range(2)]
    assert [translation.text for translation in samples[0]] == [translation.text for translation in samples[1]]
    assert len({translation.text for translation in samples[0]}) > 1
    assert {translation.first.text for translation in samples[0]} == {best.first.text}


def test_options_change_both_steps_and_own_settings_stay(pivot):
    options = pivot.configuration.decoding_with({"beam": 2, "nbest": 2, "min_length": 3})
    first = pivot._options_of_first(options)
    assert (first.beam, first.min_length, first.nbest, first.length_penalty) == (2, 3, 1, 0.5)
    sampled = DecodingOptions(**{**options.model_dump(), "sample": True, "temperature": 2.0, "length_penalty": 0.0})
    first = pivot._options_of_first(sampled)
    assert (first.sample, first.temperature, first.length_penalty) == (False, 1.0, 0.0)
    assert pivot._options_of_first(None) == pivot.first.configuration.decoding


def test_the_confidence_is_the_product_of_both(pivot):
    assert pivot.quality.has_confidence
    assessed = list(pivot.quality.assessed(pivot.translate(TEXTS)))
    for translation in (assessed[0], assessed[2]):
        first, second = translation.first.confidence, translation.second.confidence
        assert translation.confidence == pytest.approx(first * second) and 0 < first != second
    assert [assessed[i].confidence for i in (1, 3, 4)] == [None] * 3


def test_terms_are_of_the_pivot_language(pivot):
    plain = pivot.translate(TEXTS[0])
    word = plain.first.text.split()[0]
    translation = pivot.with_terms([(word, "xyz")]).translate(TEXTS[0])
    assert translation.first.text == plain.first.text
    assert "xyz" in translation.text and "xyz" not in plain.text
    assert {use.source for use in translation.terms} == {word}


def test_tags_are_placed_by_the_composed_alignment(pivot):
    text = TaggedText("I like soccer.", (Mark(2, "<b>", Side.opens, 1), Mark(6, "</b>", Side.closes, 1)))
    (target,) = SegmentTranslator(pivot).stream([text])
    assert [mark.raw for mark in target.marked.marks] == ["<b>", "</b>"]
    assert target.marked.text == pivot.translate(text.text).text
    assert target.confidence == pytest.approx(pivot.translate(text.text).confidence)


def test_a_notebook_shows_the_text_of_the_pivot_language(pivot):
    translations = pivot.translate(TEXTS[:1])
    assert translations[0].first.text in translations._repr_html_()


def test_steps_that_do_not_meet_are_refused(steps):
    first, _ = steps
    with pytest.raises(UserError, match=r"es-en: translates into en, and .*es-en from es\. Both need the same pivot"):
        PivotTranslator(first, first)


def test_a_multilingual_model_goes_through_one_of_its_languages(tmp_path):
    many_languages_folder(tmp_path / "theirs", codes=("en", "es", "fr"))
    import_model(tmp_path / "theirs", tmp_path / "many")
    direct = Translator.load(tmp_path / "many", "cpu", "torch", source="es", target="fr")
    pivot_translator = PivotTranslator.through(direct, "eng_Latn")
    english = direct.between("es", "en").translate(TEXTS[0]).text
    assert pivot_translator.languages == ("es", "fr") and pivot_translator.pivot == "en"
    assert pivot_translator.translate(TEXTS[0]).first.text == english
    assert pivot_translator.translate(TEXTS[0]).text == direct.between("en", "fr").translate(english).text
    assert pivot_translator.second.model is pivot_translator.first.model is direct.model
    for code in ("es", "fr"):
        with pytest.raises(UserError, match=f"{code} is the source or the target language itself"):
            PivotTranslator.through(direct, code)
    with pytest.raises(UserError, match="does not have the target language 'xx'"):
        PivotTranslator.through(direct, "xx")
