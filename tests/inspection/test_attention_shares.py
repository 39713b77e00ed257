"""Where heads look besides words, against loops in NumPy over the pieces; and maps of the content only."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.inspection.inspected import SIDES, Inspected, attention_shares, viewer_record
from translucid.inspection.words import content_pieces

SOURCE = ["▁old", SEPARATOR, "<2es>", "▁", "a", ",", "▁3", "?", "</s>"]
"""A previous sentence, its separator and the language token; `,` and `?` are punctuation that words carry."""
CONTENT = [1, 0, 0, 1, 1, 0, 1, 0, 0]
TARGET = ["<2es>", "▁x", "▁¿", "y", "?", "</s>"]


def weights(*shape, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


@pytest.fixture
def inspected():
    causal = weights(2, 6, 6, seed=3).tril()
    maps = {
        "encoder.0.self": weights(2, 9, 9, seed=1),
        "decoder.0.cross": weights(2, 6, 9, seed=2),
        "decoder.0.self": causal / causal.sum(-1, keepdim=True),
    }
    return Inspected(SOURCE, TARGET, maps, [-1.0] * 6, opening=(1, 1), context=2)


def looped(rows, first, keys, is_self):
    """Return the means over queries, added weight by weight."""
    sums = dict.fromkeys(("ends", "punctuation", "language", "itself", "entropy"), 0.0)
    for position, row in enumerate(rows[first:], first):
        for key, weight in enumerate(row):
            sums["ends"] += weight * (keys[key] in ("<s>", "</s>"))
            sums["language"] += weight * (keys[key] in ("<2es>", SEPARATOR))
            sums["punctuation"] += weight * (keys[key] in (",", "?", "▁¿"))
            sums["itself"] += weight * (is_self and key == position)
            sums["entropy"] -= weight * np.log(weight) if weight else 0.0
    return {name: total / (len(rows) - first) for name, total in sums.items()}


def test_shares_are_those_of_a_loop(inspected):
    shares = attention_shares([inspected, inspected])
    fed = ["<s>", *TARGET[:-1]]
    for attention, keys, first in (
        ("encoder.0.self", SOURCE, 0),
        ("decoder.0.cross", SOURCE, 1),
        ("decoder.0.self", fed, 1),
    ):
        is_self = attention.endswith("self")
        for head in range(2):
            expected = looped(inspected.maps[attention][head].double().numpy(), first, keys, is_self)
            assert shares[f"{attention}.head.{head}"]._asdict() == pytest.approx(expected)
    causal = np.tril(np.ones((6, 6)))
    uniform = looped(causal / causal.sum(1, keepdims=True), 1, fed, True)
    assert shares["decoder.self"]._asdict() == pytest.approx(uniform)
    assert shares["encoder.self"].itself == pytest.approx(1 / 9) and shares["encoder.self"].ends == pytest.approx(1 / 9)
    assert len(shares) == 6 + 3


def test_the_content_of_the_source_has_all_of_the_weight(inspected):
    assert content_pieces(SOURCE, 1, 2) == [bool(has_content) for has_content in CONTENT]
    for layer, head in ((None, None), (0, 1)):
        kept = inspected.cross(layer, head) * torch.tensor(CONTENT)
        assert_close(inspected.cross(layer, head, method="content"), kept / kept.sum(1, keepdim=True))
    words = inspected.cross_words(method="content")
    assert (words.source, words.context) == (["old", "a,", "3?"], 1)
    assert_close(words.weights.sum(1), torch.ones(len(words.target)))
    shifted = inspected.cross(method="content", shift=True)
    assert_close(shifted[:-1], inspected.cross(method="content")[1:])


def test_a_source_without_content_keeps_all_columns():
    maps = {"decoder.0.cross": weights(1, 2, 3, seed=1)}
    inspected = Inspected(["▁!", "?", "</s>"], ["▁!", "</s>"], maps, [-1.0] * 2)
    assert_close(inspected.cross(method="content"), inspected.cross())
    assert inspected.cross_words(method="content").source == ["!?", "</s>"]


def test_the_record_of_the_page_has_content_and_shares_with_all_maps(inspected):
    record = viewer_record(inspected, sides=SIDES)
    words = [record["source"][position] for position in record["content"]]
    assert words == ["old", "a,", "3?"]
    maps = [entry for entry in record["maps"] if entry["kind"] == "content"]
    assert [(entry["layer"], entry["head"]) for entry in maps] == [(None, None), (0, 0), (0, 1)]
    for entry in maps:
        shown = torch.tensor(entry["weights"])[:, record["content"]]
        assert_close(shown, inspected.cross_words(entry["layer"], entry["head"], "content").weights, atol=1e-4, rtol=0)
    assert record["shares"].keys() == attention_shares([inspected]).keys()
    assert "shares" not in viewer_record(inspected)
