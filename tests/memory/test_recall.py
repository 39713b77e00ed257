"""Which matches of a memory are used, and which are only shown."""

import pytest

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair

PAIRS = Pair("Page 3 of 10", "Página 3 de 10"), Pair("Save the file", "Guardar")


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        memory.add(PAIRS, "a")
        yield memory


@pytest.mark.parametrize(
    ("text", "used_from"),
    [
        ("Page 3 of 10", 100),
        ("Page 4 of 12", 99),
        ("Save the file.", 98),
        ("Save the file now", 75),
        ("Save a file", 67),
        ("Nothing like it", 0),
    ],
)
def test_a_match_is_used_from_its_percent_on(memory, text, used_from):
    uses = {percent for percent in range(60, 101) if Recall(memory, percent).replacement(text)}
    assert uses == (set(range(60, used_from + 1)) if used_from else set())
    assert bool(Recall(memory).replacement(text)) == (used_from == 100)


def test_an_exact_match_is_found_without_comparing(memory, monkeypatch):
    monkeypatch.setattr(memory, "matches", None)
    assert Recall(memory).replacement("Save the  file").target == "Guardar"
    assert Recall(memory).replacement("Save the file.") is None


def test_suggestions_reach_the_minimum_percentage(memory):
    assert not Recall(memory).suggestions("Save a file")
    assert [match.percent for match in Recall(memory, 60).suggestions("Save a file")] == [67]


def test_a_near_match_with_wrong_numbers_is_not_used_in_a_long_text(tmp_path):
    sentence = "Please move every one of the blue boxes that stand behind the old gate of the garden"
    with TranslationMemory.open(tmp_path / "long.memory", write=True) as memory:
        memory.add([Pair(f"{sentence} {a} of {a} times", f"Mueva {a} de {a} veces") for a in (3,)], "a")
        changed_text = f"{sentence} 3 of 7 times"
        assert memory.matches(changed_text, 80)[0].percent >= 90
        assert Recall(memory, 75).replacement(changed_text) is None
        assert Recall(memory, 75).replacement(f"{sentence} 7 of 7 times").target == "Mueva 7 de 7 veces"
        assert Recall(memory, 75).replacement(f"{sentence} 3 of 3 times 8") is None
        memory.add([Pair(f"{sentence} 3 of 9 times", "Mueva 3 de 9 veces")], "a")
        assert Recall(memory, 75).replacement(changed_text).target == "Mueva 3 de 7 veces"
