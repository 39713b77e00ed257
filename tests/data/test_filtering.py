"""What is skipped, and that it is counted."""

import pytest

from translucid.data.filtering import Filter, Skipped, fault, keep
from translucid.data.readers.corpus import Pair, TargetText


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
