"""Texts with labels as token ids."""

import numpy as np
import pytest

from bitext.pair import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.language.labels import LabeledTexts
from translucid.language.text_classifier import text_ids

TEXTS = [Pair("good and very good", "pos"), Pair("bad", "neg"), Pair("", "pos"), Pair("good", "pos")]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn([Pair("", text.source) for text in TEXTS], TokenizerOptions(vocabulary=18), seed=1)


def test_texts_lie_between_start_and_end_with_the_place_of_their_label(tokenizer):
    first, bad, _, good = tokenizer.encode_target([text.source for text in TEXTS])
    texts = LabeledTexts.encode(TEXTS, ["neg", "pos"], tokenizer, max_tokens=99)
    assert len(texts) == 4
    assert texts.ids.tolist() == [2, *first, 3, 2, *bad, 3, 2, 3, 2, *good, 3]
    assert (texts.ids.dtype, texts.offsets.dtype, texts.labels.dtype) == (np.int32, np.int64, np.int64)
    rows = np.array([3, 1, 2])
    lengths, ones = texts.lengths_of(rows)
    assert (lengths.tolist(), ones.tolist()) == ([len(good) + 2, len(bad) + 2, 2], [1, 1, 1])
    assert texts.target_tokens(rows) == 3
    batch = texts.batch(rows)
    longest = max(len(good), len(bad)) + 2
    expected = [[2, *good, 3], [2, *bad, 3], [2, 3]]
    assert batch.source.tolist() == [row + [0] * (longest - len(row)) for row in expected]
    assert batch.labels.tolist() == [[1], [0], [1]] and batch.targets_in.shape == (3, 0)


def test_a_long_text_keeps_its_end(tokenizer):
    text = TEXTS[0].source
    (ids,) = tokenizer.encode_target([text])
    size = len(ids)
    assert text_ids([text], tokenizer, max_tokens=size + 2) == [[2, *ids, 3]]
    assert text_ids([text], tokenizer, max_tokens=size + 1) == [[2, *ids[1:], 3]]
    assert text_ids([text], tokenizer, max_tokens=4, backwards=True) == [[2, ids[-1], ids[-2], 3]]
    backwards = LabeledTexts.encode(TEXTS[:1], ["pos"], tokenizer, max_tokens=99, backwards=True)
    assert backwards.ids.tolist() == [2, *ids[::-1], 3]
