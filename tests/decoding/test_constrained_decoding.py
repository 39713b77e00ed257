"""Constrained search against brute force, and against ordinary beam search for sentences without constraints."""

import itertools

import pytest
import torch

from translucid.decoding.constrained_decoding import Constraints, Edges, Form, RequiredPhrase, by_turns
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine, search

EOS = 3
V = 7
NONE = torch.zeros(V, dtype=torch.bool)
SIX = torch.arange(V) == 6


def count(constraint, tokens, edges):
    """Count the occurrences of a phrase in an output by definition."""
    ends = set()
    for form in constraint.forms:
        size = len(form.pieces)
        for start in range(len(tokens) - size + 1):
            following = tokens[start + size : start + size + 1]
            begins = not form.inside or start == 0 or bool(edges.opens_word[tokens[start - 1]])
            if (
                tuple(tokens[start : start + size]) == form.pieces
                and begins
                and not (following and edges.continues_word[following[0]])
            ):
                ends.add(start + size)
    return len(ends)


def satisfies(tokens, phrases, edges):
    return all(count(phrase, tokens, edges) >= phrase.times for phrase in phrases)


def phrase(*pieces, times=1):
    return RequiredPhrase((Form(pieces),), times)


CASES = {
    "one piece": [phrase(5)],
    "two pieces": [phrase(6, 4)],
    "a repeated piece": [phrase(4, 4)],
    "a phrase that begins like itself": [phrase(4, 4, 5)],
    "two phrases": [phrase(5), phrase(6, 4)],
    "twice": [phrase(5, times=2)],
    "two forms": [RequiredPhrase((Form((5, 4)), Form((6,))))],
    "inside only": [RequiredPhrase((Form((4, 5), inside=True),))],
    "one piece, inside only": [RequiredPhrase((Form((5,), inside=True),))],
    "nothing": [],
}


@pytest.mark.parametrize("edges", [Edges(NONE, SIX), Edges(SIX, NONE)])
@pytest.mark.parametrize("phrases", CASES.values(), ids=CASES)
def test_a_beam_wide_enough_finds_the_best_output_that_has_all(
    phrases, edges, table_model, brute_force, source_batch, sentences
):
    model = table_model(1)
    options = DecodingOptions(beam=400, nbest=5, max_length_ratio=0, max_length_extra=4)
    constraints = Constraints([phrases] * len(sentences), edges)
    results = search(model, source_batch(sentences), options, constraints=constraints)
    for sentence, hypotheses in zip(sentences, results, strict=True):
        outputs = brute_force(model, sentence, options)
        expected = [output for output in outputs if satisfies(output.tokens, phrases, edges)][:5]
        assert [h.tokens for h in hypotheses] == [output.tokens for output in expected]
        assert [h.score for h in hypotheses] == pytest.approx([output.score for output in expected], abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_a_narrow_beam_satisfies_all_constraints(seed, beam, table_model, source_batch, sentences):
    model, edges = table_model(seed), Edges(SIX, NONE)
    constraints = [*CASES.values()][: len(sentences)]
    options = DecodingOptions(beam=beam, max_length_ratio=0, max_length_extra=8)
    results = search(model, source_batch(sentences), options, constraints=Constraints(constraints, edges))
    for phrases, hypotheses in zip(constraints, results, strict=True):
        assert satisfies(hypotheses[0].tokens, phrases, edges)


@pytest.mark.parametrize(("beam", "nbest", "alpha"), [(2, 1, 1.0), (3, 2, 0.0), (5, 3, 1.0), (8, 2, 2.0)])
def test_sentences_without_constraints_get_the_ordinary_results(
    beam, nbest, alpha, table_model, source_batch, sentences
):
    options = DecodingOptions(beam=beam, nbest=nbest, length_penalty=alpha, max_length_ratio=1, max_length_extra=6)
    for seed in range(4):
        model, source = table_model(seed), source_batch(sentences)
        constraints = Constraints([[phrase(6, 4), phrase(5)], *[[]] * (len(sentences) - 1)], Edges(SIX, SIX))
        results = search(model, source, options, constraints=constraints)
        assert results[1:] == search(model, source, options)[1:]


def test_constraints_that_do_not_fit_are_dropped(table_model, source_batch, sentences):
    options = DecodingOptions(beam=5, nbest=2, max_length_ratio=0, max_length_extra=2)
    constraints = Constraints([[phrase(4, 5, 6)], *[[phrase(5)]] * (len(sentences) - 1)], Edges(NONE, NONE))
    results = search(table_model(0), source_batch(sentences), options, constraints=constraints)
    assert len(results[0][0].tokens) == 2
    assert all(5 in h.tokens for hypotheses in results[1:] for h in hypotheses)


def test_rules_go_before_constraints(table_model, source_batch):
    options = DecodingOptions(beam=5, max_length_ratio=0, max_length_extra=6, no_repeat_ngram=1)
    constraints = Constraints([[phrase(4, 4)]], Edges(NONE, NONE))
    ((best,),) = search(table_model(0), source_batch([[4, EOS]]), options, constraints=constraints)
    assert len(set(best.tokens)) == len(best.tokens)


def test_each_sentence_of_many_batches_gets_its_own(table_model, sentences, monkeypatch):
    model = table_model(2)
    phrases = [[phrase(a, b)] for a, b in itertools.islice(itertools.product((4, 5, 6), repeat=2), len(sentences))]
    options = DecodingOptions(beam=4, max_length_extra=8)
    monkeypatch.setattr("translucid.decoding.search.BATCH", 12)
    results = TorchEngine(model).decode(
        SearchRequest(sentences, options), constraints=Constraints(phrases, Edges(NONE, NONE))
    )
    for (constraint,), hypotheses in zip(phrases, results, strict=True):
        assert count(constraint, hypotheses[0].tokens, Edges(NONE, NONE))


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


def test_beam_slots_are_assigned_in_turn():
    bank = torch.tensor([[0, 0, 0, 2, 1, 2], [0, 0, 0, 0, 0, 0]])
    valid = torch.tensor([[True] * 6, [True, True, True, True, False, True]])
    assert by_turns(bank, valid, 4).tolist() == [[3, 4, 0, 5, 1, 2], [0, 1, 2, 3, 5, 4]]


def priced(model, source, tokens, form):
    """Score an output by definition, if `form`, the only form of a phrase, may replace the tokens of `instead`."""
    score, is_satisfied = 0.0, False
    for t, token in enumerate([*tokens, EOS]):
        step = model.log_probs(source, tokens[:t])
        matched = next((n for n in range(len(form.pieces) - 1, 0, -1) if tuple(tokens[:t][-n:]) == form.pieces[:n]), 0)
        token_score = step[token]
        if not is_satisfied and token == form.pieces[matched]:
            token_score = max(token_score, 0.0 if matched else max(step[alternative] for alternative in form.instead))
            is_satisfied = matched + 1 == len(form.pieces)
        elif not is_satisfied and not matched and token in form.instead:
            token_score = min(token_score, step[form.pieces[0]])
        score += token_score
    return score


@pytest.mark.parametrize("form", [Form((5, 4), instead=(6,)), Form((5,), instead=(4, 6)), Form((4, 4), instead=(5,))])
@pytest.mark.parametrize("seed", range(3))
def test_the_score_of_a_phrase_is_adjusted_by_what_it_replaces(
    seed, form, table_model, brute_force, source_batch, sentences
):
    model = table_model(seed)
    options = DecodingOptions(beam=400, length_penalty=0, max_length_ratio=0, max_length_extra=4)
    constraints = Constraints([[RequiredPhrase((form,))]] * len(sentences), Edges(NONE, NONE))
    results = search(model, source_batch(sentences), options, constraints=constraints)
    for sentence, (best,) in zip(sentences, results, strict=True):
        candidates = [
            output
            for output in brute_force(model, sentence, options)
            if count(RequiredPhrase((form,)), output.tokens, Edges(NONE, NONE))
        ]
        cheapest = max(candidates, key=lambda output: priced(model, sentence, output.tokens, form))
        assert best.tokens == cheapest.tokens
        assert best.log_probability == pytest.approx(cheapest.log_probability, abs=1e-4)  # without adjustment
        assert best.score == pytest.approx(cheapest.score, abs=1e-4)


def test_the_more_probable_form_is_chosen(table_model, source_batch, sentences):
    """Both forms may replace the same token; the more probable one is chosen."""
    model = table_model(0)
    model.logits[..., 6] += 4.0  # the model's own choice
    model.logits[..., 4] += 2.0
    model.logits[..., 5] -= 2.0
    options = DecodingOptions(beam=5, max_length_ratio=0, max_length_extra=5)
    constraint = RequiredPhrase((Form((5,), instead=(6,)), Form((4,), instead=(6,))))
    results = search(
        model, source_batch(sentences), options, constraints=Constraints([[constraint]] * 6, Edges(NONE, NONE))
    )
    assert all(4 in best.tokens and 5 not in best.tokens for (best,) in results)


def test_a_word_that_has_come_instead_of_another_does_not_go_on(table_model, source_batch, sentences):
    model, edges = table_model(3), Edges(SIX, NONE)
    constraint = RequiredPhrase((Form((5,), instead=(4,)),))
    options = DecodingOptions(beam=400, max_length_ratio=0, max_length_extra=4)
    for (best,) in search(model, source_batch(sentences), options, constraints=Constraints([[constraint]] * 6, edges)):
        first = best.tokens.index(5)
        assert best.tokens[first + 1 : first + 2] != [6]
