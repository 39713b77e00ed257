"""The viewer's record of a beam search: its tree and its finished texts."""

import pytest

from bitext.pair import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.trace import BeamTrace, Node
from translucid.inspection.rendering.html import beam_record


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn([Pair("the dog sings", "el perro canta")] * 20, TokenizerOptions(vocabulary=40), seed=1)


def test_a_text_that_is_reached_in_two_ways_is_one_row(tokenizer):
    """Of several segmentations of the same text, the best one is shown, unless the search chose another."""
    two_words = tokenizer.encode_target(["el perro"])[0]
    letters = [tokenizer.target_vocabulary.index(letter) for letter in "▁el"]
    assert tokenizer.decode(letters) == "el"
    first = tokenizer.encode_target(["el"])[0]
    nodes = [Node(-1, 2, 0.0, "kept")]

    def finish(ids, log_prob):
        parent = 0
        for token in [*ids, 3]:
            nodes.append(Node(parent, token, log_prob, "ended" if token == 3 else "kept"))
            parent = len(nodes) - 1
        return parent

    chosen, second = finish(first, -1.0), finish(letters, -0.5)
    longer = finish(two_words, -3.0)
    trace = BeamTrace()
    trace.nodes, trace.best = nodes, chosen
    rows = beam_record(trace, 3, tokenizer, 0.0)["finished"]
    assert [(row["text"], row["node"]) for row in rows] == [("el", chosen), ("el perro", longer)]
    trace.best = longer
    rows = beam_record(trace, 3, tokenizer, 0.0)["finished"]
    assert [(row["text"], row["node"]) for row in rows] == [("el", second), ("el perro", longer)]
