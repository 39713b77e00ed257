"""Each decoding rule forbids exactly the tokens that it should, and changes the result of a search."""

from random import Random

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions, find_loop
from translucid.decoding.problem import After, MinLength, Never, NoLoops, NoRepeatNgram, Prefix, rules_for
from translucid.decoding.search import search

EOS = 3


def forbidden(rule, history, vocabulary=10):
    """Return the ids that a rule forbids after each history."""
    log_probs = torch.zeros(len(history), vocabulary)
    rule(torch.tensor(history), log_probs)
    assert log_probs[log_probs != 0].eq(-torch.inf).all()
    return [row.nonzero()[:, 0].tolist() for row in log_probs != 0]


def test_never_forbids_its_tokens():
    assert forbidden(Never(torch.tensor([0, 2])), [[5], [6]]) == [[0, 2], [0, 2]]


def test_min_length():
    assert forbidden(MinLength(2, EOS), [[5], [6]]) == [[EOS], [EOS]]
    assert forbidden(MinLength(2, EOS), [[5, 5], [6, 5]]) == [[], []]


def test_no_repeat_ngram():
    history = [[5, 6, 7, 5, 6], [5, 6, 5, 7, 6], [5, 6, 7, 8, 9]]
    assert forbidden(NoRepeatNgram(1), history) == [[5, 6, 7], [5, 6, 7], [5, 6, 7, 8, 9]]
    assert forbidden(NoRepeatNgram(2), history) == [[7], [5], []]
    assert forbidden(NoRepeatNgram(3), history) == [[7], [], []]
    assert forbidden(NoRepeatNgram(6), history) == [[], [], []]


WORD_STARTS = torch.tensor([True] * 8 + [False] * 2)  # 8 and 9 stand for digits within a number


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([4, 5, 5, 5], [5]),
        ([4, 4, 5, 5], []),
        ([5, 6, 5, 6, 5, 6], [5]),
        ([7, 6, 5, 6, 5, 6], []),
        ([4, 8, 8, 8], []),  # 1000: no word begins
        ([8, 9, 8, 9, 8, 9], []),
        ([5, 8, 5, 8, 5, 8], [5]),
        ([4, 5, 6, 7, 8, 9] * 3, [4]),
        ([4, 5, 6, 7, 7, 8, 9] * 3, []),  # a run of seven is too long to be noticed
    ],
)
def test_no_loops_of_three(history, expected):
    assert forbidden(NoLoops(3, WORD_STARTS), [history]) == [expected]


def test_no_loops_looks_at_each_row_for_itself():
    assert forbidden(NoLoops(2, WORD_STARTS), [[4, 5, 5], [5, 4, 5], [6, 6, 6]]) == [[5], [], [6]]


@pytest.mark.parametrize("times", [1, 3])
def test_a_loop_is_found_in_a_whole_output_exactly_where_the_rule_forbids_one_of_its_tokens(times):
    random = Random(times)
    loops = 0
    for _ in range(1000):
        tokens = random.choices([4, 5, 6], k=random.randrange(2, 16))
        has_loop = any(
            tokens[i] in forbidden(NoLoops(times, WORD_STARTS), [tokens[:i]])[0] for i in range(1, len(tokens))
        )
        assert (find_loop(tokens, times, WORD_STARTS) is not None) == has_loop, tokens
        loops += has_loop
    assert 100 < loops < 1000


def repetitive(table_model):
    """Return a model that repeats 4, ends late, and repeats 6 after 5."""
    model = table_model()
    model.logits[:] = 0.0
    model.logits[..., 4] = 3.0
    model.logits[..., EOS] = -9.0
    model.logits[:, :, 5:, 6] = 6.0
    return model


def windows(tokens, n):
    return [tokens[i : i + n] for i in range(len(tokens) - n + 1)]


@pytest.mark.parametrize("beam", [1, 3])
def test_loops_are_cut_in_a_search_but_digits_are_not(beam, table_model, source_batch):
    model, source = repetitive(table_model), source_batch([[4, 5, EOS]])
    starts = torch.tensor([True] * 6 + [False])  # 6 is a digit
    unlimited = DecodingOptions(beam=beam, max_loops=0, max_length_ratio=4, max_length_extra=2)
    limited = unlimited.model_copy(update={"max_loops": 3})
    assert search(model, source, unlimited, starts)[0][0].tokens == [4] * 10
    assert search(model, source, limited)[0][0].tokens == [4] * 10  # loops can't be detected without word_starts
    tokens = search(model, source, limited, starts)[0][0].tokens
    assert tokens and [4, 4, 4, 4] not in windows(tokens, 4)
    model.logits[:, 0, 2, 5] = 9.0  # makes 5 the first token
    assert search(model, source, limited, starts)[0][0].tokens == [5] + [6] * 9


@pytest.mark.parametrize("beam", [1, 3])
def test_no_repeat_ngram_in_a_search(beam, table_model, source_batch):
    model, source = repetitive(table_model), source_batch([[4, 5, EOS]])
    options = DecodingOptions(beam=beam, nbest=beam, no_repeat_ngram=2, max_length_ratio=4, max_length_extra=2)
    for hypothesis in search(model, source, options)[0]:
        pairs = windows(hypothesis.tokens, 2)
        assert pairs and all(pairs.count(pair) == 1 for pair in pairs)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("beam", [1, 4])
def test_lengths_stay_between_min_and_max(sample, beam, table_model, source_batch, sentences):
    eager, chatty = table_model(0, eos=20.0), table_model(0, eos=-20.0)
    source = source_batch(sentences)
    options = {"beam": beam, "sample": sample}
    for minimum in (0, 1, 3):
        results = search(eager, source, DecodingOptions(min_length=minimum, **options))
        assert {len(h[0].tokens) for h in results} == {minimum}
    results = search(chatty, source, DecodingOptions(max_length_ratio=1.5, max_length_extra=2, **options))
    assert [len(h[0].tokens) for h in results] == [3, 5, 3, 6, 6, 5]  # floor(1.5 * words) + 2
    chatty.max_length = 5  # the start token and four more
    results = search(chatty, source, DecodingOptions(max_length_ratio=1.5, max_length_extra=2, **options))
    assert [len(h[0].tokens) for h in results] == [3, 4, 3, 4, 4, 4]


def test_the_limit_counts_more_than_the_minimum(table_model, source_batch):
    options = DecodingOptions(min_length=9, max_length_ratio=0, max_length_extra=2)
    assert len(search(table_model(), source_batch([[4, EOS]]), options)[0][0].tokens) == 2


@pytest.mark.parametrize("beam", [1, 4])
def test_an_output_ends_if_every_token_is_forbidden(beam, table_model, source_batch):
    options = DecodingOptions(beam=beam, no_repeat_ngram=1, min_length=10)
    tokens = search(table_model(), source_batch([[4, EOS]]), options)[0][0].tokens
    assert sorted(tokens) == [4, 5, 6]


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 5, "nbest": 5}, {"sample": True, "nbest": 20}])
def test_padding_start_and_unknown_are_never_produced(options, table_model, source_batch, sentences):
    model = table_model()
    model.logits[..., :3] = 8.0
    for hypotheses in search(model, source_batch(sentences), DecodingOptions(**options)):
        for hypothesis in hypotheses:
            assert set(hypothesis.tokens) <= {4, 5, 6}


def test_a_prefix_comes_first_and_other_rules_apply_behind_it():
    prefix = Prefix([5, 6], prefix_length=1)
    log_probs = torch.full((1, 8), -2.0)
    prefix(torch.empty(1, 0, dtype=torch.long), log_probs)
    assert log_probs.tolist() == [[-torch.inf] * 5 + [0.0] + [-torch.inf] * 2]
    log_probs = torch.full((1, 8), -2.0)
    prefix(torch.tensor([[5]]), log_probs)
    assert log_probs.tolist() == [[-torch.inf] * 6 + [-2.0, -torch.inf]]
    assert forbidden(prefix, [[5, 6]]) == [[]]
    delayed = After(2, Never(torch.tensor([4])))
    assert [forbidden(delayed, history) for history in ([[5]], [[5, 5]], [[5, 5, 5]])] == [[[]], [[4]], [[4]]]


def test_the_rules_of_some_options():
    def rules(prefix=(), prefix_length=0, **options):
        active_rules = rules_for(
            DecodingOptions(**options), [2, 0], EOS, WORD_STARTS, torch.device("cpu"), prefix, prefix_length
        )
        return [(type(rule).__name__, rule) for rule in active_rules]

    named = rules(min_length=3, no_repeat_ngram=2, max_loops=4, prefix_length=1)
    assert [name for name, _ in named] == ["Never", "MinLength", "NoRepeatNgram", "NoLoops"]
    assert named[1:3] == [("MinLength", MinLength(4, EOS)), ("NoRepeatNgram", NoRepeatNgram(2))]
    assert named[3][1].times == 4
    assert [name for name, _ in rules(min_length=0, max_loops=0)] == ["Never"]
    (first, *others) = rules([5, 6], 1, min_length=1, max_loops=0)
    assert first == ("Prefix", Prefix([5, 6], 1))
    assert [(name, rule.length, type(rule.rule).__name__) for name, rule in others] == [
        ("After", 2, "Never"),
        ("After", 2, "MinLength"),
    ]
