from collections import Counter

import numpy as np
import pytest

from translucid.data.sampler import Order, by_temperature, directions_by_temperature, mixed_in, quotas, shuffled


def read(sizes, shares, *, epoch=0, block=10**6):
    order = Order(sizes, shares, seed=1, epoch=epoch, block=block)
    return np.concatenate([order.block(i) for i in range(order.blocks)])


def test_one_block_is_the_corpus_as_it_is():
    assert read([10], None).tolist() == list(range(10))


def test_blocks_hold_every_pair_once_in_another_order_each_epoch():
    first, second = (read([1000], None, epoch=epoch, block=130) for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(1000))
    assert (first == second).sum() < 20
    assert not (np.diff(first) == 1).all()


def test_blocks_are_alike_in_size():
    order = Order([1001], None, seed=1, epoch=0, block=100)
    assert {len(order.block(i)) for i in range(order.blocks)} == {91}


@pytest.mark.parametrize("block", [10**6, 70])
def test_weights_decide_how_much_is_read_of_each_corpus(block):
    counts = Counter((read([300, 100], [1, 3], block=block) >= 300).tolist())
    assert counts == {False: 100, True: 300}


@pytest.mark.parametrize("block", [10**6, 70])
def test_no_pair_comes_twice_before_all_of_its_corpus_came_once(block):
    sizes, counts = [300, 100], Counter()
    for epoch in range(6):  # each epoch reads 100 pairs of the first corpus and 300 of the second
        counts.update(read(sizes, [1, 3], epoch=epoch, block=block).tolist())
        first, second = [counts[i] for i in range(300)], [counts[i] for i in range(300, 400)]
        assert max(first) - min(first) <= 1
        assert set(second) == {3 * (epoch + 1)}
    assert set(first) == {2}


def test_a_part_of_a_corpus_is_drawn_from_all_of_it():
    part = [i for i in read([300, 100], [1, 3]) if i < 300]
    assert len(part) == 100
    assert min(part) < 30 and max(part) > 270
    assert part != sorted(part)


def test_blocks_mix_the_corpora():
    order = Order([500, 500], [1, 1], seed=1, epoch=0, block=100)
    assert all(20 < (order.block(i) < 500).sum() < 80 for i in range(order.blocks))


def test_temperature_one_keeps_the_proportions_and_a_high_one_levels_them():
    assert by_temperature([900, 100], 1) == pytest.approx([0.9, 0.1])
    assert by_temperature([900, 100], 2) == pytest.approx([0.75, 0.25])
    assert by_temperature([900, 100], 1000) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_quotas_add_up_and_give_an_empty_corpus_nothing():
    assert quotas([7, 5], None) == [7, 5]
    assert quotas([7, 0, 6], [1, 5, 2]) == [4, 0, 9]
    assert sum(quotas([333, 333, 333], [1, 1, 1])) == 999


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097])
def test_every_thing_stands_at_one_place(count):
    assert sorted(shuffled(np.arange(count), count, [1, 2])) == list(range(count))


def test_places_can_be_asked_for_in_any_portion():
    everything = shuffled(np.arange(5000), 5000, [7])
    assert shuffled(np.arange(1200, 1300), 5000, [7]).tolist() == everything[1200:1300].tolist()


def test_another_seed_gives_another_order():
    first, second = (shuffled(np.arange(1000), 1000, [seed, 0]) for seed in (1, 2))
    assert (first == second).sum() < 20


def test_an_order_is_about_as_irregular_as_a_drawn_one():
    """Neighbors are as far apart, and both halves as mixed, as in a random permutation by NumPy."""
    count = 200_000
    order = shuffled(np.arange(count), count, [3])
    permutation = np.random.default_rng(3).permutation(count)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(np.arange(count), order)[0, 1]) < 0.01
    steps, expected = np.abs(np.diff(order)).mean(), np.abs(np.diff(permutation)).mean()
    assert steps == pytest.approx(expected, rel=0.01)
    halves = (order[: count // 2] < count // 2).mean()
    assert halves == pytest.approx(0.5, abs=0.01)


def test_memory_does_not_grow_with_the_number_of_things():
    assert (shuffled(np.arange(100), 10**15, [1]) < 10**15).all()


@pytest.mark.parametrize(
    ("sizes", "shares", "further", "expected", "count"),
    [
        ([70, 1000], None, [0.3], [0.7, 0.3], 100),
        ([10, 30, 500], None, [0.6], [0.1, 0.3, 0.6], 100),
        ([10, 30, 500], [3, 1], [0.6], [0.3, 0.1, 0.6], 100),
        ([50, 9, 9], None, [0.25, 0.25], [0.5, 0.25, 0.25], 100),
    ],
)
def test_what_is_mixed_in_has_its_share_and_the_rest_comes_once(sizes, shares, further, expected, count):
    mixed_shares, size = mixed_in(sizes, shares, further)
    assert (mixed_shares, size) == (pytest.approx(expected), count)
    assert quotas(sizes, mixed_shares, size) == [round(100 * share) for share in expected]
    order = Order(sizes, mixed_shares, size, seed=1, epoch=0)
    indices = order.block(0)
    main_size = sum(sizes[: len(sizes) - len(further)])
    assert len(indices) == count
    assert (indices < main_size).sum() == main_size


def shuffled_in_plain_python(position, count, seed):
    """A Feistel network of four rounds over Python's integers, with the finalizer of SplitMix64."""
    half = max(1, -(-(count - 1).bit_length() // 2))
    keys = np.random.SeedSequence([*seed, count]).generate_state(4, np.uint64).tolist()
    number = position
    while True:
        left, right = number >> half, number % 2**half
        for key in keys:
            x = right ^ key
            x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
            x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
            left, right = right, left ^ ((x ^ (x >> 31)) % 2**half)
        number = left * 2**half + right
        if number < count:
            return number


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 1000, 10**15])
def test_the_random_order_is_that_of_a_network_over_single_numbers(count):
    positions = [position for position in (0, 1, 2, 15, 16, 500, 999, 10**15 - 1) if position < count]
    expected = [shuffled_in_plain_python(position, count, [3, 4]) for position in positions]
    assert shuffled(np.array(positions), count, [3, 4]).tolist() == expected


@pytest.mark.parametrize("block", [10**6, 7])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_the_pairs_of_an_epoch_are_those_of_a_loop(epoch, block):
    """Corpora of 10, 0 and 3 pairs, of which an epoch reads 4, 0 and 12: passes begin and end in the middle of it."""
    sizes, counts = [10, 0, 3], [4, 0, 12]
    expected, offset = [], 0
    for corpus, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        for position in range(epoch * count, (epoch + 1) * count):
            number, item = divmod(position, max(size, 1))
            expected.append(offset + shuffled_in_plain_python(item, size, [1, corpus, number]))
        offset += size
    if block < 16:
        expected = [expected[shuffled_in_plain_python(item, 16, [1, epoch])] for item in range(16)]
    order = Order(sizes, [1, 7, 3], 16, seed=1, epoch=epoch, block=block)
    assert (order.quotas, order.count, order.blocks) == (counts, 16, 3 if block < 16 else 1)
    assert [index for number in range(order.blocks) for index in order.block(number).tolist()] == expected


def test_a_block_has_at_most_a_million_pairs():
    assert [Order([size], None, seed=1, epoch=0).blocks for size in (1_000_000, 1_000_001)] == [1, 2]


def test_an_epoch_without_pairs_has_one_empty_block():
    order = Order([0], None, seed=1, epoch=0)
    assert (order.blocks, order.block(0).tolist()) == (1, [])


def test_directions_are_weighted_by_temperature_whatever_their_corpora():
    # en-fr has 80 + 1 = 81 pairs, en-de 16: the fourth roots are 3 and 2.
    shares = directions_by_temperature([80, 16, 1], ["en-fr", "en-de", "en-fr"], 4)
    assert shares == pytest.approx([3 / 5 * 80 / 81, 2 / 5, 3 / 5 / 81])
    assert directions_by_temperature([80, 16, 1], ["en-fr", "en-de", "en-fr"], 1) == pytest.approx(
        by_temperature([80, 16, 1], 1)
    )
