"""Terms are applied: missing terms are decoded with constraints, in place of the words that the model chose."""

import numpy as np
import pytest

from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.api.quality import QualityEstimation
from translucid.api.segment_translator import SegmentTranslator
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.stages import SearchStages
from translucid.engines.term_constraint import (
    Draft,
    FreeTranslation,
    LinkedWord,
    TermConstraint,
    _most_linked_word,
    term_alone,
)
from translucid.ground.errors import UserError
from translucid.memory.augmenting import MatchAnnotation
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import Lemmas, TermList, terms_in
from translucid.terminology.term_forms import TermForms

TEXTS = ["I like soccer.", "The teacher reads a book.", "She is happy.", "We like the beach and soccer."]


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def translator(request, small_run):
    return Translator.load(small_run, engine=request.param)


def test_terms_are_used_and_the_rest_is_unchanged(translator):
    constrained = translator.with_terms([("soccer", "fútbol"), ("teacher", "doctora")])
    unconstrained, translations = translator.translate(TEXTS), constrained.translate(TEXTS)
    for translation, outcomes in zip(translations, (["used"], ["used"], [], ["used"]), strict=True):
        assert [use.outcome for use in translation.terms] == outcomes
    assert translations[2].text == unconstrained[2].text
    assert "fútbol" in translations[0].text.lower() and "doctora" in translations[1].text.lower()
    assert not any(warning.startswith("term") for translation in translations for warning in translation.warnings)
    assert translator.translate(TEXTS)[0].terms == []


def test_translations_that_have_their_terms_are_not_searched_again(translator):
    unconstrained = translator.translate(TEXTS[1])
    word = unconstrained.text.split()[0].strip(".,¿")
    constrained = translator.with_terms([("teacher", word)])
    assert constrained.translate(TEXTS[1]).text == unconstrained.text


def test_a_term_belongs_to_its_sentence(translator):
    constrained = translator.with_terms([("soccer", "fútbol"), ("teacher", "doctora")])
    translation = constrained.translate("I like soccer. The teacher reads a book.")
    (first, second) = (text for _, text in translation.sentences)
    assert "fútbol" in first.lower() and "doctora" in second.lower() and "doctora" not in first.lower()


def test_untranslated_terms_and_repeated_terms(translator):
    constrained = translator.with_terms([("Ana",), ("book", "libro")])
    translation = constrained.translate("Ana reads a book and Ana sees a book.")
    assert translation.text.count("Ana") >= 2 and translation.text.lower().count("libro") >= 2


def test_a_term_that_the_vocabulary_can_not_write_is_missing_and_said(translator):
    translation = translator.with_terms([("soccer", "足球")]).translate(TEXTS[0])
    assert [str(use) for use in translation.terms] == ["soccer (足球)"] and translation.terms[0].outcome == "missing"
    assert "term not used: soccer (足球)" in translation.warnings
    assert translation.text == translator.translate(TEXTS[0]).text


def test_a_greedy_search_and_n_best_lists_have_terms_too(translator):
    constrained = translator.with_terms([("soccer", "doctora")])
    assert constrained.translate(TEXTS[0], beam=1).terms[0].outcome == "used"
    translation = constrained.translate(TEXTS[0], beam=4, nbest=3)
    assert 1 < len(translation.nbest) <= 3
    assert all("doctora" in text.lower() for text in translation.alternatives)


class MeanLogProbability:
    """A quality estimator."""

    kind, passes = "search", 0

    def __call__(self, measurements):
        return np.array([sentence.log_probability / sentence.tokens for sentence in measurements])


def test_a_translation_with_terms_is_judged_by_the_free_one(translator, monkeypatch):
    """The model has not chosen the terms, so that their probability says nothing about the translation."""
    constrained = translator.with_terms([("soccer", "doctora"), ("teacher", "conejo"), ("beach", "libro")])
    monkeypatch.setattr(QualityEstimation, "estimator", MeanLogProbability())
    changed = 0
    for text in TEXTS:
        free, translation = translator.translate(text), constrained.translate(text, beam=5, nbest=3)
        scores = [alternative.score for alternative in translation.nbest]
        assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(free.score, abs=1e-4)
        estimates = constrained.quality.confidences([translation, free])
        assert estimates[0] == pytest.approx(estimates[1], abs=1e-4)
        assert {"improbable", "wrong language"}.isdisjoint(kinds(translation) - kinds(free))
        free_words, terms = dict(free.word_probabilities), {use.target for use in translation.terms}
        for word, probability in translation.word_probabilities:
            changed += word not in free_words
            if word.lower().strip(".") in terms - {word.lower().strip(".") for word in free_words}:
                assert probability == 1.0
    assert changed > 2


def kinds(translation):
    return {warning.partition(":")[0] for warning in translation.warnings}


def test_sampling_is_refused(translator):
    with pytest.raises(UserError, match="draws nothing at random"):
        translator.with_terms([("soccer", "fútbol")]).translate(TEXTS[0], sample=True)


@pytest.mark.parametrize(
    ("arguments", "is_refused"), [({}, True), ({"annotated": False}, True), ({"annotated": True}, False)]
)
def test_a_model_that_is_shown_its_terms_can_be_sampled_from(translator, arguments, is_refused):
    torch_engine, terms = translator.torch_engine, TermList(terms_of([("soccer", "la")]))
    constraint = TermConstraint(lambda: torch_engine, terms, translator.tokenizer, **arguments)
    stages = SearchStages(translator.pipeline, torch_engine, (constraint,))
    pieces, options = [translator.pipeline.encode(TEXTS[0])], DecodingOptions(sample=True)
    if is_refused:
        with pytest.raises(UserError, match="draws nothing at random"):
            stages.decode(SearchRequest(pieces, options))
    else:
        assert len(stages.decode(SearchRequest(pieces, options))) == 1


def test_pointing_terms_out_to_a_model_that_does_not_know_it_is_refused(translator):
    with pytest.raises(UserError, match="not trained with terms"):
        translator.with_terms([("soccer", "fútbol")], mode="annotate")


def test_the_unconstrained_translation_determines_where_a_term_goes(translator):
    """Each word of a term is linked to the first piece of a word of the translation."""
    torch_engine = translator.torch_engine
    terms = TermList(terms_of([("soccer", "x"), ("the beach", "y")]))
    constraint = TermConstraint(lambda: torch_engine, terms, translator.tokenizer, translator.inspector.word_weights)
    ids = translator.pipeline.encode(TEXTS[3]).ids
    ((best,),) = torch_engine.decode(SearchRequest([ids], translator.configuration.decoding))
    text = translator.tokenizer.decode(best.tokens)
    task = FreeTranslation(0, TEXTS[3], ids, ids, best, text, terms.matches(TEXTS[3]), [])
    ((beach, soccer),) = constraint._linked_words([task])
    assert (len(beach), len(soccer)) == (2, 1)
    for word in (*beach, *soccer):
        assert word.token in best.tokens and text[slice(*word.span)] in text.split()
    assert constraint._linked_words([]) == []


def test_forms_are_those_of_the_tokenizer(translator):
    """Forms are encoded after a space, after punctuation, and with a capital letter if that differs."""
    tokenizer = translator.tokenizer
    terms = TermList(terms_of([("book", "libro"), ("Ana",)]))
    forms = TermForms(tokenizer)
    lower, capitalized = tokenizer.encode_target(["libro", "Libro"])
    instead = [lower[0], capitalized[0]]
    (phrase, name) = forms.constraints(terms.matches("book Ana"), [instead, []])
    texts = {tokenizer.decode(form.pieces) for form in phrase.forms}
    assert texts == {"libro", "Libro"}
    assert {form.inside for form in phrase.forms} == {True, False}
    for form in phrase.forms:
        assert form.instead == tuple(capitalized[:1] if tokenizer.decode(form.pieces) == "Libro" else lower[:1])
    assert {tokenizer.decode(form.pieces) for form in name.forms} == {"Ana"}
    continues, opens = forms.edges
    pieces = tokenizer.target_vocabulary
    assert not continues[pieces.index(".")] and opens[pieces.index("▁¿")]
    assert not any(continues[i] for i, piece in enumerate(pieces) if piece.startswith("▁"))


def test_a_search_chooses_among_the_forms_of_a_word(translator):
    forms = TermForms(translator.tokenizer, lambda target: ["libros", "libritos"] if target == "libro" else [])
    for part, expected in (("noun", {"libro", "libros", "libritos"}), ("name", {"libro"})):
        terms = TermList(terms_of([("book", "libro", part)]))
        (phrase,) = forms.constraints(terms.matches("book"), [[]])
        assert {translator.tokenizer.decode(form.pieces).lower() for form in phrase.forms} == expected


def test_other_forms_of_each_missing_term_are_tried_with_the_preferred_ones_of_the_others(translator, monkeypatch):
    text, source = "Me gusta el fútbol y la música.", "I like soccer and music."
    terms = TermList(terms_of([("soccer", "golf"), ("music", "canción")]))
    constraint = TermConstraint(lambda: translator.torch_engine, terms, translator.tokenizer)
    forms = {"golf": ["golfes"], "canción": ["canciones", "cancioncita", "cancionero", "cancionista"]}
    monkeypatch.setattr(constraint._forms, "common", forms.get)
    matches = terms.matches(source)
    words = {"soccer": "fútbol", "music": "música"}
    linked = [(text.index(words[match.text]), text.index(words[match.text]) + 6) for match in matches]
    draft = Draft(text, matches, [[span] for span in linked], [0, 1])
    assert constraint._with_terms(draft) == [
        "Me gusta el golf y la canción.",
        "Me gusta el golfes y la canción.",
        "Me gusta el golf y la canciones.",
        "Me gusta el golf y la cancioncita.",
        "Me gusta el golf y la cancionero.",  # no more than three
    ]


def test_a_model_without_attention_has_terms_too(translator):
    torch_engine, terms = translator.torch_engine, TermList(terms_of([("soccer", "la")]))
    constraint = TermConstraint(lambda: torch_engine, terms, translator.tokenizer)
    stages = SearchStages(translator.pipeline, torch_engine, (constraint,))
    ((best,),) = stages.decode(SearchRequest([translator.pipeline.encode(TEXTS[0])], translator.configuration.decoding))
    text = translator.tokenizer.decode(best.tokens)
    assert [use.outcome for use in terms.uses(terms.matches(TEXTS[0]), text)] == ["used"]


class FixedEngine:
    """An engine that returns fixed texts: one without and others with constraints."""

    name, device_type = "saying", "cpu"

    def __init__(self, tokenizer, free, constrained):
        self.tokenizer, self.free, self.constrained = tokenizer, free, constrained

    def decode(self, request, constraints=None):
        texts = self.constrained if constraints else [self.free]
        hypotheses = [Hypothesis(ids, -1.0, -0.1) for ids in self.tokenizer.encode_target(texts)]
        return [[*hypotheses] for _ in request.sentences]

    def forced(self, pairs):
        return [[-9.0] * len(target) for _, target in pairs]


def constrained(translator, monkeypatch, free, constrained, linked, source="I like soccer and music."):
    """Return the texts after a constraint; `linked` are the words linked to the term."""
    engine = FixedEngine(translator.tokenizer, free, constrained)
    terms = TermList(terms_of([("soccer", "pelota")]))
    constraint = TermConstraint(lambda: engine, terms, translator.tokenizer)
    words = [LinkedWord(9, (free.index(word), free.index(word) + len(word))) for word in linked]
    monkeypatch.setattr(constraint, "_linked_words", lambda tasks: [[words]] * len(tasks))
    stages = SearchStages(translator.pipeline, engine, (constraint,))
    (nbest,) = stages.decode(SearchRequest([translator.pipeline.encode(source)], translator.configuration.decoding))
    return [translator.tokenizer.decode(hypothesis.tokens) for hypothesis in nbest]


FREE = "Me gusta el fútbol y la música."


@pytest.mark.parametrize(
    "broken",
    [
        "Me gusta la pelota fútbol y la música.",
        "Me gusta pelota música.",
        "Me gusta la pel pelota y la música.",
        "Me gusta la pelota y la música y la música.",
        "Me gusta el fútbol y la música.",
    ],
)
def test_broken_hypotheses_lose_against_the_free_translation_with_the_term(translator, monkeypatch, broken):
    # It is no alternative either.
    assert constrained(translator, monkeypatch, FREE, [broken], ["fútbol"]) == ["Me gusta el pelota y la música."]


def test_a_constrained_hypothesis_without_faults_is_kept(translator, monkeypatch):
    correct = "Me gusta la pelota y la música."
    assert constrained(translator, monkeypatch, FREE, [correct], ["fútbol"])[0] == correct
    assert constrained(translator, monkeypatch, FREE, [correct], [])[0] == correct


def test_without_a_hypothesis_with_the_term_the_free_translation_stays(translator, monkeypatch):
    assert constrained(translator, monkeypatch, FREE, ["Me gusta el golf."], []) == [FREE]


def test_an_article_is_not_taken_for_the_noun_behind_it():
    words = [
        LinkedWord(i, span) for i, span in enumerate([(0, 8), (9, 11), (12, 18), (19, 20)])
    ]  # Me_gusta el fútbol y
    assert _most_linked_word(words, np.array([0.1, 0.5, 0.3, 0.1])).token == 2
    assert _most_linked_word(words, np.array([0.1, 0.7, 0.1, 0.1])).token == 1
    assert _most_linked_word(words, np.array([0.1, 0.2, 0.6, 0.1])).token == 2
    assert _most_linked_word(words, np.array([0.1, 0.1, 0.2, 0.6])).token == 3


def test_a_term_has_its_tag_wherever_the_attention_looks(translator):
    constrained = translator.with_terms([("soccer", "pelota azul")])
    for text in ("I like ", "She reads a book and likes "):
        marks = Mark(len(text), "<b>", Side.opens, 0), Mark(len(text) + 6, "</b>", Side.closes, 0)
        (target,) = SegmentTranslator(constrained).stream([TaggedText(f"{text}soccer and the beach.", marks)])
        assert target.marked.text.lower().count("pelota azul") == 1
        assert "<b>pelota azul</b>" in target.marked.full_text.lower()


def test_terms_in_placeholders_and_addresses_are_none(translator):
    constrained = translator.with_terms([("soccer", "balompié")])
    assert terms_in(constrained.terms, "See {soccer}, www.soccer.example and %(soccer)s.") == []
    assert [match.start for match in terms_in(constrained.terms, "{soccer} soccer")] == [9]


def test_terms_are_reported_where_near_matches_are_shown_too(translator):
    constrained = translator.with_terms([("soccer", "足球")]).with_steps(MatchAnnotation(None, 100))
    assert [str(match.text) for match in terms_in(constrained.terms, "I like soccer.")] == ["soccer"]
    assert constrained.between(None, None).terms is constrained.terms


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("soccer", "balompié"),
        ("Soccer:", "Balompié:"),
        ("Soccer!", None),
        ("“Save”", "“Guardar”"),
        ("Acme", "Acme"),
        ("I like soccer", None),
        ("soccer soccer", None),
        ("music", None),
    ],
)
def test_a_label_of_one_term_is_the_target_of_the_term(source, expected):
    terms = TermList(terms_of([("soccer", "balompié"), ("Save", "Guardar", "case"), ("Acme",)]))
    assert term_alone(source, terms.matches(source)) == expected


def test_a_label_of_one_term_in_another_form_is_for_the_model():
    terms = TermList(terms_of([("house", "vivienda", "noun")]), Lemmas("en"), Lemmas("es"))
    assert term_alone("Houses", terms.matches("Houses")) is None
    assert term_alone("House", terms.matches("House")) == "Vivienda"


def test_a_label_becomes_the_target_with_every_engine(translator):
    translation = translator.with_terms([("soccer", "pelota")]).translate("Soccer")
    assert translation.text == "Pelota" and translation.terms[0].outcome == "used"
