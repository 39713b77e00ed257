"""Constrained search against brute force, and against ordinary beam search where nothing is wanted."""

import itertools

import pytest
import torch

from translucid.decoding.constraints import Constraints, Edges, Form, Wanted, by_turns
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import TorchEngine, search

EOS = 3
V = 7
NONE = torch.zeros(V, dtype=torch.bool)
SIX = torch.arange(V) == 6


def count(wanted, tokens, edges):
    """How often a phrase stands in an output, by definition."""
    ends = set()
    for form in wanted.forms:
        size = len(form.pieces)
        for at in range(len(tokens) - size + 1):
            behind = tokens[at + size : at + size + 1]
            begins = not form.inside or at == 0 or bool(edges.opens[tokens[at - 1]])
            if tuple(tokens[at : at + size]) == form.pieces and begins and not (behind and edges.goes_on[behind[0]]):
                ends.add(at + size)
    return len(ends)


def phrase(*pieces, times=1):
    return Wanted((Form(pieces),), times)


CASES = {
    "one piece": [phrase(5)],
    "two pieces": [phrase(6, 4)],
    "a repeated piece": [phrase(4, 4)],
    "a phrase that begins like itself": [phrase(4, 4, 5)],
    "two phrases": [phrase(5), phrase(6, 4)],
    "twice": [phrase(5, times=2)],
    "two forms": [Wanted((Form((5, 4)), Form((6,))))],
    "inside only": [Wanted((Form((4, 5), inside=True),))],
    "one piece, inside only": [Wanted((Form((5,), inside=True),))],
    "nothing": [],
}


@pytest.mark.parametrize("edges", [Edges(NONE, NONE), Edges(SIX, NONE), Edges(NONE, SIX), Edges(SIX, SIX)])
@pytest.mark.parametrize("wanted", CASES.values(), ids=CASES)
def test_a_beam_wide_enough_finds_the_best_output_that_has_all(
    wanted, edges, table_model, brute_force, source_batch, sentences
):
    model = table_model(1)
    options = DecodingOptions(beam=400, nbest=5, max_length_ratio=0, max_length_extra=4)
    constraints = Constraints([wanted] * len(sentences), edges)
    found = search(model, source_batch(sentences), options, constraints=constraints)
    for sentence, hypotheses in zip(sentences, found, strict=True):
        every = brute_force(model, sentence, options)
        fit = [one for one in every if all(count(each, one.tokens, edges) >= each.times for each in wanted)]
        assert [h.tokens for h in hypotheses] == [one.tokens for one in fit[:5]]
        assert [h.score for h in hypotheses] == pytest.approx([one.score for one in fit[:5]], abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_a_narrow_beam_finds_what_is_wanted(seed, beam, table_model, source_batch, sentences):
    model, edges = table_model(seed), Edges(SIX, NONE)
    wanted = [*CASES.values()][: len(sentences)]
    options = DecodingOptions(beam=beam, max_length_ratio=0, max_length_extra=8)
    found = search(model, source_batch(sentences), options, constraints=Constraints(wanted, edges))
    for each, hypotheses in zip(wanted, found, strict=True):
        assert all(count(one, hypotheses[0].tokens, edges) >= one.times for one in each)


@pytest.mark.parametrize(("beam", "nbest", "alpha"), [(2, 1, 1.0), (3, 2, 0.0), (5, 3, 1.0), (8, 2, 2.0)])
def test_sentences_that_want_nothing_get_what_the_ordinary_beam_finds(
    beam, nbest, alpha, table_model, source_batch, sentences
):
    options = DecodingOptions(beam=beam, nbest=nbest, length_penalty=alpha, max_length_ratio=1, max_length_extra=6)
    for seed in range(4):
        model, source = table_model(seed), source_batch(sentences)
        constraints = Constraints([[phrase(6, 4), phrase(5)], *[[]] * (len(sentences) - 1)], Edges(SIX, SIX))
        found = search(model, source, options, constraints=constraints)
        assert found[1:] == search(model, source, options)[1:]


def test_what_does_not_fit_is_left_out_and_the_output_is_there(table_model, source_batch, sentences):
    options = DecodingOptions(beam=5, nbest=2, max_length_ratio=0, max_length_extra=2)
    constraints = Constraints([[phrase(4, 5, 6)], *[[phrase(5)]] * (len(sentences) - 1)], Edges(NONE, NONE))
    found = search(table_model(0), source_batch(sentences), options, constraints=constraints)
    assert len(found[0][0].tokens) == 2
    assert all(5 in h.tokens for nbest in found[1:] for h in nbest)


def test_rules_go_before_constraints(table_model, source_batch):
    options = DecodingOptions(beam=5, max_length_ratio=0, max_length_extra=6, no_repeat_ngram=1)
    constraints = Constraints([[phrase(4, 4)]], Edges(NONE, NONE))
    ((best,),) = search(table_model(0), source_batch([[4, EOS]]), options, constraints=constraints)
    assert len(set(best.tokens)) == len(best.tokens)


def test_each_sentence_of_many_batches_gets_its_own(table_model, sentences, monkeypatch):
    model = table_model(2)
    wanted = [[phrase(a, b)] for a, b in itertools.islice(itertools.product((4, 5, 6), repeat=2), len(sentences))]
    options = DecodingOptions(beam=4, max_length_extra=8)
    monkeypatch.setattr("translucid.decoding.search.BATCH", 12)
    found = TorchEngine(model).decode(sentences, options, constraints=Constraints(wanted, Edges(NONE, NONE)))
    for (one,), nbest in zip(wanted, found, strict=True):
        assert count(one, nbest[0].tokens, Edges(NONE, NONE))


def test_the_search_begins_after_an_opening(table_model, source_batch):
    options = DecodingOptions(beam=4, max_length_ratio=0, max_length_extra=6)
    constraints = Constraints([[phrase(5, 6)]], Edges(NONE, NONE))
    ((best,),) = search(
        table_model(0), source_batch([[4, EOS]]), options, prefix=[4, 4], prefix_length=2, constraints=constraints
    )
    assert best.tokens[:2] == [4, 4] and count(phrase(5, 6), best.tokens[2:], Edges(NONE, NONE))


def test_sampling_and_constraints_do_not_go_together(table_model, source_batch):
    options = DecodingOptions(sample=True)
    with pytest.raises(ValueError, match="sampling"):
        search(table_model(0), source_batch([[4, EOS]]), options, constraints=Constraints([[]], Edges(NONE, NONE)))


def test_places_are_given_by_turns():
    bank = torch.tensor([[0, 0, 0, 2, 1, 2], [0, 0, 0, 0, 0, 0]])
    valid = torch.tensor([[True] * 6, [True, True, True, True, False, True]])
    assert by_turns(bank, valid, 4).tolist() == [[3, 4, 0, 5, 1, 2], [0, 1, 2, 3, 5, 4]]


def priced(model, source, tokens, form):
    """What an output costs by definition in which `form`, the only one of a phrase, may come instead of another."""
    total, met = 0.0, False
    for t, token in enumerate([*tokens, EOS]):
        step = model.log_probs(source, tokens[:t])
        on = next((n for n in range(len(form.pieces) - 1, 0, -1) if tuple(tokens[:t][-n:]) == form.pieces[:n]), 0)
        cost = step[token]
        if not met and token == form.pieces[on]:
            cost = max(cost, 0.0 if on else max(step[other] for other in form.instead))
            met = on + 1 == len(form.pieces)
        elif not met and not on and token in form.instead:
            cost = min(cost, step[form.pieces[0]])
        total += cost
    return total


@pytest.mark.parametrize("form", [Form((5, 4), instead=(6,)), Form((5,), instead=(4, 6)), Form((4, 4), instead=(5,))])
@pytest.mark.parametrize("seed", range(3))
def test_a_phrase_costs_what_it_comes_instead_of(seed, form, table_model, brute_force, source_batch, sentences):
    model = table_model(seed)
    options = DecodingOptions(beam=400, length_penalty=0, max_length_ratio=0, max_length_extra=4)
    constraints = Constraints([[Wanted((form,))]] * len(sentences), Edges(NONE, NONE))
    found = search(model, source_batch(sentences), options, constraints=constraints)
    for sentence, (best,) in zip(sentences, found, strict=True):
        every = [
            one
            for one in brute_force(model, sentence, options)
            if count(Wanted((form,)), one.tokens, Edges(NONE, NONE))
        ]
        cheapest = max(every, key=lambda one: priced(model, sentence, one.tokens, form))
        assert best.tokens == cheapest.tokens
        assert best.log_probability == pytest.approx(cheapest.log_probability, abs=1e-4)  # the model's own
        assert best.score == pytest.approx(cheapest.score, abs=1e-4)


def test_of_two_forms_the_likelier_one_comes(table_model, source_batch, sentences):
    """Both may come instead of the same; how likely they are tells which."""
    model = table_model(0)
    model.logits[..., 6] += 4.0  # what the model would say
    model.logits[..., 4] += 2.0
    model.logits[..., 5] -= 2.0
    options = DecodingOptions(beam=5, max_length_ratio=0, max_length_extra=5)
    wanted = Wanted((Form((5,), instead=(6,)), Form((4,), instead=(6,))))
    found = search(model, source_batch(sentences), options, constraints=Constraints([[wanted]] * 6, Edges(NONE, NONE)))
    assert all(4 in best.tokens and 5 not in best.tokens for (best,) in found)


def test_a_word_that_has_come_instead_of_another_does_not_go_on(table_model, source_batch, sentences):
    model, edges = table_model(3), Edges(SIX, NONE)
    wanted = Wanted((Form((5,), instead=(4,)),))
    options = DecodingOptions(beam=400, max_length_ratio=0, max_length_extra=4)
    for (best,) in search(model, source_batch(sentences), options, constraints=Constraints([[wanted]] * 6, edges)):
        first = best.tokens.index(5)
        assert best.tokens[first + 1 : first + 2] != [6]
