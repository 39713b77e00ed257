"""chrF of all pairs equals sacreBLEU's sentence chrF of each pair."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from translucid.evaluation.metrics import pairwise_chrf

TEXTS = ["Me gusta el fútbol.", "me gusta", "", "  a ", "ab", "aaaaaaaa aaa", "aaaa", "El fútbol me gusta.", "日本語"]


def by_sacrebleu(texts):
    chrf = CHRF()
    scores = [chrf.sentence_score(hypothesis, [reference]).score for hypothesis, reference in product(texts, texts)]
    return np.reshape(scores, (len(texts), len(texts)))


def test_scores_equal_sacrebleus():
    assert pairwise_chrf(TEXTS) == pytest.approx(by_sacrebleu(TEXTS), abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet="ab c", max_size=14), min_size=1, max_size=4))
def test_scores_of_any_texts_equal_sacrebleus(texts):
    assert pairwise_chrf(texts) == pytest.approx(by_sacrebleu(texts), abs=1e-4)
