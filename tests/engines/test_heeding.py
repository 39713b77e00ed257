"""Terms are heeded: what the model leaves out is searched for with constraints, in place of what it said."""

import pytest

from translucid.data.terms.matching import TermList
from translucid.data.terms.term import terms_of
from translucid.engines.heeding import HeedingEngine
from translucid.engines.term_forms import TermForms
from translucid.ground.errors import UserError
from translucid.translator import Translator

TEXTS = ["I like soccer.", "The teacher reads a book.", "She is happy.", "We like the beach and soccer."]


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def translator(request, small_run):
    return Translator.load(small_run, engine=request.param)


def test_terms_are_used_and_the_rest_stays_as_it_is(translator):
    heeding = translator.with_terms([("soccer", "fútbol"), ("teacher", "doctora")])
    plain, found = translator.translate(TEXTS), heeding.translate(TEXTS)
    assert [[use.outcome for use in one.terms] for one in found] == [["used"], ["used"], [], ["used"]]
    assert found[2].text == plain[2].text
    assert "fútbol" in found[0].text.lower() and "doctora" in found[1].text.lower()
    assert not any(warning.startswith("term") for one in found for warning in one.warnings)
    assert translator.translate(TEXTS)[0].terms == []


def test_what_has_its_terms_already_is_not_searched_for_again(translator):
    plain = translator.translate(TEXTS[1])
    word = plain.text.split()[0].strip(".,¿")
    heeding = translator.with_terms([("teacher", word)])
    assert heeding.translate(TEXTS[1]).text == plain.text


def test_a_term_belongs_to_its_sentence(translator):
    heeding = translator.with_terms([("soccer", "fútbol"), ("teacher", "doctora")])
    found = heeding.translate("I like soccer. The teacher reads a book.")
    (first, second) = (text for _, text in found.sentences)
    assert "fútbol" in first.lower() and "doctora" in second.lower() and "doctora" not in first.lower()


def test_what_is_not_translated_and_what_stands_twice(translator):
    heeding = translator.with_terms([("Ana",), ("book", "libro")])
    found = heeding.translate("Ana reads a book and Ana sees a book.")
    assert found.text.count("Ana") >= 2 and found.text.lower().count("libro") >= 2


def test_a_term_that_the_vocabulary_can_not_write_is_missing_and_said(translator):
    found = translator.with_terms([("soccer", "足球")]).translate(TEXTS[0])
    assert [str(use) for use in found.terms] == ["soccer (足球)"] and found.terms[0].outcome == "missing"
    assert "term not used: soccer (足球)" in found.warnings
    assert found.text == translator.translate(TEXTS[0]).text


def test_a_greedy_search_and_n_best_lists_have_terms_too(translator):
    heeding = translator.with_terms([("soccer", "doctora")])
    assert heeding.translate(TEXTS[0], beam=1).terms[0].outcome == "used"
    found = heeding.translate(TEXTS[0], beam=4, nbest=3)
    assert 1 < len(found.nbest) <= 3
    assert all("doctora" in text.lower() for text in found.alternatives)


def test_sampling_is_refused(translator):
    with pytest.raises(UserError, match="draws nothing at random"):
        translator.with_terms([("soccer", "fútbol")]).translate(TEXTS[0], sample=True)


def test_pointing_terms_out_to_a_model_that_does_not_know_it_is_refused(translator):
    with pytest.raises(UserError, match="not trained with terms"):
        translator.with_terms([("soccer", "fútbol")], mode="annotate")


def test_an_adapter_is_for_the_translator_that_was_loaded(translator):
    with pytest.raises(UserError, match="loaded"):
        translator.with_terms([("soccer", "fútbol")]).use(None)


def test_what_the_model_said_tells_where_a_term_goes(translator):
    """The first piece of some word of the translation, for each word of the term."""
    own = translator.own
    terms = TermList(terms_of([("soccer", "x"), ("the beach", "y")]))
    engine = HeedingEngine(
        own, lambda: own, terms, translator.tokenizer, 99, alignment=translator.configuration.alignment
    )
    ids = translator.cutter.pieces([TEXTS[3]], split=False)[0][0].ids
    ((best,),) = own.decode([ids], translator.configuration.decoding)
    ((beach, soccer),) = engine._said([ids], [best], [engine.matches(ids)])
    assert (len(beach), len(soccer)) == (2, 1)
    starts = [t for t, s in zip(best.tokens, translator.tokenizer.target_word_starts(), strict=False)]
    assert {*beach, *soccer} <= {*starts}
    assert engine._said([], [], []) == []


def test_forms_are_those_of_the_tokenizer(translator):
    """Spelled out: behind a space, behind a sign, and with a capital where that is another form."""
    tokenizer = translator.tokenizer
    terms = TermList(terms_of([("book", "libro"), ("Ana",)]))
    forms = TermForms(tokenizer)
    low, great = tokenizer.encode_target(["libro", "Libro"])
    said = [low[0], great[0]]
    (wanted, name) = forms.wanted(terms.matches("book Ana"), [said, []])
    written = {tokenizer.decode(form.pieces) for form in wanted.forms}
    assert written == {"libro", "Libro"}
    assert {form.inside for form in wanted.forms} == {True, False}
    for form in wanted.forms:
        assert form.instead == tuple(great[:1] if tokenizer.decode(form.pieces) == "Libro" else low[:1])
    assert {tokenizer.decode(form.pieces) for form in name.forms} == {"Ana"}
    goes_on, opens = forms.edges
    pieces = tokenizer.target_vocabulary
    assert not goes_on[pieces.index(".")] and opens[pieces.index("▁¿")]
    assert not any(goes_on[i] for i, piece in enumerate(pieces) if piece.startswith("▁"))


def test_a_search_chooses_among_the_forms_of_a_word(translator):
    forms = TermForms(translator.tokenizer, lambda target: ["libros", "libritos"] if target == "libro" else [])
    for part, expected in (("noun", {"libro", "libros", "libritos"}), ("name", {"libro"})):
        terms = TermList(terms_of([("book", "libro", part)]))
        (wanted,) = forms.wanted(terms.matches("book"), [[]])
        assert {translator.tokenizer.decode(form.pieces).lower() for form in wanted.forms} == expected


def test_a_model_without_attention_has_terms_too(translator):
    own, terms = translator.own, TermList(terms_of([("soccer", "la")]))
    engine = HeedingEngine(own, lambda: own, terms, translator.tokenizer, 99)
    assert engine._said([[5, 3]], [None], [[None]]) == [[[]]]
    ids = translator.cutter.pieces(TEXTS[:1], split=False)[0][0].ids
    ((best,),) = engine.decode([ids], translator.configuration.decoding)
    assert [use.outcome for use in engine.uses(ids[:-1], best.tokens)] == ["used"]
