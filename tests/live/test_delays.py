"""Delays on cases computed by hand."""

import pytest

from translucid.live.delays import latency, mean_latency


def test_wait_3_of_six_words():
    """d = 3, 4, 5, 6, 6, 6; tau = 4: AL = (3 + (4 - 1) + (5 - 2) + (6 - 3)) / 4 = 3; AP = 30 / 36."""
    assert latency([3, 4, 5, 6, 6, 6], 6, 6) == pytest.approx((3, 3, 30 / 36))


def test_an_output_that_is_longer_than_the_reference():
    """|x| = 4, |y| = 6, |r| = 3, tau = 5: AL uses 4/3, LAAL uses 4/6 words for each step.

    AL = (2 + 2 - 4/3 + 3 - 8/3 + 3 - 4 + 4 - 16/3) / 5 = (14 - 40/3) / 5; LAAL = (14 - 10 * 2/3) / 5.
    """
    result = latency([2, 2, 3, 3, 4, 4], 4, 3)
    assert result == pytest.approx(((14 - 40 / 3) / 5, (14 - 20 / 3) / 5, 18 / 24))


def test_an_output_that_is_shorter_than_the_reference():
    """|y| = 2, |r| = 4, |x| = 4: both use 1; tau = 1."""
    assert latency([4, 4], 4, 4) == pytest.approx((4, 4, 1))


def test_without_a_delay_of_the_whole_source():
    """Tau is |y| if the output ends before the source: d = 1, 2 of 4 words, |r| = 2: (1 + 2 - 2) / 2."""
    assert latency([1, 2], 4, 2) == pytest.approx((0.5, 0.5, 3 / 8))


def test_seconds():
    """A source of 2 seconds, words after 1, 1.5 and 2.5 seconds: tau = 3, 2/3 seconds a word."""
    expected = (1 + 1.5 - 2 / 3 + 2.5 - 4 / 3) / 3
    assert latency([1.0, 1.5, 2.5], 2.0, 3) == pytest.approx((expected, expected, 5 / 6))


def test_empty_outputs_are_undefined_and_counted():
    assert latency([], 3, 2) is None
    assert mean_latency([latency([2, 2], 2, 2), None, latency([1, 2], 2, 2)]) == ((1.5, 1.5, 0.875), 1)
    assert mean_latency([None]) == (None, 1)
    with pytest.raises(ValueError, match="no latency"):
        latency([1], 0)
