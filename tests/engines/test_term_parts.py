"""Parts of terms and stand-ins for names: limits and penalties, checked by hand."""

from types import SimpleNamespace

import pytest
import torch

from tests.engines.test_trials_and_choice import Tokens
from translucid.data.text_pipeline import Piece
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.name_stand_ins import USUAL_NAMES, USUAL_NOUNS, NameStandIns, _is_copied, _is_name, _search_lost
from translucid.engines.term_constraint import (
    Draft,
    FreeTranslation,
    LinkedWord,
    TermConstraint,
    _is_part,
    _most_linked_word,
    _runs,
    _source_words,
    _words,
    faults,
    put_first,
)
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import Lemmas, TermList

TEXT = "uno dos tres cuatro cinco seis"


def test_words_with_at_most_a_short_word_between_them_are_one_run():
    spans_by_word = {word: (TEXT.index(word), TEXT.index(word) + len(word)) for word in TEXT.split()}
    spans = [spans_by_word[word] for word in ("uno", "tres", "cinco", "seis")]
    # There are three letters between uno and tres, and six between tres and cinco.
    assert _runs(TEXT, spans) == [(0, 12), (20, 30)]
    assert _runs(TEXT, spans[1:]) == [(20, 30), (8, 12)]
    assert _runs(TEXT, []) == []


def matches_of(source, terms, *lemmas):
    term_list = TermList(terms_of(terms), *lemmas)
    return term_list, term_list.matches(source)


@pytest.mark.parametrize(
    ("word", "linked", "text", "expected"),
    [
        ("sol", "cuerpo", "El cuerpo es largo y sol.", "El astro es largo y sol."),
        ("luna", "cuerpo", "El cuerpo es largo y luna.", "El astro es largo y."),
    ],
)
def test_a_second_linked_word_goes_if_it_has_more_than_three_letters(word, linked, text, expected):
    _, matches = matches_of("the star", [("star", "astro")])
    spans = [[(text.index(part), text.index(part) + len(part)) for part in (linked, word)]]
    draft = Draft(text, matches, spans, [0])
    assert draft.with_terms(["astro"]) == expected
    assert draft.replaced == [linked, word]


@pytest.mark.parametrize(
    ("word", "is_part"),
    [("bal", True), ("balo", True), ("ba", True), ("balompié", True), ("bola", False), ("sol", False), ("solar", True)],
)
def test_a_part_of_a_term_is_a_word_of_it_or_begins_like_it(word, is_part):
    """The word `sol` is too short to count alone; `solar` begins with it."""
    assert _is_part(word, {"balompié"} | ({"sol"} if "sol" in word and word != "sola" else set())) is is_part


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Veo la pelota roja", 0),
        ("Yo veo la pelota roja", 0),
        ("Yo veo a la pelota roja", 1),
        ("Yo veo a toda la pelota roja", 2),
        ("Veo pelota", 2),
        ("Veo la bola pelota roja", 4),
        ("Veo la pelota pelota roja", 4),
        ("Veo la roja", 10 + 0),
        ("", 10 + 3),
    ],
)
def test_the_penalty_of_a_translation(text, expected):
    terms, matches = matches_of("I see the ball red", [("ball", "pelota")])
    draft = Draft("Veo la bola roja", matches, [[(7, 11)]], [0])
    assert faults(draft, terms, "I see the ball red", text) == expected


def test_source_words_of_a_term_are_counted_at_white_space():
    source = "I see (ice cream) now"
    _, matches = matches_of(source, [("ice cream", "helado"), ("now", "ahora"), ("I", "yo")])
    assert [_source_words(source, match, 5) for match in matches] == [range(1), range(2, 4), range(4, 5)]
    assert [_source_words(source, match, 3) for match in matches] == [range(1), range(2, 3), range(4, 3)]


def test_words_of_a_translation_are_found_in_their_order():
    free = Hypothesis([7, 8, 9, 5], -1.0, -1.0)
    task = FreeTranslation(0, "", [], [], free, "la casa la", [], [])
    words = [("la", 0, 1), ("gone", 1, 2), ("casa", 2, 3), ("la", 3, 4)]
    assert _words(task, words) == [
        LinkedWord(7, (0, 2)),
        LinkedWord(8, None),
        LinkedWord(9, (3, 7)),
        LinkedWord(5, (8, 10)),
    ]


@pytest.mark.parametrize(
    ("spans", "shares", "number"),
    [
        (((0, 3), (4, 8)), (0.5, 0.15), 1),
        (((0, 3), (4, 8)), (0.5, 0.125), 0),
        (((0, 4), (5, 9)), (0.5, 0.25), 0),
        (((0, 3), (4, 7)), (0.5, 0.25), 0),
        ((None, (4, 8)), (0.5, 0.25), 0),
        (((0, 3), None), (0.5, 0.25), 1),
        (((4, 8), (0, 3)), (0.25, 0.5), 1),
    ],
)
def test_a_short_word_gives_way_to_a_long_one_behind_it_with_almost_as_much_attention(spans, shares, number):
    words = [LinkedWord(i, span) for i, span in enumerate(spans)]
    assert _most_linked_word(words, torch.tensor(shares, dtype=torch.float64)).token == number


def test_only_hypotheses_without_a_higher_score_stay_below_the_chosen_one():
    best, equal, lower, higher = (Hypothesis([i], s, s) for i, s in enumerate((-2.0, -2.0, -3.0, -1.0)))
    assert put_first(best, [lower, higher, equal]) == [best, equal, lower]


def test_a_constrained_search_has_a_beam_of_five(monkeypatch):
    from translucid.terminology.term_forms import TermForms

    beams = []

    class Own:
        def decode(self, request, constraints):
            beams.append((request.options.beam, request.sentences))
            return [["found"] for _ in request.sentences]

    monkeypatch.setattr(TermForms, "__init__", lambda *_: None)
    monkeypatch.setattr(TermForms, "edges", None, raising=False)
    calls = []

    def phrases(self, matches, instead):
        calls.append(([match.text for match in matches], instead))
        return ["phrase"] if matches else []

    monkeypatch.setattr(TermForms, "constraints", phrases)
    monkeypatch.setattr("translucid.decoding.constrained_decoding.Constraints", lambda *_: None)
    terms = TermList(terms_of([("ball", "pelota"), ("sun", "sol"), ("cat", "gato")]), Lemmas("en"), Lemmas("es"))
    source = "ball sun cat"
    matches = terms.matches(source)
    uses = terms.uses(matches, "sol gatos")
    assert [use.outcome for use in uses] == ["missing", "used", "inflected"]
    task = FreeTranslation(0, source, [4], [5], Hypothesis([1], -1.0, -1.0), "sol gatos", matches, uses)
    constraint = TermConstraint(Own, terms, None)
    linked = [[[LinkedWord(7, None), LinkedWord(8, None)], [LinkedWord(9, None)], [LinkedWord(6, None)]]]
    for beam, expected_beam in ((1, 5), (5, 5), (6, 6)):
        results = constraint._constrained([task], linked, SearchRequest([[5]], DecodingOptions(beam=beam)))
        assert results[0] == ["found"] and results[1] == []
        assert beams[-1] == (expected_beam, [[5]])
    assert calls[0] == (["ball", "sun"], [[7, 8], []])
    assert str(constraint) == "constrained by 3 terms" and constraint.annotated is False


def test_substituted_texts_are_scored_by_forced_decoding(monkeypatch):
    pieces = {"ab": [10, 10], "?": [1], "abc": [10, 10, 10]}  # 1 is the unknown piece
    log_probs = {3: [-0.5, -0.5], 4: [0.5] * 4}  # by the length of the target

    class Letters(Tokens):
        def encode_target(self, texts):
            return [pieces[text] for text in texts]

    class Own:
        def forced(self, pairs):
            self.pairs = pairs
            return [log_probs[len(target)] for _, target in pairs]

    engine = Own()
    constraint = TermConstraint(lambda: engine, TermList([]), Letters())
    options = DecodingOptions(length_penalty=1.0)
    texts = {"x": "ab", "y": "?", "z": "abc"}
    hypotheses = constraint._scored(engine, {"x": [4], "y": [5], "z": [6]}, texts, options)
    assert engine.pairs == [([4], [10, 10, 3]), ([6], [10, 10, 10, 3])]
    assert hypotheses == {
        "x": Hypothesis([10, 10], -1.0, -1.0 / (7 / 6), [-0.5, -0.5]),
        "z": Hypothesis([10] * 3, 0.0, 0.0, [0.5] * 4),
    }
    assert constraint._scored(engine, {"y": [5]}, {"y": "?"}, options) == {}
    constraint.tokenizer.target_opening = (8,)
    assert constraint._scored(engine, {"x": [4]}, {"x": "ab"}, options)["x"].token_log_probabilities == [
        0.0,
        -0.5,
        -0.5,
    ]
    assert str(TermConstraint(None, TermList([]), Letters(), annotated=True)) == "constrained by 0 terms"


def test_the_names_and_nouns_that_a_model_knows_best_come_first():
    stand_ins = NameStandIns(Tokens(), TermList(terms_of([("Max", "x"), ("golf", "y")])), "es")
    # Source names are one piece with the language, so target letters decide; ties keep their order.
    assert stand_ins._names == sorted(filter(lambda name: name != "Max", USUAL_NAMES), key=len)
    assert stand_ins._nouns == sorted(filter(lambda noun: noun != "golf", USUAL_NOUNS), key=len)
    assert (stand_ins._names[:4], stand_ins._nouns[:3]) == (["Ana", "Tom", "Eva", "Anna"], ["bar", "zoo", "taxi"])
    assert (len(USUAL_NAMES), len(USUAL_NOUNS)) == (24, 12)


def test_attempts_begin_with_a_noun_and_then_with_other_names(monkeypatch):
    """Then comes the first name again, as a constraint, and finally the original sentence."""
    stand_ins = NameStandIns(Tokens(), TermList(terms_of([("Ferblat",)])), "es")
    monkeypatch.setattr(NameStandIns, "_lost", lambda self, sources, results, allow_more=False: [(0, 0, 0)])
    monkeypatch.setattr(NameStandIns, "_for_model", lambda self, piece: piece)
    words = []
    monkeypatch.setattr(
        NameStandIns, "_with_stand_ins", lambda self, piece, stand_in_words: words.append([*stand_in_words]) or None
    )
    forced = []

    def search_again(terms):
        forced.append(terms)
        return lambda texts: [[["again"]] for _ in texts]

    piece = Piece("Ferblat", [4, 3], "")
    _, results = stand_ins.search([[piece]], lambda texts: [[["first"]]], search_again)
    names = stand_ins._names
    assert words == [stand_ins._nouns, names[1:], names[2:], names[3:], names, []]
    assert results == [[["again"]]] and len(forced) == 6


def test_pieces_with_the_same_stand_ins_are_searched_together():
    def piece(*words):
        names = tuple(SimpleNamespace(word=word) for word in words)
        return SimpleNamespace(masked=SimpleNamespace(names=names), number=next(numbers))

    numbers = iter(range(4))
    pieces = [piece("Ana"), piece("Tom"), piece("Ana"), piece()]
    calls = []

    def search_again(terms):
        def search(texts):
            calls.append((terms and [match.text for match in terms.matches("Ana ana Tom")], len(texts)))
            return [[[len(calls), text.number]] for (text,) in texts]

        return search

    assert _search_lost(pieces, search_again, is_forced=True) == [[1, 0], [2, 1], [1, 2], [3, 3]]
    assert calls == [(["Ana"], 2), (["Tom"], 1), (None, 1)]
    calls.clear()
    assert _search_lost(pieces, search_again, is_forced=False) == [[1, 0], [1, 1], [1, 2], [1, 3]]
    assert calls == [(None, 4)]


@pytest.mark.parametrize(
    ("term", "is_kept", "is_name"),
    [
        (("Acme",), True, False),
        (("acme",), True, False),
        (("Acme Cloud", "Nube"), False, True),
        (("Acme cloud", "Nube"), False, False),
        (("Acme 3", "Nube"), False, True),
        (("Acme", "nube"), False, False),
        (("acme", "Nube", "name"), False, True),
    ],
)
def test_a_name_has_capitals_or_is_listed_as_one(term, is_kept, is_name):
    _, (match,) = matches_of(term[0], [term])
    assert (_is_copied(match), _is_name(match)) == (is_kept, is_name)
    _, (match,) = matches_of(term[0], [term, (term[0], "Otra")])
    assert not _is_name(match)
