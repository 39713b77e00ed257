"""The hypothesis nearest to the reference, compared with sacreBLEU's sentence chrF."""

import random

from sacrebleu.metrics.chrf import CHRF

from translucid.corpora.phrasebook import generate
from translucid.distillation.training_pairs import nearest


def test_the_nearest_hypothesis_is_that_of_sacrebleu():
    metric, rng = CHRF(), random.Random(3)
    references = [phrase.target for phrase in generate(40, max_words=8)]
    for reference in references:
        words = reference.split()
        hypotheses = [" ".join(rng.sample(words, rng.randint(1, len(words)))) for _ in range(6)]
        hypotheses += rng.sample(references, 2)
        scores = [metric.sentence_score(hypothesis, [reference]).score for hypothesis in hypotheses]
        assert nearest(hypotheses, reference) == hypotheses[scores.index(max(scores))]


def test_of_equal_hypotheses_the_first_is_chosen():
    assert nearest(["a b", "ab", "x"], "zzz") == "a b"
    assert nearest(["b", "a b c", "abc"], "a b c") == "a b c"
