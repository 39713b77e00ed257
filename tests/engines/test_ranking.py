"""Reranking: the noisy channel and minimum Bayes risk, checked by hand."""

import numpy as np
import pytest
import torch
from sacrebleu.metrics.chrf import CHRF

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.search import TorchEngine
from translucid.engines.minimum_risk import MinimumRisk, weights
from translucid.engines.noisy_channel import UNREAD, ChannelWeights, NoisyChannel
from translucid.engines.stages import SearchStages
from translucid.engines.term_constraint import TermConstraint
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import resolve
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import TermList

PAIRS = [Pair(p.source, p.target) for p in generate(300, max_words=8)]


def untrained(swapped):
    """Return the tokenizer and the model of an untrained translator."""
    options = resolve(overrides={"data.tokenizer.vocabulary": 200 - 20 * swapped}).data.tokenizer
    pairs = [p.swapped for p in PAIRS] if swapped else PAIRS
    tokenizer = Tokenizer.learn(pairs, options, seed=1)
    shape = TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)
    torch.manual_seed(swapped)
    return tokenizer, build_model(shape, tokenizer.source_size, tokenizer.target_size).eval()


@pytest.fixture(scope="module")
def forward():
    return untrained(False)


@pytest.fixture(scope="module")
def channel(forward):
    tokenizer, model = untrained(True)
    reverse = TextPipeline(tokenizer, 60)
    return NoisyChannel(TextPipeline(forward[0], 60), model, reverse, torch.device("cpu"), ChannelWeights(0.7, 0.3))


def test_the_score_is_the_sum_of_its_three_parts(forward, channel):
    tokenizer, model = forward
    engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    sources = ["I like soccer.", "She works."]
    pieces = list(map(channel.pipeline.encode, sources))
    options = DecodingOptions(beam=4, nbest=2, max_length_ratio=1, max_length_extra=5)
    results = SearchStages(channel.pipeline, engine, ranking=channel).decode(SearchRequest(pieces, options))
    candidates = engine.decode(SearchRequest([piece.ids for piece in pieces], options.model_copy(update={"nbest": 4})))
    for source, nbest, hypotheses in zip(sources, results, candidates, strict=True):
        scores = {}
        for hypothesis in hypotheses:
            (reverse_source,), (reverse_target,) = (
                channel.reverse.tokenizer.encode_source([tokenizer.decode(hypothesis.tokens)]),
                channel.reverse.tokenizer.encode_target([source]),
            )
            logits = channel.model(torch.tensor([[*reverse_source, 3]]), torch.tensor([[2, *reverse_target]]))[
                0
            ].double()
            reverse = sum(logits.log_softmax(-1)[t, token].item() for t, token in enumerate([*reverse_target, 3]))
            scores[tuple(hypothesis.tokens)] = (
                hypothesis.log_probability + 0.7 * reverse + 0.3 * (len(hypothesis.tokens) + 1)
            )
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
        assert [tuple(hypothesis.tokens) for hypothesis in nbest] == best
        assert [hypothesis.score for hypothesis in nbest] == pytest.approx([scores[key] for key in best], abs=1e-3)


def test_texts_that_the_other_model_can_not_read_come_last(forward, channel):
    short, long = (forward[0].encode_target([text])[0] for text in ("Canto.", "Canto. " * 60))
    hypotheses = [Hypothesis(long, -1.0, -0.1), Hypothesis(short, -50.0, -9.0)]
    source = channel.pipeline.encode("I sing.")
    ((first, last),) = channel([source], [hypotheses], DecodingOptions(beam=2, nbest=2))
    assert first.tokens == short
    assert last.score < 0.5 * UNREAD


class ReversedRanking:
    """A ranking that reverses n-best lists."""

    needs_beam = False

    def widened(self, options):
        return options

    def __call__(self, pieces, nbest_lists, options):
        return [nbest[::-1] for nbest in nbest_lists]


class FixedEngine:
    """An engine that returns the same n-best list for each sentence."""

    def __init__(self, *nbest):
        self.nbest = nbest

    def decode(self, request):
        return [[*self.nbest] for _ in request.sentences]


def test_a_ranking_brings_back_no_translation_that_lacks_a_term(forward):
    tokenizer = forward[0]
    has_term, lacks_it = (
        Hypothesis(tokenizer.encode_target([text])[0], score, score)
        for text, score in (("Me gusta el fútbol.", -1.0), ("Me gusta el sol.", -2.0))
    )
    engine, pipeline = FixedEngine(has_term, lacks_it), TextPipeline(tokenizer, 60)
    terms = TermConstraint(lambda: engine, TermList(terms_of([("soccer", "fútbol")])), tokenizer)
    stages = SearchStages(pipeline, engine, (terms,), ReversedRanking())
    pieces = [pipeline.encode(text) for text in ("I like soccer.", "I like the sun.")]
    with_term, without = stages.decode(SearchRequest(pieces, DecodingOptions(beam=2, nbest=2)))
    assert with_term == [has_term]
    assert without == [lacks_it, has_term]


def test_minimum_risk_takes_the_translation_that_is_most_like_the_others(forward):
    tokenizer, pipeline = forward[0], TextPipeline(forward[0], 60)
    texts = ["Trabaja en la playa.", "Ella trabaja en el hospital.", "Trabaja en el hospital.", "Ella canta."]
    log_probs = [-1.0, -1.2, -1.5, -3.0]
    hypotheses = [
        Hypothesis(tokenizer.encode_target([text])[0], p, p) for text, p in zip(texts, log_probs, strict=True)
    ]
    ((best, *rest),) = MinimumRisk(pipeline, 4)([pipeline.encode("x")], [hypotheses], DecodingOptions(beam=4, nbest=4))
    probabilities = np.exp(log_probs) / np.exp(log_probs).sum()
    chrf = CHRF()

    def expected_chrf(text):
        return probabilities @ [chrf.sentence_score(text, [reference]).score for reference in texts]

    expected = list(map(expected_chrf, texts))
    assert tokenizer.decode(best.tokens) == texts[int(np.argmax(expected))] != texts[0]
    assert [hypothesis.score for hypothesis in (best, *rest)] == pytest.approx(sorted(expected, reverse=True), abs=1e-3)


def test_draws_count_by_how_likely_they_were_to_be_among_them():
    assert weights(np.log([0.5, 0.25]), None) == pytest.approx([2 / 3, 1 / 3])
    rare = weights(np.array([-40.0, -60.0]), 8)
    assert rare == pytest.approx([0.5, 0.5])
    p, n = np.array([0.5, 0.1]), 3
    expected = p / (1 - (1 - p) ** n)
    assert weights(np.log(p), n) == pytest.approx(expected / expected.sum())
    assert weights(np.array([0.0]), 4) == pytest.approx([1])


def test_draws_give_an_unbiased_sum():
    """Over many rounds of three samples without duplicates, the weighted sum is the mean over all four outcomes."""
    p, value = np.array([0.6, 0.3, 0.07, 0.03]), np.array([1.0, 5.0, 20.0, -10.0])
    generator = np.random.default_rng(1)
    rounds = [np.unique(generator.choice(4, 3, p=p)) for _ in range(20_000)]
    sums = [(value[sampled] * p[sampled] / -np.expm1(3 * np.log1p(-p[sampled]))).sum() for sampled in rounds]
    assert np.mean(sums) == pytest.approx(p @ value, abs=0.15)
