"""Terms substituted into unconstrained translations, and the penalties of translations with terms."""

import pytest

from translucid.engines.term_constraint import Draft, faults
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import TermList

FREE = "Me gusta el fútbol y la música."
SOURCE = "I like soccer and music."


def draft(source, text, terms, linked):
    """Return a draft in which these words are linked to each missing term, and its term list."""
    terms_list = TermList(terms_of(terms))
    matches = terms_list.matches(source)
    missing = [i for i, use in enumerate(terms_list.uses(matches, text)) if use.outcome == "missing"]
    spans = []
    for words in linked:
        spans.append([(text.index(word), text.index(word) + len(word)) for word in words])
    return Draft(text, matches, spans, missing), terms_list


@pytest.mark.parametrize(
    ("source", "text", "term", "linked", "expected"),
    [
        (SOURCE, FREE, ("soccer", "balompié"), ["fútbol"], "Me gusta el balompié y la música."),
        ("Soccer is nice.", "Fútbol es bonito.", ("soccer", "balompié"), ["Fútbol"], "Balompié es bonito."),
        ("Word is nice.", "Palabra es bonita.", ("Word", ""), ["Palabra"], "Word es bonita."),
        ("I see the house.", "¡Veo la casa!", ("house", "vivienda"), ["casa!"], "¡Veo la vivienda!"),
        # The longest run of linked words is replaced by the term; other long linked words are removed.
        (
            "Machine learning is easy.",
            "El aprendizaje automático es fácil.",
            ("machine learning", "AA"),
            ["aprendizaje", "automático"],
            "El AA es fácil.",
        ),
        (
            "The school bus left.",
            "El bus de escuela salió.",
            ("school bus", "ómnibus"),
            ["bus", "escuela"],
            "El ómnibus salió.",
        ),
        (
            "The fire brigade came quickly.",
            "El cuerpo vino rápido de bomberos.",
            ("fire brigade", "brigada"),
            ["cuerpo", "bomberos"],
            "El vino rápido de brigada.",
        ),
        ("Take care of it.", "Cuida de esto bien.", ("take care", "vela"), ["Cuida", "bien"], "Vela de esto."),
    ],
)
def test_a_target_stands_in_the_place_of_what_is_linked_to_its_source(source, text, term, linked, expected):
    candidate, _ = draft(source, text, [term], [linked])
    target = term[1] or term[0]
    assert candidate.with_terms([target]) == expected


def test_nothing_is_put_where_nothing_is_linked():
    candidate, _ = draft(SOURCE, FREE, [("soccer", "balompié")], [[]])
    assert candidate.with_terms(["balompié"]) is None


def test_a_text_without_spaces_has_no_words_to_be_replaced():
    candidate, _ = draft("I like soccer", "我喜欢足球", [("soccer", "蹴鞠")], [["我喜欢足球"]])
    assert candidate.with_terms(["蹴鞠"]) is None


def test_two_terms_do_not_share_a_word():
    candidate, _ = draft("Tea house", "Tetería", [("tea", "infusión"), ("house", "casa")], [["Tetería"], ["Tetería"]])
    assert candidate.with_terms(["infusión", "casa"]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Me gusta el balompié y la música.", 0),
        ("Me gusta mucho el balompié y la música.", 0),
        ("Me gusta mucho jugar el balompié y la música.", 1),
        ("Me gusta el balompié fútbol y la música.", 4),  # the old word
        ("Me gusta el balompié balompié y la música.", 4),  # twice
        ("Me gusta el bal balompié y la música.", 4),  # truncated
        ("Me gusta el balompis balompié y la música.", 4),
        ("Me gusta balompié música.", 3),  # el, y, la
        ("Me gusta el balompié.", 3),
        ("Me gusta el fútbol y la música.", 14),  # missing, and the old word
        ("Me gusta el balompié y la música y la música.", 6),  # repeated
    ],
)
def test_what_is_wrong_with_a_translation_is_counted(text, expected):
    candidate, terms = draft(SOURCE, FREE, [("soccer", "balompié")], [["fútbol"]])
    assert faults(candidate, terms, SOURCE, text) == expected


def test_other_forms_of_the_words_beside_a_term_are_no_fault():
    candidate, terms = draft("The house is white.", "La casa es blanca.", [("house", "edificio")], [["casa"]])
    assert faults(candidate, terms, "The house is white.", "El edificio es blanco.") == 0
