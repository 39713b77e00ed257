"""Small parts of a search in full: the search tree, ties, loops, limits and forced scores."""

import math
import random
from types import SimpleNamespace

import pytest
import torch

from translucid.decoding.beam import _likeliest_without_waiting, likeliest
from translucid.decoding.decoding_options import MOST_TOKENS, DecodingOptions, find_loop, length_limit, length_penalty
from translucid.decoding.hypothesis import Hypothesis, percent, total_score
from translucid.decoding.pair_scores import PairScore, all_scored, forced_scores, pair_scores, perplexity, score_pairs
from translucid.decoding.search import _ended, search
from translucid.decoding.trace import BeamTrace, Node
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

SMALL = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
PAIRS = [([4, 5, 3], [9, 3]), ([6, 3], [4, 4, 5, 6, 3]), ([7, 8, 9, 4, 5, 3], [3])]


def test_the_tree_of_a_search_and_its_page():
    trace = BeamTrace()
    trace.begin(2)

    def step(*columns):
        trace.step(*(torch.tensor([column]) for column in columns))

    halves = [math.log(0.5), math.log(0.25), math.log(0.125)]
    step(halves, [0, 0, 0], [5, 6, 7], [False, False, False], [True, True, False])
    step([*halves[1:], -math.inf], [1, 0, 0], [3, 3, 3], [True, True, False], [False, False, False])
    a, b, c = torch.tensor(halves).tolist()
    assert trace.nodes == [
        Node(-1, 2, 0.0, "kept"),
        Node(0, 5, a, "kept"),
        Node(0, 6, b, "kept"),
        Node(0, 7, c, "dropped"),
        Node(2, 3, b, "ended"),
        Node(1, 3, c, "ended"),
    ]
    assert trace.name(5) == "5" and "<b>" not in trace._repr_html_()
    trace.finish([5, 3], lambda tokens: [f"<{token}>" for token in tokens])
    assert (trace.best, trace.path(5), trace.tokens(5), trace.name(5)) == (5, [1, 5], [5, 3], "<5>")
    assert trace._repr_html_() == (
        "<ul>"
        "<li><details open><summary><b>&lt;5&gt; 50%</b></summary>"
        "<ul><li><b>&lt;3&gt; 25%</b> (ended)</li></ul></details></li>"
        "<li><details open><summary>&lt;6&gt; 25%</summary><ul><li>&lt;3&gt; 100% (ended)</li></ul></details></li>"
        "<li>&lt;7&gt; 12% (dropped)</li>"
        "</ul>"
    )


@pytest.mark.parametrize("choose", [likeliest, _likeliest_without_waiting])
def test_the_highest_of_each_row_come_first_and_of_equal_ones_the_lowest_id(choose):
    rng = random.Random(1)
    for _ in range(100):
        rows = [rng.choices([-1.0, -2.0, -3.0, -math.inf], k=7) for _ in range(3)]
        for row in rows:
            row[0] = -1.5
        k = rng.randint(1, 4)
        values, ids = choose(torch.tensor(rows), k)
        for row, row_values, row_ids in zip(rows, values.tolist(), ids.tolist(), strict=True):
            order = sorted(range(7), key=lambda i, row=row: (-row[i], i))[:k]
            assert row_values == [row[i] for i in order]
            possible = [i for i in order if row[i] > -math.inf]  # the ids of impossible tokens do not matter
            assert row_ids[: len(possible)] == possible


@pytest.mark.parametrize(
    ("tokens", "times", "end"),
    [
        ([4, 5, 5, 5, 6], 2, [5, 5, 5]),
        ([4, 5, 5, 6], 2, None),
        ([7, 4, 5, 4, 5, 4, 6], 2, [4, 5, 4, 5, 4]),
        ([7, 4, 5, 4, 5, 6], 2, None),
        ([1, 2, 3, 4, 5, 6] * 2 + [1], 2, [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1]),
        ([1, 2, 3, 4, 5, 6, 7] * 3, 2, None),
    ],
)
def test_the_end_of_a_loop(tokens, times, end):
    assert find_loop(tokens, times, [True] * 8) == end
    assert find_loop(tokens, times, [False] * 8) is None


def test_limits_and_penalties_by_hand():
    options = DecodingOptions(beam=5, max_length_ratio=1.5, max_length_extra=2)
    assert [length_limit(3, options, longest) for longest in (None, 7, 6)] == [6, 6, 5]
    assert length_limit(1 << 20, options, None) == MOST_TOKENS // 5
    sampling = options.model_copy(update={"sample": True, "nbest": 3})
    assert length_limit(1 << 20, sampling, None) == MOST_TOKENS // 3
    assert [length_penalty(7, alpha) for alpha in (0, 1, 2)] == [1, 2, 4]
    assert length_penalty(torch.tensor([1.0, 7.0]), 1.0).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (1.0000002, "100%"),
        (0.5, "50%"),
        (1 - 1e-7, "99.99999%"),
        (0.9999999999, ">99.999999%"),
    ],
)
def test_probabilities_in_percent(probability, text):
    assert percent(probability) == text


def test_scores_of_parts_are_added_if_they_have_one_unit():
    first, second = Hypothesis([4], -1.0, -0.5), Hypothesis([5], -2.0, -0.25)
    assert total_score([first, second]) == (-0.75, "log-probability")
    assert total_score([]) == (0, "log-probability")
    assert total_score([first.scored(3.0, "expected chrF")]) == (3.0, "expected chrF")
    with pytest.raises(ValueError, match="different units are not added: expected chrF, log-probability"):
        total_score([first, second.scored(3.0, "expected chrF")])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return build_model(SMALL, 10, 10).eval()


def test_a_prefix_that_ends_costs_what_the_model_chose(model):
    source, prefix = torch.tensor([[5, 6, 3]]), [7, 8]
    (scored,) = pair_scores(model, [([5, 6, 3], [7, 8, 3])])
    _, second, third = scored.log_probabilities
    assert _ended(model, source, prefix, 0).token_log_probabilities == pytest.approx(scored.log_probabilities, abs=1e-6)
    total = pytest.approx(second + third, abs=1e-6)
    assert _ended(model, source, prefix, 1) == Hypothesis(prefix, total, total, [0.0, *map(approx, (second, third))])


def approx(value):
    return pytest.approx(value, abs=1e-6)


def test_forced_scores_are_the_sums_of_the_scores_of_pairs(model):
    progress, batches = [], []
    scores = pair_scores(model, PAIRS, batch_tokens=6, on_batch=batches.append)
    entropy, correct, tokens = forced_scores(model, PAIRS, "cpu", progress.append)
    assert (entropy, tokens) == (pytest.approx(-sum(score.log_probability for score in scores), abs=1e-5), 8)
    assert batches == [1, 1, 1] and progress == [3]
    ranked_first = 0
    for source, target in PAIRS:
        logits = model(torch.tensor([source]), torch.tensor([[2, *target[:-1]]]))[0]
        ranked_first += int((logits.argmax(-1) == torch.tensor(target)).sum())
    assert correct == ranked_first
    suffix_entropy, _, suffix_tokens = forced_scores(model, PAIRS[:2], "cpu", prefix_length=1)
    assert suffix_tokens == 5
    assert suffix_entropy == pytest.approx(-sum(sum(score.log_probabilities[1:]) for score in scores[:2]), abs=1e-5)


def test_perplexities_by_hand():
    assert perplexity(-4 * math.log(2), 4) == pytest.approx(2)
    assert perplexity(-1e9, 1) == math.exp(700)


class Pipeline:
    """A pipeline that encodes each letter as a token, for a model that takes five tokens."""

    longest, tokenizer = 5, SimpleNamespace(target_opening=())

    def pairs(self, pairs):
        return [Encoded(*pair) for pair in pairs]


class Encoded:
    def __init__(self, source, target):
        self.ids = [*map(int, source.strip()), 3], [*map(int, target), 3]
        self.longest = max(map(len, self.ids))


def test_pairs_without_a_score_have_a_reason_and_are_reported_as_done(model):
    progress = []
    texts = [("45", "9"), (" ", "4"), ("4", "99999"), ("6", "4444")]
    first, blank_reason, length_reason, last = score_pairs(model, Pipeline(), texts, "cpu", progress.append)
    assert (blank_reason, length_reason) == ("there is no source", "6 tokens are more than the model takes (5)")
    expected = pair_scores(model, [([4, 5, 3], [9, 3]), ([6, 3], [4, 4, 4, 4, 3])])
    for score, pair_score in zip((first, last), expected, strict=True):
        assert score.tokens == pair_score.tokens
        assert score.log_probabilities == pytest.approx(pair_score.log_probabilities, abs=1e-6)
    assert progress == [2, 2]
    progress.clear()
    assert len([*score_pairs(model, Pipeline(), texts[:1], "cpu", progress.append)]) == 1 and progress == [1]
    assert all_scored([first, last]) == [first, last]
    with pytest.raises(UserError, match="pair 2: there is no source"):
        all_scored([PairScore([3], [0.0]), blank_reason])


@pytest.mark.parametrize("beam", [1, 3])
def test_a_source_of_an_end_token_has_no_words_and_a_prefix_leaves_room_for_one_more(beam, table_model, source_batch):
    chatty = table_model(0, eos=-20.0)
    options = DecodingOptions(beam=beam, max_length_ratio=3, max_length_extra=2)
    results = search(chatty, source_batch([[3], [4, 3]]), options)
    assert [len(hypotheses[0].tokens) for hypotheses in results] == [2, 5]
    ((best,),) = search(chatty, source_batch([[4, 3]]), options, prefix=[4, 5, 4, 6, 4, 5, 4])
    assert best.tokens[:7] == [4, 5, 4, 6, 4, 5, 4] and len(best.tokens) == 8
