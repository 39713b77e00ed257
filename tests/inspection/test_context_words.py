"""Words of previous sentences in inspected pairs: spans, positions, contributions and language pieces."""

import math

import pytest
import torch

from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.ground.errors import UserError
from translucid.inspection.contributions import Contributions
from translucid.inspection.inspected import (
    Inspected,
    language_readers,
    largest_context_contribution,
    word_contributions,
)
from translucid.inspection.words import BOUNDARY, ids_without, word_spans

LANGUAGE = ">>es<<"
# The start of the first sentence was truncated, so it has no language token.
SOURCE = ["so", "up", SEPARATOR, LANGUAGE, "▁h", "ot", SEPARATOR, LANGUAGE, "▁it", "▁is", "</s>"]
TARGET = ["▁es", "tá", "▁fría", "</s>"]
ENTRIES = ["soup", BOUNDARY, LANGUAGE, "hot", BOUNDARY, LANGUAGE, "it", "is", "</s>"]


def example(source_shares=None):
    """Return a sentence with two sentences before it and random weights."""
    generator = torch.Generator().manual_seed(1)
    count = len(SOURCE), len(TARGET)

    def weights(rows, columns):
        return torch.rand(2, rows, columns, generator=generator).softmax(-1)

    maps = {
        "encoder.0.self": weights(count[0], count[0]),
        "decoder.0.self": weights(count[1], count[1]),
        "decoder.0.cross": weights(count[1], count[0]),
    }
    contributions = None
    if source_shares is not None:
        contributions = Contributions({}, {}, {}, {}, source_shares, torch.zeros(count[1], count[1]))
    log_probs = [-0.1] * count[1]
    return Inspected(SOURCE, TARGET, maps, log_probs, (1, 0), contributions=contributions, context=7)


def test_words_of_the_context_have_their_names_and_places():
    inspected = example()
    assert inspected.context_spans == [("soup", 0, 2), ("hot", 4, 6)]
    assert inspected.source_spans == [("it", 8, 9), ("is", 9, 10), ("</s>", 10, 11)]
    assert inspected.source_words == ["it", "is", "</s>"], "the context is no part of the sentence"
    words = inspected.words()
    assert words.source == ENTRIES and (words.context, words.opening) == (5, 6)
    assert [ENTRIES[position] for position in inspected.word_positions] == ["soup", "hot", "it", "is"]
    weights = inspected.maps["decoder.0.cross"].mean(0)
    assert words.weights[0, 0] == pytest.approx(weights[:2, :2].sum(1).mean())
    assert words.weights[1, 3] == pytest.approx(weights[2, 4:6].sum())
    assert words.weights.sum(1) == pytest.approx(torch.ones(3))
    assert words.between_words.shape == (2, 2), "links are between the words of the sentence and its translation"
    assert inspected.word_map("encoder.0.self").target == ENTRIES


def test_without_a_context_words_are_as_before():
    assert word_spans(SOURCE[7:], 1) == word_spans(SOURCE[7:], 1, 0) == [
        (LANGUAGE, 0, 1), ("it", 1, 2), ("is", 2, 3), ("</s>", 3, 4)
    ]  # fmt: skip


def test_records_keep_the_context(tmp_path):
    example().save(tmp_path / "a.json")
    assert Inspected.load(tmp_path / "a.json").context_spans == example().context_spans


def test_contributions_of_all_words_to_a_word():
    shares = torch.zeros(4, 11)
    shares[0, :] = torch.tensor([0.1, 0.05, 0.3, 0, 0.02, 0.02, 0, 0.2, 0.04, 0.05, 0.01])
    shares[1, 1] = 0.1
    shares[2, 0] = 0.4
    shares[3, 5] = 0.9  # the end token's row
    inspected = example(shares)
    first = word_contributions(inspected, 0)
    assert [(source, target) for source, target, _ in first] == [(word, "está") for word in ("soup", "hot", "it", "is")]
    assert [share for *_, share in first] == pytest.approx([0.125, 0.02, 0.02, 0.025])
    largest = largest_context_contribution(inspected)
    assert (largest.source, largest.target) == ("soup", "fría") and largest.share == pytest.approx(0.4)
    assert str(largest) == "“soup” of a previous sentence contributes 40% to “fría”"
    shares[2] = math.nan
    assert largest_context_contribution(example(shares)) is None, "small and undefined contributions are not named"
    with pytest.raises(ValueError, match="no contributions"):
        word_contributions(example(), 0)


def test_pieces_of_words_that_are_left_out():
    assert ids_without([5, 6, 7, 8, 2], [(0, 2), (3, 4)], [False, True]) == [7, 8, 2]


def test_heads_that_read_the_language_piece():
    inspected = example()
    readers = {reader.head: reader for reader in language_readers(inspected)}
    assert len(readers) == 4, "the decoder's self-attention has no language piece"
    encoder, cross = inspected.maps["encoder.0.self"], inspected.maps["decoder.0.cross"]
    for head in (0, 1):
        assert readers[f"encoder.0.self.head.{head}"].weight == pytest.approx(encoder[head, 8:, 7].mean().item())
        assert readers[f"decoder.0.cross.head.{head}"].weight == pytest.approx(cross[head, :, 7].mean().item())
    weights = [reader.weight for reader in language_readers(inspected)]
    assert weights == sorted(weights, reverse=True)
    assert {reader.piece for reader in readers.values()} == {LANGUAGE}


def test_a_language_piece_before_the_target_is_read_by_the_decoder():
    target = ["__es__", "▁está", "</s>"]
    maps = {"decoder.0.self": torch.tensor([[[1.0, 0, 0], [0.3, 0.7, 0], [0.2, 0.5, 0.3]]])}
    inspected = Inspected(["__en__", "▁is", "</s>"], target, maps, [-0.1] * 3, (1, 1))
    ((head, piece, weight),) = language_readers(inspected)
    assert (head, piece) == ("decoder.0.self.head.0", "__es__")
    assert weight == pytest.approx(0.6)


def test_a_model_of_two_languages_has_no_language_piece():
    inspected = Inspected(["▁a", "</s>"], ["▁b", "</s>"], {}, [-0.1] * 2)
    with pytest.raises(UserError, match="has no language piece"):
        language_readers(inspected)
