"""What is skipped, and how it is counted."""

import random
from collections import Counter

import pytest

from bitext.pair import Pair
from translucid.data.filtering import Filter, Skipped, fault, keep, reservoir_sample
from translucid.data.readers.corpus import TargetText


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Go.", "¡Vete de aquí ahora mismo!", None),
        ("Hi.", "Hola.", None),
        ("", "Hola.", "empty"),
        ("Hi.", " \t", "empty"),
        ("a" * 2000, "b" * 2000, None),
        ("a" * 2001, "b" * 2000, "too long"),
        ("a" * 10, "b" * 70, None),
        ("a" * 10, "b" * 71, "unequal"),
        ("a" * 71, "b" * 10, "unequal"),
    ],
)
def test_faults(source, target, reason):
    assert fault(Pair(source, target), Filter()) == reason


@pytest.mark.parametrize(("text", "reason"), [("Hola.", None), (" ", "empty"), ("a" * 2001, "too long")])
def test_a_text_without_a_source_has_the_faults_of_its_target(text, reason):
    assert fault(TargetText.of(text), Filter()) == reason


def test_each_limit_can_be_set():
    pair = Pair("a" * 10, "b" * 50)
    assert fault(pair, Filter(max_characters=49)) == "too long"
    assert fault(pair, Filter(max_ratio=2, ratio_slack=0)) == "unequal"
    assert fault(pair, Filter(max_ratio=2, ratio_slack=30)) is None


def test_the_skipped_are_counted():
    skipped = Skipped()
    pairs = [Pair("a", "b"), Pair("", "b"), Pair("a" * 3000, "b"), Pair("", "")]
    assert list(keep(pairs, Filter(), skipped)) == pairs[:1]
    assert skipped.summary() == "1 pair; skipped 3: 2 empty, 1 too long"
    skipped.add("too long")  # found later, by the tokenizer
    assert skipped.summary() == "0 pairs; skipped 4: 2 empty, 2 too long"
    assert Skipped().summary() == "0 pairs; none skipped"
    skipped.kept, skipped.unit = 1_234_567, "text"
    skipped.reasons["unequal"] = 5_000
    assert skipped.summary() == "1,234,567 texts; skipped 5,004: 5,000 unequal, 2 empty, 2 too long"


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 40])
def test_a_sample_is_that_of_algorithm_r(count):
    generator, expected = random.Random(3), list(range(min(count, 5)))
    for index in range(5, count):
        slot = generator.randrange(index + 1)
        expected[slot : slot + 1] = [index] if slot < 5 else expected[slot : slot + 1]
    assert reservoir_sample(iter(range(count)), 5, seed=3) == expected


def test_each_item_is_equally_likely_to_be_in_a_sample():
    counts = Counter()
    for seed in range(2000):
        counts.update(reservoir_sample(range(10), 3, seed))
    assert all(counts[item] == pytest.approx(600, abs=90) for item in range(10))
