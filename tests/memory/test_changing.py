"""Entries of a memory are found by part of their text, edited, and removed one by one or all or none."""

import numpy as np
import pytest

from bitext.memory.database import LONGEST
from bitext.memory.match import Folded, search_pattern
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.ground.errors import UserError

PAIRS = [
    Pair("Save the file", "Guardar el archivo"),
    Pair("Open the profile", "Abrir el perfil"),
    Pair("FILE not found", "Archivo no encontrado"),
    Pair("Click OK", "Pulse Aceptar (archivo)"),
]


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory_file:
        memory_file.add(PAIRS, "Ana")
        yield memory_file


def sources_of(entries):
    return [entry.source for entry in entries]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
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
def test_a_part_of_a_text_is_found_the_newest_first(memory, text, options, expected):
    assert sources_of(memory.find(text, **options)) == expected


def test_many_are_found_page_by_page_while_others_write(memory):
    memory.add([Pair(f"row {i}", f"fila {i}") for i in range(2500)], "Ben")
    assert not [*memory.find("row", seconds=-1)]
    entries = memory.find("row")
    first = next(entries)
    memory.add([Pair("row 9999", "fila 9999")], "Ben")
    assert first.source == "row 2499" and len([*entries]) == 2499


def test_scripts_and_composed_letters(memory):
    memory.add([Pair("Café ÉTÉ", "足球比赛")], "Ben")
    assert sources_of(memory.find("cafe\N{COMBINING ACUTE ACCENT} été")) == ["Café ÉTÉ"]
    assert sources_of(memory.find("球比")) == ["Café ÉTÉ"]
    assert search_pattern("") is None


def test_an_entry_gets_another_translation(memory):
    before = memory.edit(" Save  the file", "Guarde el  archivo", "Ben")
    assert (before.target, before.who) == ("Guardar el archivo", "Ana")
    after = memory.exact("Save the file").entry
    assert (after.target, after.who) == ("Guarde el archivo", "Ben")
    assert memory.edit("Save the", "Guarde", "Ben") is None and len(memory) == 4
    for invalid in ("", "x" * (LONGEST + 1)):
        with pytest.raises(UserError, match="1 to 20,000 characters"):
            memory.edit("Save the file", invalid, "Ben")
    assert memory.exact("Save the file").target == "Guarde el archivo"


def test_entries_are_removed_all_or_none(memory):
    with pytest.raises(UserError, match="no entry of 'Save it'"):
        memory.remove(["Save the file", "Save it"])
    assert len(memory) == 4 and memory.exact("Save the file")
    assert sources_of(memory.remove(["Save the file", "Click OK", "Click OK"])) == ["Save the file", "Click OK"]
    assert len(memory) == 2 and memory.exact("Save the file") is None
    assert sources_of(match.entry for match in memory.matches("Save the file", 30)) == []
    assert "latest change" not in memory.facts()


def test_removed_entries_are_in_no_list_of_words(memory):
    """Otherwise a row number that SQLite reuses would stay in the lists of words that its new text does not contain."""

    def ids_in_lists():
        rows = memory._database.execute("SELECT size, ids FROM postings").fetchall()
        assert all(size == len(ids) // 4 for size, ids in rows)
        return sorted(np.concatenate([np.frombuffer(ids, "<u4") for _, ids in rows]).tolist())

    before = ids_in_lists()
    memory.add([Pair("one more entry", "una entrada más")], "Ben")
    assert len(ids_in_lists()) == len(before) + len(Folded("one more entry").pairs)
    memory.remove(["one more entry"])
    assert ids_in_lists() == before


def test_entries_added_after_a_removal_count_as_new(memory):
    """`memory learn` reads what was changed since it last learned."""
    last_learned = memory.change
    memory.remove(["Click OK"])
    memory.add([Pair("Click here", "Pulse aquí")], "Ben")
    assert sources_of(memory.entries(last_learned)) == ["Click here"]
    assert memory.change > last_learned
