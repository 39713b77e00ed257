import numpy as np
import pytest

from translucid.data.shuffling import shuffled


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097])
def test_every_thing_stands_at_one_place(count):
    assert sorted(shuffled(np.arange(count), count, [1, 2])) == list(range(count))


def test_places_can_be_asked_for_in_any_portion():
    whole = shuffled(np.arange(5000), 5000, [7])
    assert shuffled(np.arange(1200, 1300), 5000, [7]).tolist() == whole[1200:1300].tolist()


def test_another_seed_gives_another_order():
    one, other = (shuffled(np.arange(1000), 1000, [seed, 0]) for seed in (1, 2))
    assert (one == other).sum() < 20


def test_an_order_is_about_as_irregular_as_a_drawn_one():
    """Neighbours are as far apart, and front and back as mixed, as in a permutation drawn by NumPy."""
    count = 200_000
    order = shuffled(np.arange(count), count, [3])
    drawn = np.random.default_rng(3).permutation(count)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(np.arange(count), order)[0, 1]) < 0.01
    steps, expected = np.abs(np.diff(order)).mean(), np.abs(np.diff(drawn)).mean()
    assert steps == pytest.approx(expected, rel=0.01)
    halves = (order[: count // 2] < count // 2).mean()
    assert halves == pytest.approx(0.5, abs=0.01)


def test_memory_does_not_grow_with_the_number_of_things():
    assert (shuffled(np.arange(100), 10**15, [1]) < 10**15).all()
