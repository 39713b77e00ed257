"""Links between the words of two texts, and the places that elements leave free for others."""

import numpy as np
import pytest

from bitext.documents.tag_projection import FreeSpans, Run, Word, WordLinks, with_copies, words_of

SOURCE, TARGET = "the white (house), now", "la casa blanca, ya"
LINKS = [(0, 0, 1), (1, 2, 1), (1, 2, 2), (2, 1, 2), (2, 2, 1), (3, 3, 1)]
NO_WORDS = [(4, 0, 1), (0, 4, 1), (-1, 0, 1), (0, -1, 1), (0, 1, 0), (0, 2, -1)]
"""Links to words that do not exist, and links without weight."""


@pytest.fixture
def links():
    return WordLinks(SOURCE, TARGET, [*LINKS, *NO_WORDS])


def test_words_have_a_core_without_punctuation():
    assert words_of(" («One», two- … 3%)\n") == [
        Word(1, 8, 3, 6),
        Word(9, 13, 9, 13),
        Word(14, 15, 14, 15),
        Word(16, 19, 16, 18),
    ]


def test_each_target_word_shares_its_links_among_source_words(links):
    assert links.shares == [{0: 1}, {2: 1}, {1: 0.75, 2: 0.25}, {3: 1}]
    assert links.mass({1, 2}).tolist() == [0, 1, 1, 0]
    assert links.weights({2}, links.mass({1, 2})).tolist() == [-0.5, 0.5, -1.0, -0.5]
    targets, shares = links.shares_of(2)
    assert (targets.tolist(), shares.tolist()) == ([1, 2], [1, 0.25])
    assert [len(links.shares_of(word)[0]) for word in (-1, 0, 3, 4)] == [0, 1, 1, 0]


def test_a_word_without_links_neither_gains_nor_costs():
    assert WordLinks("a b", "x y z", [(0, 0, 1)]).weights({0}, np.ones(3)).tolist() == [0.5, 0, 0]


def test_without_links_the_words_have_the_same_order():
    assert WordLinks("a b", "v w x y z", []).shares == [{0: 1}, {0: 1}, {0: 1}, {1: 1}, {1: 1}]
    assert WordLinks("a", "x y", [(1, 0, 1)]).shares == [{}, {}]
    assert WordLinks("a b", "x", [(1, 0, 1)]).shares == [{1: 1}]
    assert WordLinks("a b", "", []).shares == WordLinks("", "", []).shares == []


@pytest.mark.parametrize(
    ("span", "touched", "inside"),
    [
        ((4, 9), range(1, 2), {1}),
        ((3, 4), range(1, 1), set()),  # the space
        ((2, 11), range(2), {1}),  # a third of a word, a whole word and a bracket
        ((2, 6), range(2), {1}),  # neither is covered by half, so the one that is covered most
        ((1, 6), range(2), {0}),
        ((10, 11), range(2, 2), set()),
        ((5, 5), range(1, 2), set()),
        ((15, 20), range(2, 4), {3}),
        ((0, 22), range(4), {0, 1, 2, 3}),
    ],
)
def test_a_span_contains_the_words_that_it_covers_by_half(links, span, touched, inside):
    assert (links.touched(span), links.covered_words(span)) == (touched, inside)


def test_half_of_a_word_is_enough():
    assert WordLinks("ab cd", "x", []).covered_words((1, 4)) == {0, 1}


@pytest.mark.parametrize(
    ("span", "punctuation"),
    [((10, 18), ("(", "),")), ((11, 17), ("", ")")), ((11, 16), ("", "")), ((4, 9), (None, "")), ((4, 22), (None, ""))],
)
def test_punctuation_of_a_span(links, span, punctuation):
    assert links.punctuation(span) == punctuation


def test_links_that_cross_a_cut(links):
    assert links.crossing(1).tolist() == [1, 0, 1, 2, 3]
    assert links.crossing(3).tolist() == [3, 2, 1, 0, 1]
    assert links.crossing(0).tolist() == [0, 1, 2, 3, 4]  # a cut left of the previous one
    assert links.crossing(2).tolist() == [1.75, 0.75, 1.75, 1.25, 2.25]
    assert [links.left_of(place) for place in (0, 1, 2, 6, 7, 22)] == [0, 0, 1, 1, 2, 4]
    assert WordLinks("ab", "xy abc", []).left_of(1) == 1  # the middle of the word
    assert WordLinks("ab", "xy (abc)", []).middles.tolist() == [1, 5.5]


def test_unlinked_words_belong_to_a_run_only_in_its_middle():
    links = WordLinks("a b", "u a v a w b", [(0, 1, 1), (0, 3, 1), (1, 5, 1)])
    mass = links.mass({0})
    free = FreeSpans((0, 11))
    run = links.best_run({0}, mass, free)
    assert run == Run(1, 3, 0, 11)
    assert links.grown(run, False, False) == run
    assert links.grown(run, True, True) == Run(0, 4, 0, 11)
    assert links.grown(run, True, False) == Run(0, 3, 0, 11)
    assert links.grown(run, False, True) == Run(1, 4, 0, 11)
    # Neither end may exceed the free place.
    assert links.grown(run._replace(low=1, high=8), True, True) == Run(1, 3, 1, 8)
    assert links.grown(run._replace(low=0, high=9), True, True) == Run(0, 4, 0, 9)
    free.take((2, 5))
    assert links.best_run({0}, mass, free) == Run(3, 3, 5, 11)
    assert links.best_run({0}, mass, FreeSpans((0, 2))) is None
    ends = WordLinks("a", "u a w x", [(0, 1, 1)])
    assert ends.grown(Run(1, 1, 0, 7), True, True) == Run(0, 3, 0, 7)


def test_a_run_has_no_words_of_others_at_its_ends():
    links = WordLinks("a b", "x y y x y x", [(1, 0, 1), (0, 1, 1), (0, 2, 1), (1, 3, 1), (0, 4, 1), (1, 5, 1)])
    mass = links.mass({0, 1})
    assert links.best_run({0}, mass, FreeSpans((0, 11))) == Run(1, 2, 0, 11)
    free = FreeSpans((0, 11))
    free.take((1, 2))
    assert links.best_run({0}, mass, free) == Run(1, 2, 2, 11)
    free = FreeSpans((1, 9))
    free.take((2, 3))
    assert links.best_run({0}, mass, free) == Run(2, 2, 3, 9)


def test_a_free_place_without_gain_does_not_end_the_search():
    links = WordLinks("a", "a u a a", [(0, 0, 1), (0, 2, 1), (0, 3, 1)])
    free = FreeSpans((0, 7))
    free.take((0, 2))
    assert links.best_run({0}, links.mass({0}), free) == Run(2, 3, 2, 7)


def test_of_equal_runs_the_first_and_shortest_is_chosen():
    links = WordLinks("a b", "a u b v a", [(0, 0, 1), (1, 2, 1), (0, 4, 1)])
    assert links.best_run({0}, links.mass({0}), FreeSpans((0, 9))) == Run(0, 0, 0, 9)
    free = FreeSpans((0, 9))
    free.take((4, 5))
    assert links.best_run({0}, links.mass({0}), free) == Run(0, 0, 0, 4)


def test_a_word_that_belongs_to_another_more_is_taken_if_there_is_no_better():
    links = WordLinks("a b", "x y", [(0, 0, 3), (1, 0, 1), (0, 1, 9), (1, 1, 1)])
    mass = links.mass({0, 1})
    free = FreeSpans((0, 3))
    assert links.best_run({1}, mass, free) == Run(0, 0, 0, 3)
    free.take((0, 1))
    assert links.best_run({1}, mass, free) is None  # a tenth of a word is not enough


@pytest.mark.parametrize(
    ("source", "span", "target", "run", "part"),
    [
        ("Unbelievable", (2, 12), "Increíble", (0, 0), (1, 9)),  # as many letters at the end, but not the whole word
        ("Unbelievable", (0, 2), "Increíble", (0, 0), (0, 2)),
        ("Unbelievable", (2, 5), "Increíble", (0, 0), (2, 4)),  # in proportion
        ("Unbelievable", (2, 12), "no believable", (0, 1), (3, 13)),  # the same letters
        ("Exit", (0, 1), "SaliE", (0, 0), (0, 1)),  # one letter may occur by chance
        ("(Exit)", (2, 6), "(Salir)", (0, 0), (3, 6)),  # without surrounding punctuation
        ("well-known", (5, 10), "bien muy conocido", (0, 2), (9, 17)),
        ("well-known", (0, 4), "bien muy conocido", (0, 2), (0, 8)),
        ("well-known", (0, 4), "a well-b", (1, 1), (2, 6)),
        ("abc", (1, 2), "x", (0, 0), (0, 1)),
        ("abc", (0, 2), "x", (0, 0), (0, 1)),
        ("abc", (0, 3), "x", (0, 0), None),
        ("abc d", (1, 5), "x", (0, 0), None),
    ],
)
def test_a_part_of_a_word_has_a_part_of_its_translation(source, span, target, run, part):
    links = WordLinks(source, target, [])
    assert links.part_of_word(span, Run(*run, 0, len(target))) == part


def test_free_places():
    free = FreeSpans((0, 20))
    free.take((5, 9))
    free.take((9, 12))
    assert (free.lows, free.highs) == ([0, 9, 12], [5, 9, 20])
    spans = {(0, 5): (0, 5), (5, 5): (0, 5), (9, 9): (9, 9), (12, 20): (12, 20), (19, 20): (12, 20)}
    for span, gap in spans.items():
        assert free.containing(*span) == gap
    assert [free.containing(*span) for span in ((4, 6), (6, 6), (9, 10), (11, 13), (19, 21))] == [None] * 5
    nearest = {0: 0, 3: 3, 5: 5, 6: 5, 7: 5, 8: 9, 10: 9, 11: 12, 15: 15, 20: 20, 25: 20}
    assert {position: free.nearest(position) for position in nearest} == nearest
    contained = free.contain(np.array([0, 5, 6, 9, 10, 12, 20, 21])).tolist()
    assert contained == [True, True, False, True, False, True, True, False]


def test_copied_words_are_linked_to_their_copies_only():
    links = [(0, 0, 0.5), (1, 0, 0.5), (1, 1, 1.0), (2, 2, 1.0)]
    assert with_copies(links, "a 25 b", "x y 25", [(2, 4)]) == [(0, 0, 0.5), (1, 2, 1.0)]
    assert with_copies(links, "a 25 b", "x y 25", []) == links
    assert with_copies([], "a 25 b", "x y 25", [(2, 4)]) == []
