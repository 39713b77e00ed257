"""`translucid memory`: its output, its files and its errors."""

import json

import pytest

from translucid.data.readers.corpus import read_pairs


@pytest.fixture
def memory(call, tmp_path):
    """A memory with the pairs of two files."""
    (tmp_path / "old.tsv").write_text("Save the file\tGuardar el archivo\nPage 3 of 10\tPágina 3 de 10\n")
    (tmp_path / "new.po").write_text('msgid "Save the file"\nmsgstr "Guarda el archivo"\n')
    file = tmp_path / "m.memory"
    languages = "--source-language", "en", "--target-language", "es"
    result = call("memory", "add", file, tmp_path / "old.tsv", *languages)
    assert result.code == 0 and "old.tsv: 2 new" in result.err and "2 entries" in result.err
    result = call("memory", "add", file, tmp_path / "new.po", "--who", "Ana")
    assert result.code == 0 and "new.po: 1 changed" in result.err
    return file


def test_search(call, memory):
    result = call("memory", "search", memory, "Save the page")
    assert result.code == 0 and " 67 %" not in result.out and "nothing has 70 %" in result.err
    result = call("memory", "search", memory, "Save the page", "--least", "60")
    assert " 67 % Save the file  (Ana, " in result.out and "page here, file there" in result.out
    result = call("memory", "search", memory, "Page 4 of 12", "--json")
    (match,) = json.loads(result.out)
    assert (match["percent"], match["target"], match["who"]) == (99, "Página 4 de 12", "old.tsv")
    assert match["differing"] == [["4", "3"], ["12", "10"]]


def test_stats(call, memory):
    result = call("memory", "stats", memory)
    assert result.code == 0 and result.out.startswith("2 entries\nsource language: en\n") and "Ana" in result.out
    statistics = json.loads(call("memory", "stats", memory, "--json").out)
    assert statistics["entries"] == 2 and {row["who"] for row in statistics["from"]} == {"Ana", "old.tsv"}


def test_export(call, memory, tmp_path):
    assert call("memory", "export", memory, tmp_path / "out.tmx").code == 0
    expected = [("Page 3 of 10", "Página 3 de 10"), ("Save the file", "Guarda el archivo")]
    assert [*read_pairs(tmp_path / "out.tmx", languages=("en", "es"))] == expected
    assert call("memory", "export", memory, tmp_path / "out.tmx").code == 2
    assert call("memory", "export", memory, tmp_path / "out.tsv").code == 0
    assert [*read_pairs(tmp_path / "out.tsv")] == expected
    result = call("memory", "export", tmp_path / "old.tsv", tmp_path / "other.tmx")
    assert result.code == 2 and "--source-language CODE" in result.err and not (tmp_path / "other.tmx").exists()


def test_invalid_memory_commands_are_refused(call, memory, tmp_path):
    result = call("memory", "add", tmp_path / "old.tmx", tmp_path / "old.tsv")
    assert result.code == 2 and ".memory" in result.err
    result = call("memory", "add", memory, tmp_path / "old.tsv", "--target-language", "fr")
    assert result.code == 2 and "es, not fr" in result.err
    (tmp_path / "bad.tsv").write_text("new\tnuevo\nno pair\n")
    result = call("memory", "add", memory, tmp_path / "bad.tsv")
    assert result.code == 2 and "bad.tsv:2" in result.err
    assert "2 entries" in call("memory", "stats", memory).out
    result = call("memory", "add", memory, tmp_path / "bad.tsv", "--skip-bad")
    assert result.code == 0 and "no sentence pairs: 1" in result.err and "3 entries" in result.err
    assert call("memory", "search", tmp_path / "missing.memory", "x").code == 2


def test_find_shows_a_part_of_a_text_in_its_context(call, memory):
    result = call("memory", "find", memory, "ARCHIVO")
    assert result.code == 0 and "Save the file  (Ana, " in result.out and "Guarda el archivo" in result.out
    assert "Page 3" not in result.out
    (entry,) = json.loads(call("memory", "find", memory, "page", "--in", "source", "--json").out)
    assert (entry["source"], entry["target"], entry["who"]) == ("Page 3 of 10", "Página 3 de 10", "old.tsv")
    assert json.loads(call("memory", "find", memory, "page", "--in", "target", "--json").out) == []
    result = call("memory", "find", memory, "ave", "--words")
    assert result.code == 0 and result.out == "" and "no entry has 'ave'" in result.err
    assert "more than 1" in call("memory", "find", memory, "e", "--most", "1").err
    result = call("memory", "find", memory, " ")
    assert result.code == 2 and "nothing to find" in result.err


def test_edit_and_remove(call, memory, tmp_path):
    result = call("memory", "edit", memory, "Save the file", "Guarde el archivo", "--who", "Ben")
    assert result.code == 0 and result.out == "Save the file: Guarda el archivo → Guarde el archivo\n"
    assert "Ben" in call("memory", "find", memory, "Guarde").out
    result = call("memory", "edit", memory, "Save it", "Guárdelo")
    assert result.code == 2 and "no entry of 'Save it'" in result.err and "memory find" in result.err
    result = call("memory", "remove", memory, "Save the file", "Save it")
    assert result.code == 2 and "no entry of 'Save it'" in result.err
    result = call("memory", "remove", memory, "Save the file")
    assert (
        result.code == 0 and result.out == "removed: Save the file → Guarde el archivo\n" and "1 entries" in result.err
    )
    for path in (tmp_path / "old.tsv", tmp_path / "none.memory"):
        assert call("memory", "remove", path, "Save the file").code == 2
        assert call("memory", "edit", path, "Save the file", "x").code == 2
    assert not (tmp_path / "none.memory").exists()
