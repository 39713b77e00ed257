"""Explanations of a toy model that copies, so each target word depends on one source word."""

import numpy as np
import pytest
import torch
from torch import nn

from bitext.pair import Pair
from translucid.attention.points import Point
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.explain import (
    KERNEL,
    METHODS,
    Case,
    _random_subsets,
    compare_with_random,
    explain,
    faithfulness,
    random_faithfulness,
)
from translucid.models.protocol import Memory, SequenceModel

WORDS = ["uno", "dos", "tres", "cuatro", "cinco"]


class Counter(SequenceModel):
    """A model whose logits are 8 times the number of occurrences of the token in the source."""

    def __init__(self, vocabulary):
        super().__init__()
        self.source_embedding = nn.Embedding(vocabulary, vocabulary)
        self.source_embedding.weight.data = torch.eye(vocabulary) * 8
        self.output = nn.Linear(vocabulary, vocabulary)
        self.weights = Point("decoder.0.cross.weights")
        self.output.weight.data, self.output.bias.data = torch.eye(vocabulary), torch.zeros(vocabulary)

    def read(self, embedded, mask):
        return Memory(embedded, mask)

    def features(self, memory, targets_in):
        bag = (memory.states * memory.mask[..., None]).sum(1, keepdim=True)
        weights = torch.zeros(len(targets_in), 1, targets_in.size(1), memory.mask.size(1))
        weights[..., -2] = 1  # attention is always on the last word
        self.weights(weights)
        return bag.expand(-1, targets_in.size(1), -1)

    def start(self, memory):
        raise NotImplementedError

    def advance(self, tokens, state):
        raise NotImplementedError


@pytest.fixture(scope="module")
def case():
    pairs = [Pair(" ".join(WORDS), " ".join(WORDS[::-1]))] * 20
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=40), seed=1)
    model = Counter(tokenizer.target_size).eval()
    return Case(model, TextPipeline(tokenizer, 99), "uno dos tres cuatro", "tres uno cuatro")


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_each_word_depends_on_itself(case, method):
    explanation = explain(case, method)
    assert explanation.importance.shape == (3, 4)
    most_important = [explanation.source[i] for i in explanation.importance.argmax(1).tolist()]
    assert most_important == explanation.target == ["tres", "uno", "cuatro"]


def test_attention_differs_from_the_true_dependence(case):
    explanation = explain(case, "attention")
    assert [explanation.source[i] for i in explanation.importance.argmax(1).tolist()] == ["cuatro"] * 3


def test_faithfulness_distinguishes_erasure_from_attention(case):
    """In a bag of words, a word is likelier alone than among others, and unlikely when it is erased."""
    true, false = (faithfulness(case, explain(case, method)) for method in ("erasure", "attention"))
    assert true.comprehensiveness > 5 > false.comprehensiveness
    assert true.sufficiency < 0 < false.sufficiency


def test_the_random_baseline_is_the_mean_over_random_choices_of_words(case):
    """With four words, the random choices are the four single words, one of which is the best."""
    keep = torch.eye(4, dtype=torch.bool)
    complete = case.log_probs(torch.ones(1, 4, dtype=torch.bool))[0]
    baseline = random_faithfulness(case)
    assert baseline.comprehensiveness == pytest.approx((complete - case.log_probs(~keep)).mean().item(), abs=1e-5)
    assert baseline.sufficiency == pytest.approx((complete - case.log_probs(keep)).mean().item(), abs=1e-5)
    assert compare_with_random(case, explain(case, "erasure"), 2)["random"] == random_faithfulness(case, 2)


def test_of_many_choices_a_few_are_drawn_the_same_ones_each_time():
    subsets = _random_subsets(40, 4, 32, seed=1)
    assert subsets.shape == (32, 40) and set(subsets.sum(1).tolist()) == {4}
    assert len({tuple(row) for row in subsets.tolist()}) == 32
    assert torch.equal(subsets, _random_subsets(40, 4, 32, seed=1))
    assert not torch.equal(subsets, _random_subsets(40, 4, 32, seed=2))


def test_erasure_is_a_difference_of_log_probabilities(case):
    importance = explain(case, "erasure").importance
    complete = case.log_probs(torch.ones(1, 4, dtype=torch.bool))[0]
    without_first = case.log_probs(torch.tensor([[False, True, True, True]]))[0]
    torch.testing.assert_close(importance[:, 0], complete - without_first)


def test_gradients_add_up(case):
    """Completeness: the shares sum to the gain in log-probability from the baseline to the sentence."""
    from translucid.decoding.maps import forced_log_probs
    from translucid.inspection.explain import integrated_gradients

    def log_probs(ids):
        with torch.no_grad():
            return case.by_word(
                forced_log_probs(case.model, case.model.encode(torch.tensor([ids])), torch.tensor([case.target_ids]))
            )[0]

    gain = log_probs(case.source_ids) - log_probs(
        [SPECIAL.unknown] * (len(case.source_ids) - 1) + [case.source_ids[-1]]
    )
    torch.testing.assert_close(integrated_gradients(case, 200).sum(1), gain, rtol=0.02, atol=0.02)


def test_lime_says_how_well_it_fits(case, monkeypatch):
    from sklearn.linear_model import Ridge  # collecting tests is quicker without it
    from sklearn.metrics import r2_score

    samples = []
    probabilities = Case.probabilities
    monkeypatch.setattr(Case, "probabilities", lambda self, keep: samples.append(keep) or probabilities(self, keep))
    fits = explain(case, "lime").fit
    assert max(fits) > 0.3
    (kept,) = [keep for keep in samples if len(keep) > 100]
    rows, expected = kept.double().numpy(), probabilities(case, kept).numpy()
    weights = np.sqrt(np.exp(-((1 - np.sqrt(rows.mean(1))) ** 2) / KERNEL**2))
    for fit, values in zip(fits, expected.T, strict=True):
        model = Ridge(alpha=1.0).fit(rows, values, sample_weight=weights)
        assert fit == pytest.approx(r2_score(values, model.predict(rows), sample_weight=weights), abs=1e-5)


def test_wrong_methods_and_texts_are_named(case):
    with pytest.raises(UserError, match="Did you mean 'erasure'"):
        explain(case, "erasur")
    assert "random" in METHODS
    tokenizer = Tokenizer.learn([Pair("a b", "b a")] * 20, TokenizerOptions(vocabulary=8), seed=1)
    with pytest.raises(UserError, match="no words"):
        Case(Counter(tokenizer.target_size), TextPipeline(tokenizer, 99), "", "a")
