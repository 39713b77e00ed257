import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from translucid.data.batching import plan_epoch
from translucid.data.stores.encoded import EncodedCorpus

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=200)


def plan(pairs, batch_tokens=40, seed=1, epoch=0):
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return plan_epoch(source, target, batch_tokens=batch_tokens, seed=seed, epoch=epoch)


def corpus(*pairs):
    """Sentences as written, end token 3 included."""

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
    as_lists = [[list(b) for b in plan(pairs, seed=s, epoch=e)] for s, e in [(1, 0), (1, 0), (1, 1), (2, 0), (0, 1)]]
    first, again, *others = as_lists
    assert first == again
    assert all(first != other for other in others)


def test_sentences_meet_other_company_in_the_next_epoch():
    pairs = [(10, 10)] * 1000
    first, second = (plan(pairs, batch_tokens=100, epoch=e) for e in (0, 1))
    assert not {frozenset(b) for b in first} & {frozenset(b) for b in second}


def test_batches_do_not_come_in_the_order_of_their_lengths():
    pairs = [(n, n) for n in range(1, 61) for _ in range(10)]
    longest = [max(pairs[i][0] for i in batch) for batch in plan(pairs, batch_tokens=60)]
    assert longest != sorted(longest)
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.5


def test_little_of_a_batch_is_padding():
    rng = np.random.default_rng(0)
    target = rng.poisson(10, 20_000) + 2
    source = np.maximum(2, target + rng.integers(-3, 4, len(target)))
    batches = plan_epoch(source, target, batch_tokens=2048, seed=0, epoch=0)
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
    tensors = moved.source, moved.targets_in, moved.labels, moved.places
    assert {tensor.device.type for tensor in tensors} == {device}


def test_lengths_of_sentences_are_counted_before_a_batch_moves():
    batch = corpus(([5, 7, 3], [6, 3]), ([3], [3])).batch([0, 1])
    assert batch.prepared().to("meta").lengths == [3, 1]
    images = batch._replace(source=torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    assert images.prepared().lengths == ()
