"""Training pairs with the translation of a near match appended to their source."""

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.data.tokenizing.pieces import MATCH
from translucid.memory.augmenting import augmented

PAIRS = [
    Pair("I like green tea", "Me gusta el té verde"),
    Pair("I like black tea", "Me gusta el té negro"),
    Pair("I like black tea a lot", "Me gusta mucho el té negro"),
    Pair("Nothing is like this one", "Nada"),
    Pair("Page 3 is missing", "Falta la página 3"),
    Pair("Page 4 is missing", "Falta la página 4"),
]


def test_the_best_of_the_others_stands_behind_a_source(tmp_path):
    TranslationMemory.make(tmp_path / "m.memory", PAIRS, "")
    with TranslationMemory.open(tmp_path / "m.memory", immutable=True) as memory:
        progress = []
        annotated_pairs = [*augmented(PAIRS, memory, 60, progress.append)]
    assert annotated_pairs == [
        Pair(f"I like green tea{MATCH} Me gusta el té negro", "Me gusta el té verde"),
        Pair(f"I like black tea{MATCH} Me gusta el té verde", "Me gusta el té negro"),
        Pair(f"I like black tea a lot{MATCH} Me gusta el té negro", "Me gusta mucho el té negro"),
        Pair(f"Page 3 is missing{MATCH} Falta la página 3", "Falta la página 3"),
        Pair(f"Page 4 is missing{MATCH} Falta la página 4", "Falta la página 4"),
    ]
    with TranslationMemory.open(tmp_path / "m.memory", immutable=True) as memory:
        assert len([*augmented(PAIRS, memory, 70)]) == 4
        assert len([*augmented(PAIRS, memory, 80)]) == 2
