"""Scores of heads against the queries and keys of the model."""

import pytest
import torch
from torch.testing import assert_close

from tests.circuits.models import PREFIX, SHAPES, SOURCE, parts_of, random_transcoders, transformer
from translucid import Translator
from translucid.attention.points import recording
from translucid.circuits.scores import head_score, split_score
from translucid.ground.errors import UserError


@pytest.mark.parametrize("shape", ["pre-norm", "post-norm", "ssru"])
@pytest.mark.parametrize("attention", ["encoder.1.self", "decoder.1.cross", "decoder.1.self"])
def test_pairs_sum_to_the_score(shape, attention):
    if (shape, attention) == ("ssru", "decoder.1.self"):
        return  # an SSRU has no scores
    model = transformer(**SHAPES[shape])
    parts = parts_of(model, random_transcoders(model))
    pairs = split_score(parts, attention, 2, 3, 1)
    names = [f"{attention}.queries", f"{attention}.keys"]
    with torch.no_grad(), recording(model, names) as record:
        model(SOURCE, PREFIX)
    query, key = record[names[0]][0, 2, 3], record[names[1]][0, 2, 1]
    assert pairs.shape == (len(parts) + 1, len(parts) + 1)
    assert_close(pairs.sum().item(), (query @ key / len(key) ** 0.5).item(), rtol=0, atol=1e-6)


def test_parts_of_later_positions_are_not_in_a_key():
    model = transformer()
    parts = parts_of(model, random_transcoders(model))
    pairs = split_score(parts, "decoder.1.self", 0, 2, 1)
    later = [row for row, node in enumerate(parts.nodes) if node.side == "decoder" and node.position > 1]
    assert later
    assert not pairs[:, later].any()


def test_a_head_of_a_translation(run, dictionary):
    translator = Translator.load(run, "cpu", "torch")
    text, target = "I like soccer.", "Me gusta el fútbol."
    result = head_score(
        translator, dictionary.transcoders, text, "decoder.0.cross.head.1", "gusta", "like", target=target
    )
    assert (result.query, result.key) == ("gusta", "like")
    total = sum(pair.score for pair in result.pairs) + result.others
    assert_close(total, result.score)
    for head, query, key, message in (
        ("decoder.0.cross.head.7", "gusta", "like", "no head"),
        ("decoder.0.cross.head.0", "gusto", "like", "lacks the word"),
        ("decoder.0.self.head.0", "gusta", "el", "not before"),
    ):
        with pytest.raises(UserError, match=message):
            head_score(translator, dictionary.transcoders, text, head, query, key, target=target)
    translator.model.options = translator.model.options.model_copy(update={"source_end": False})
    with pytest.raises(UserError, match="does not read '</s>'"):
        head_score(translator, dictionary.transcoders, text, "decoder.0.cross.head.0", "gusta", "</s>", target=target)
