"""Words of terms are linked to each other and to no other words."""

from translucid.terminology.matching import TermLink, with_term_links

SOURCE, TARGET = "I like soccer and music.", "Me gusta el balompié y la música."


def link(source: str, target: str, texts=(SOURCE, TARGET)) -> TermLink:
    starts = texts[0].index(source), texts[1].index(target)
    return TermLink((starts[0], starts[0] + len(source)), (starts[1], starts[1] + len(target)))


def test_links_of_a_term_take_the_place_of_others():
    attention = [(2, 2, 0.9), (2, 3, 0.1), (3, 3, 0.8), (4, 6, 1.0)]
    assert with_term_links(attention, SOURCE, TARGET, [link("soccer", "balompié")]) == [(2, 3, 1.1), (4, 6, 1.0)]


def test_without_terms_links_stay():
    assert with_term_links([(0, 1, 0.5)], SOURCE, TARGET, []) == [(0, 1, 0.5)]


def test_of_several_words_attention_tells_which_belong_together():
    texts = "See the white house.", "Vea la casa blanca."
    attention = [(0, 0, 1.0), (2, 3, 0.5), (3, 2, 0.25), (1, 2, 0.75)]
    links = with_term_links(attention, *texts, [link("white house", "casa blanca", texts)])
    assert links == [(0, 0, 1.0), (2, 2, 0.5), (2, 3, 1.0), (3, 2, 0.75), (3, 3, 0.5)]


def test_the_words_of_a_name_that_stays_are_linked_to_themselves():
    texts = "See Acme Cloud.", "Vea Acme Cloud."
    links = with_term_links([(0, 1, 1.0), (1, 2, 0.5)], *texts, [link("Acme Cloud", "Acme Cloud", texts)])
    assert links == [(1, 1, 1.0), (2, 2, 1.0)]


def test_a_word_with_other_letters_keeps_its_other_links():
    texts = "a soccer-mad man", "un hombre loco por el balompié"
    attention = [(1, 2, 1.0), (2, 1, 1.0), (2, 5, 0.3)]
    links = with_term_links(attention, *texts, [link("soccer", "balompié", texts)])
    assert links == [(1, 2, 1.0), (1, 5, 1.0), (2, 1, 1.0)]
