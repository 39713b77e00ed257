"""Running text in rows and windows: every token is predicted once, and the seed decides everything."""

from collections import Counter

import numpy as np
import pytest

from translucid.data.stores.store import EncodedTexts, Size
from translucid.ground.special import SPECIAL
from translucid.language.scores import SPREAD, BidirectionalStream, Stream, empty_source, stream_of


def encoded(*lengths):
    """Return texts of so many tokens, no token twice."""
    ids, token = [], 10
    for length in lengths:
        ids += [SPECIAL.start, *range(token, token + length), SPECIAL.end]
        token += length
    return EncodedTexts(np.array(ids, np.int32), Size(len(lengths), 0, 0))


TEXTS = {
    "one long text": encoded(997),
    "many short ones": encoded(*[3] * 120),
    "some empty": encoded(0, 5, 0, 0, 61, 1),
    "a single token": encoded(1),
    "of awkward lengths": encoded(7, 64, 13, 129, 2, 31),
}
CUTS = [(1, 5), (2, 70), (3, 7), (7, 10), (8, 1), (64, 13), (1000, 70)]


def windows_of(stream, mode):
    return stream.equal_windows() if mode == "equal" else stream.random_windows(*mode)


@pytest.mark.parametrize("mode", ["equal", (1, 0), (1, 1), (9, 4)])
@pytest.mark.parametrize(("rows", "window"), CUTS)
@pytest.mark.parametrize("name", TEXTS)
def test_every_token_is_predicted_once_in_an_epoch(name, rows, window, mode):
    texts = TEXTS[name]
    stream = Stream(texts, rows, window)
    windows = windows_of(stream, mode)
    counts = Counter()
    for number in range(len(windows.ends)):
        labels = stream.batch(windows, number).labels
        assert labels.shape == (stream.rows, windows.lengths[number])
        counts.update(labels[labels != SPECIAL.pad].tolist())
    assert counts == Counter(id for id in texts.ids.tolist() if id != SPECIAL.start)


@pytest.mark.parametrize("mode", ["equal", (3, 2)])
@pytest.mark.parametrize(("rows", "window"), CUTS)
def test_labels_are_the_next_tokens_and_rows_continue(rows, window, mode):
    """The concatenated windows of each row are the text, and each label is the next input."""
    texts = TEXTS["of awkward lengths"]
    stream = Stream(texts, rows, window)
    windows = windows_of(stream, mode)
    batches = [stream.batch(windows, number) for number in range(len(windows.ends))]
    inputs = np.concatenate([batch.targets_in.numpy() for batch in batches], 1)
    labels = np.concatenate([batch.labels.numpy() for batch in batches], 1)
    text = np.roll(texts.ids, -windows.start)
    row_of = np.arange(stream.rows)[:, None] * windows.columns + np.arange(windows.columns)
    inside = row_of < len(text)
    assert np.array_equal(inputs[inside], text[row_of[inside]])
    next_tokens = np.roll(text, -1)
    expected = np.where(next_tokens == SPECIAL.start, SPECIAL.pad, next_tokens)
    assert np.array_equal(labels[inside], expected[row_of[inside]])
    assert not labels[~inside].any()


def test_the_last_row_is_padded_and_the_last_window_shorter():
    stream = Stream(encoded(19), 4, 4)  # 21 tokens: rows of 6, the last one of 3
    windows = stream.equal_windows()
    assert (windows.columns, windows.ends.tolist(), windows.lengths.tolist()) == (6, [4, 6], [4, 2])
    first, last = stream.batch(windows, 0), stream.batch(windows, 1)
    assert first.targets_in[3].tolist() == [27, 28, SPECIAL.end, SPECIAL.start]  # the text starts again here
    assert first.labels[3].tolist() == [28, SPECIAL.end, SPECIAL.pad, SPECIAL.pad]
    assert not last.targets_in[3].any() and not last.labels[3].any()


def test_a_short_text_has_fewer_rows():
    assert Stream(encoded(4), 64, 70).rows == 3
    assert Stream(encoded(0), 64, 70).rows == 1


def test_windows_are_a_pure_function_of_seed_and_epoch():
    stream = Stream(encoded(5000), 4, 20)

    def windows_of_epoch(seed, epoch):
        windows = stream.random_windows(seed, epoch)
        return windows.start, windows.ends.tolist(), windows.lengths.tolist()

    assert windows_of_epoch(1, 0) == windows_of_epoch(1, 0)
    assert len({str(windows_of_epoch(*which)) for which in [(1, 0), (1, 1), (2, 0), (0, 1)]}) == 4


def test_lengths_are_sampled_as_in_the_paper():
    lengths = Stream(encoded(2_000_000), 1, 70).random_windows(5, 0).lengths[:-1]
    full, half = lengths[lengths > 52], lengths[lengths <= 52]
    assert len(half) / len(lengths) == pytest.approx(0.05, abs=0.01)
    assert full.mean() == pytest.approx(70, abs=0.7)
    assert half.mean() == pytest.approx(35, abs=0.7)
    assert full.std() == pytest.approx(SPREAD, abs=0.2)
    assert lengths.min() >= 5


def test_short_windows_have_a_smallest_length():
    lengths = Stream(encoded(5000), 2, 6).random_windows(1, 0).lengths[:-1]
    assert lengths.min() == 5
    assert Stream(encoded(500), 2, 1).random_windows(1, 0).lengths.min() >= 1


@pytest.mark.parametrize(("window", "seed", "epoch"), [(20, 1, 0), (7, 2, 3), (3, 5, 1)])
def test_windows_are_those_of_a_loop(window, seed, epoch):
    stream = Stream(encoded(600), 3, window)
    generator = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
    first, columns = int(generator.integers(602)), 201
    count = 2 * (columns // window) + 10
    middles = np.where(generator.random(count) < 0.05, window / 2, window)
    ends, end = [], 0
    for middle in middles:
        end += max(int(generator.normal(middle, 5.0)), min(5, window))
        if end < columns:
            ends.append(end)
    ends.append(columns)
    windows = stream.random_windows(seed, epoch)
    assert (windows.start, windows.columns, windows.ends.tolist()) == (first, columns, ends)
    assert windows.lengths.tolist() == [after - before for before, after in zip([0, *ends], ends, strict=False)]


def test_both_directions_of_a_text_side_by_side():
    """The text `<s> 10 11 12 </s>` in two rows, read backwards as `<s> 12 11 10 </s>`."""
    texts = encoded(3)
    assert (stream_of(1), stream_of(2)) == (Stream, BidirectionalStream)
    stream = BidirectionalStream(texts, 2, 2)
    windows = stream.equal_windows()
    assert (stream.rows, windows.columns, windows.ends.tolist()) == (2, 3, [2, 3])
    first, last = stream.batch(windows, 0), stream.batch(windows, 1)
    assert first.targets_in.tolist() == [[[2, 10], [2, 12]], [[12, 3], [10, 3]]]
    assert first.labels.tolist() == [[[10, 11], [12, 11]], [[3, 0], [3, 0]]]
    assert last.targets_in.tolist() == [[[11], [11]], [[2], [2]]]
    assert last.labels.tolist() == [[[12], [10]], [[0], [0]]]
    assert first.source.tolist() == empty_source(2).tolist() == [[3], [3]]
    assert Stream(texts, 2, 2, backwards=True).batch(windows, 0).targets_in.tolist() == [[2, 12], [10, 3]]
