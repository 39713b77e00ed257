"""Entries that are found by a part of their text, edited and removed, one at a time and as a whole or not at all."""

import numpy as np
import pytest

from translucid.data.readers.corpus import Pair
from translucid.ground.errors import UserError
from translucid.memory.database import LONGEST
from translucid.memory.folding import Folded, found_in
from translucid.memory.translation_memory import TranslationMemory

PAIRS = [
    Pair("Save the file", "Guardar el archivo"),
    Pair("Open the profile", "Abrir el perfil"),
    Pair("FILE not found", "Archivo no encontrado"),
    Pair("Click OK", "Pulse Aceptar (archivo)"),
]


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as opened:
        opened.add(PAIRS, "Ana")
        yield opened


def sources(found):
    return [entry.source for entry in found]


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        ("file", {}, ["FILE not found", "Open the profile", "Save the file"]),
        ("file", {"whole_words": True}, ["FILE not found", "Save the file"]),
        ("archivo", {}, ["Click OK", "FILE not found", "Save the file"]),
        ("archivo", {"sides": ("source",)}, []),
        ("the  file ", {}, ["Save the file"]),
        ("(archivo", {"whole_words": True}, ["Click OK"]),
        ("nothing", {}, []),
        ("  ", {}, []),
        (".*", {}, []),
    ],
)
def test_a_part_of_a_text_is_found_the_newest_first(memory, text, options, wanted):
    assert sources(memory.find(text, **options)) == wanted


def test_many_are_found_page_by_page_while_others_write(memory):
    memory.add([Pair(f"row {i}", f"fila {i}") for i in range(2500)], "Ben")
    found = memory.find("row")
    first = next(found)
    memory.add([Pair("row 9999", "fila 9999")], "Ben")
    assert first.source == "row 2499" and len([*found]) == 2499


def test_scripts_and_composed_letters(memory):
    memory.add([Pair("Café ÉTÉ", "足球比赛")], "Ben")
    assert sources(memory.find("cafe\N{COMBINING ACUTE ACCENT} été")) == ["Café ÉTÉ"]
    assert sources(memory.find("球比")) == ["Café ÉTÉ"]
    assert found_in("") is None


def test_an_entry_gets_another_translation(memory):
    before = memory.edit(" Save  the file", "Guarde el  archivo", "Ben")
    assert (before.target, before.who) == ("Guardar el archivo", "Ana")
    after = memory.exact("Save the file").entry
    assert (after.target, after.who) == ("Guarde el archivo", "Ben")
    assert memory.edit("Save the", "Guarde", "Ben") is None and len(memory) == 4
    for wrong in ("", "x" * (LONGEST + 1)):
        with pytest.raises(UserError, match="1 to 20,000 characters"):
            memory.edit("Save the file", wrong, "Ben")
    assert memory.exact("Save the file").target == "Guarde el archivo"


def test_entries_are_removed_all_or_none(memory):
    with pytest.raises(UserError, match="no entry of 'Save it'"):
        memory.remove(["Save the file", "Save it"])
    assert len(memory) == 4 and memory.exact("Save the file")
    assert sources(memory.remove(["Save the file", "Click OK", "Click OK"])) == ["Save the file", "Click OK"]
    assert len(memory) == 2 and memory.exact("Save the file") is None
    assert sources(match.entry for match in memory.matches("Save the file", 30)) == []
    assert "latest change" not in memory.facts()


def test_what_is_removed_is_in_no_list_of_words(memory):
    """Else a number that SQLite gives a second time would stand in lists of words that its text does not have."""

    def listed():
        rows = memory._database.execute("SELECT size, ids FROM postings").fetchall()
        assert all(size == len(ids) // 4 for size, ids in rows)
        return sorted(np.concatenate([np.frombuffer(ids, "<u4") for _, ids in rows]).tolist())

    before = listed()
    memory.add([Pair("one more entry", "una entrada más")], "Ben")
    assert len(listed()) == len(before) + len(Folded("one more entry").pairs)
    memory.remove(["one more entry"])
    assert listed() == before


def test_what_comes_after_a_removal_counts_as_new(memory):
    """`memory learn` asks for what was changed since it last learned."""
    learned = memory.change
    memory.remove(["Click OK"])
    memory.add([Pair("Click here", "Pulse aquí")], "Ben")
    assert sources(memory.entries(learned)) == ["Click here"]
    assert memory.change > learned
