"""Results of language models and classifiers, built from given parts: no model runs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from translucid.data.stores.store import Size
from translucid.decoding.hypothesis import Hypothesis
from translucid.language import text_classifier
from translucid.language.generator import Continuation, Generated, Piece, TextScore
from translucid.language.text_classifier import Classified, TextClassifier

WRITTEN = [Piece("▁a", math.log(0.5)), Piece("<b", math.log(0.25)), Piece("</s>", math.log(0.125))]


class RecordingGenerator:
    """Records the arguments that it is called with."""

    def considered(self, tokens, first, count):
        self.arguments = tokens, first, count
        return ["step"] * 10


def generated(written, ended, backwards=False):
    hypothesis = Hypothesis([7, 8, 9, 10], -5.0, -2.5)
    best = Continuation("It is a<b", written, ended, hypothesis)
    second = Continuation("It is", [], False, Hypothesis([7], -6.0, -3.0))
    return Generated("It <is>", [best, second], RecordingGenerator(), backwards)


def test_a_text_is_shown_with_the_probability_of_each_piece():
    pieces = ['<b title="50%"> a</b>', '<b title="25%">&lt;b</b>']
    for written, ended in ((WRITTEN, True), (WRITTEN[:2], False)):
        assert generated(written, ended)._repr_html_() == f"<p>It &lt;is&gt;{''.join(pieces)}</p>"
        backwards = generated(written, ended, backwards=True)._repr_html_()
        assert backwards == f"<p>{''.join(pieces[::-1])} It &lt;is&gt;</p>"


def test_the_considered_pieces_are_those_after_the_prompt():
    for written, ended in ((WRITTEN, True), (WRITTEN[:2], False)):
        result = generated(written, ended)
        assert result.considered(4) == ["step"] * len(written)
        assert result._generator.arguments == ([7, 8, 9, 10], 2, 4)


def test_the_best_continuation_is_the_text():
    result = generated(WRITTEN, ended=True)
    assert (result.text, result.score, result.alternatives) == ("It is a<b", -2.5, ["It is a<b", "It is"])
    assert result.nbest[0].log_probability == pytest.approx(math.log(1 / 64))
    assert TextScore(3.5, 1, 2, Size(1, 1, 1)).log_probability == -3.5


class Member:
    """A classifier whose probability of the first label is proportional to the number in the text."""

    model = SimpleNamespace(options=SimpleNamespace(labels=["yes", "no"]))

    def __init__(self, factor):
        self.factor = factor

    def probabilities(self, texts, on_batch=None):
        if on_batch:
            on_batch(len(texts))
        yes = np.array([self.factor * int(text) / 10 for text in texts])
        return np.stack([yes, 1 - yes], 1)


def test_the_probabilities_of_several_classifiers_are_averaged_and_texts_counted_once(monkeypatch):
    monkeypatch.setattr(text_classifier, "WINDOW", 2)
    counts = []
    results = list(TextClassifier([Member(1), Member(0.5)]).stream(["8", "4", "2"], counts.append))
    assert [(result.text, result.label) for result in results] == [("8", "yes"), ("4", "no"), ("2", "no")]
    assert [result.probabilities["yes"] for result in results] == pytest.approx([0.6, 0.3, 0.15])
    assert counts == [2, 1]
    result = TextClassifier([Member(1)]).classify("4")
    assert result == Classified("4", {"yes": 0.4, "no": 0.6}) and result.probability == 0.6
    with pytest.raises(TypeError, match="one text is classified, not list"):
        TextClassifier([Member(1)]).classify(["4"])
