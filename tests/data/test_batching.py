import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from translucid.data.batching import Batch, batches, bucketed_batches, padded, padded_rows
from translucid.data.stores.encoded import EncodedCorpus

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=200)


def plan(pairs, batch_tokens=40, seed=1, epoch=0):
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return bucketed_batches(source, target, batch_tokens=batch_tokens, seed=seed, epoch=epoch)


def corpus(*pairs):
    """Return a corpus of these sentences, which include end token 3."""

    def side(sentences):
        offsets = np.cumsum([0, *map(len, sentences)])
        return np.concatenate(sentences).astype(np.int32), offsets

    return EncodedCorpus(*side([s for s, _ in pairs]), *side([t for _, t in pairs]))


@given(lengths, st.integers(1, 200), st.integers(0, 3))
def test_every_sentence_is_in_exactly_one_batch(pairs, batch_tokens, epoch):
    batches = plan(pairs, batch_tokens, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(pairs)))


@given(lengths, st.integers(1, 200))
def test_no_batch_holds_more_tokens_than_asked_unless_it_is_one_sentence(pairs, batch_tokens):
    for batch in plan(pairs, batch_tokens):
        longest = max(max(pairs[i]) for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= batch_tokens


def test_batches_are_as_full_as_they_can_be():
    assert sorted(map(len, plan([(4, 4)] * 25, batch_tokens=40))) == [5, 10, 10]


def test_a_corpus_of_nothing_has_no_batches():
    assert plan([]) == []


def test_the_same_seed_and_epoch_give_the_same_plan_and_others_do_not():
    pairs = [(1 + i % 7, 1 + i % 5) for i in range(300)]
    seeds_and_epochs = [(1, 0), (1, 0), (1, 1), (2, 0), (0, 1)]
    as_lists = [list(map(list, plan(pairs, seed=seed, epoch=epoch))) for seed, epoch in seeds_and_epochs]
    first, repeated, *others = as_lists
    assert first == repeated
    assert all(first != other for other in others)


def test_sentences_meet_other_company_in_the_next_epoch():
    pairs = [(10, 10)] * 1000
    first, second = (plan(pairs, batch_tokens=100, epoch=e) for e in (0, 1))
    assert not {frozenset(b) for b in first} & {frozenset(b) for b in second}


def test_batches_do_not_come_in_the_order_of_their_lengths():
    pairs = [(n, n) for n in range(1, 61) for _ in range(10)]
    source_lengths, _ = np.transpose(pairs)
    longest = [source_lengths[batch].max() for batch in plan(pairs, batch_tokens=60)]
    assert longest != sorted(longest)
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.5


def test_little_of_a_batch_is_padding():
    rng = np.random.default_rng(0)
    target = rng.poisson(10, 20_000) + 2
    source = np.maximum(2, target + rng.integers(-3, 4, len(target)))
    batches = bucketed_batches(source, target, batch_tokens=2048, seed=0, epoch=0)
    cells = sum(len(b) * (source[b].max() + target[b].max()) for b in batches)
    assert (source.sum() + target.sum()) / cells > 0.93


def test_a_batch_pads_and_shifts():
    batch = corpus(([5, 6, 7, 3], [8, 3]), ([9, 3], [4, 5, 3])).batch([0, 1])
    assert batch.source.tolist() == [[5, 6, 7, 3], [9, 3, 0, 0]]
    assert batch.targets_in.tolist() == [[2, 8, 0], [2, 4, 5]]
    assert batch.labels.tolist() == [[8, 3, 0], [4, 5, 3]]
    assert {t.dtype for t in (batch.source, batch.targets_in, batch.labels)} == {torch.int64}


def test_a_batch_takes_the_sentences_asked_for_in_their_order():
    three = corpus(([5, 3], [6, 3]), ([7, 3], [8, 9, 3]), ([4, 3], [3]))
    batch = three.batch(np.array([2, 0]))
    assert batch.source.tolist() == [[4, 3], [5, 3]]
    assert batch.targets_in.tolist() == [[2, 0], [2, 6]]
    assert batch.labels.tolist() == [[3, 0], [6, 3]]


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.lists(st.integers(4, 9), max_size=6)] * 2), min_size=1, max_size=8))
def test_taking_padding_start_and_end_off_a_batch_gives_the_sentences_back(pairs):
    batch = corpus(*(([*s, 3], [*t, 3]) for s, t in pairs)).batch(range(len(pairs)))
    strip = lambda row: [i for i in row if i not in (0, 2, 3)]  # noqa: E731
    assert [strip(row) for row in batch.source.tolist()] == [s for s, _ in pairs]
    assert [strip(row) for row in batch.targets_in.tolist()] == [t for _, t in pairs]
    assert [strip(row) for row in batch.labels.tolist()] == [t for _, t in pairs]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_batch_moves_to_a_device_as_a_whole(device):
    moved = corpus(([5, 3], [6, 3])).batch([0]).prepared().to(device)
    tensors = moved.source, moved.targets_in, moved.labels, moved.positions
    assert {tensor.device.type for tensor in tensors} == {device}


def test_lengths_of_sentences_are_counted_before_a_batch_moves():
    batch = corpus(([5, 7, 3], [6, 3]), ([3], [3])).batch([0, 1])
    assert batch.prepared().to("meta").lengths == [3, 1]
    images = batch._replace(source=torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    assert images.prepared().lengths == ()


def planned_in_plain_python(pairs, batch_tokens, entropy):
    """Sort pairs by their longer side, fill batches one pair at a time, then permute the batches."""
    generator = np.random.default_rng(np.random.SeedSequence(entropy))
    noise = generator.uniform(0, 2, len(pairs))

    def sort_key(i):
        longest, difference = max(pairs[i]), pairs[i][1] - pairs[i][0] + noise[i]
        return longest, difference if longest % 2 else -difference

    filled = []
    for i in sorted(range(len(pairs)), key=sort_key):
        # Pairs are sorted by length, so the next pair is the longest one of its batch.
        if filled and (len(filled[-1]) + 1) * max(pairs[i]) <= batch_tokens:
            filled[-1].append(i)
        else:
            filled.append([i])
    return [filled[i] for i in generator.permutation(len(filled))]


@pytest.mark.parametrize("batch_tokens", [1, 7, 40, 41, 1000])
@pytest.mark.parametrize(
    ("seed", "epoch", "block", "entropy"), [(1, 0, 0, [1, 0]), (2, 3, 0, [2, 3]), (2, 3, 1, [2, 3, 1])]
)
def test_a_plan_is_that_of_a_loop_over_pairs(batch_tokens, seed, epoch, block, entropy):
    rng = np.random.default_rng(5)
    pairs = rng.integers(1, 20, (300, 2)).tolist()
    source, target = np.array(pairs).T
    planned = bucketed_batches(source, target, batch_tokens=batch_tokens, seed=seed, epoch=epoch, block=block)
    assert [batch.tolist() for batch in planned] == planned_in_plain_python(pairs, batch_tokens, entropy)


def test_what_is_computed_before_a_batch_moves():
    source, labels = torch.tensor([[5, 7, 3], [3, 0, 0]]), torch.tensor([[6, 3, 0], [3, 0, 0]])
    batch = Batch(source, torch.tensor([[2, 6, 0], [2, 0, 0]]), labels)
    prepared = batch.prepared()
    assert (prepared.positions.tolist(), prepared.lengths) == ([0, 1, 3], [3, 1])
    assert prepared.prepared() is prepared
    assert prepared.to("cpu").positions.tolist() == [0, 1, 3]
    assert batch.to("cpu").positions is None
    for image in (torch.zeros(2, 3, dtype=torch.uint8), torch.ones(2, 3, 4, dtype=torch.int64)):
        assert batch._replace(source=image).prepared().lengths == ()
    part = prepared.rows(slice(1, 2))
    assert [side.tolist() for side in part[:3]] == [[[3, 0, 0]], [[2, 0, 0]], [[3, 0, 0]]]
    assert part[3:] == (None, (), None, None, None)


def test_sentences_side_by_side_with_their_padding():
    ids, offsets = np.array([5, 6, 7, 8, 9], np.uint16), np.array([0, 3, 3, 5])
    rows = np.array([2, 0, 1])
    filled, real = padded_rows(ids, offsets[rows], offsets[rows + 1])
    assert filled.tolist() == [[8, 9, 0], [5, 6, 7], [0, 0, 0]]
    assert real.tolist() == [[True, True, False], [True, True, True], [False, False, False]]
    assert filled.dtype == np.int64


def test_sentences_of_falling_length_are_cut_into_batches():
    lengths = [3, 9, 5, 4, 2]
    assert list(batches([1, 2, 3, 0, 4], lengths, 10)) == [[1], [2, 3], [0, 4]]
    assert list(batches([1, 2, 3, 0, 4], lengths, 9)) == [[1], [2], [3, 0], [4]]
    assert list(batches([1, 4], lengths, 1)) == [[1], [4]]
    assert list(batches([], lengths, 10)) == []
    assert padded([[4], [5, 6, 7], []], 9).tolist() == [[4, 9, 9], [5, 6, 7], [9, 9, 9]]
