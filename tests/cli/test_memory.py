"""`translucid memory`: what it says, writes and refuses."""

import json

import pytest

from translucid.data.readers.corpus import read_pairs


@pytest.fixture
def memory(call, tmp_path):
    """A memory of two files."""
    (tmp_path / "old.tsv").write_text("Save the file\tGuardar el archivo\nPage 3 of 10\tPágina 3 de 10\n")
    (tmp_path / "new.po").write_text('msgid "Save the file"\nmsgstr "Guarda el archivo"\n')
    file = tmp_path / "m.memory"
    languages = "--source-language", "en", "--target-language", "es"
    done = call("memory", "add", file, tmp_path / "old.tsv", *languages)
    assert done.code == 0 and "old.tsv: 2 new" in done.err and "2 entries" in done.err
    done = call("memory", "add", file, tmp_path / "new.po", "--who", "Ana")
    assert done.code == 0 and "new.po: 1 changed" in done.err
    return file


def test_search(call, memory):
    done = call("memory", "search", memory, "Save the page")
    assert done.code == 0 and " 67 %" not in done.out and "nothing has 70 %" in done.err
    done = call("memory", "search", memory, "Save the page", "--least", "60")
    assert " 67 % Save the file  (Ana, " in done.out and "page here, file there" in done.out
    done = call("memory", "search", memory, "Page 4 of 12", "--json")
    (found,) = json.loads(done.out)
    assert (found["percent"], found["target"], found["who"]) == (99, "Página 4 de 12", "old.tsv")
    assert found["differing"] == [["4", "3"], ["12", "10"]]


def test_stats(call, memory):
    done = call("memory", "stats", memory)
    assert done.code == 0 and done.out.startswith("2 entries\nsource language: en\n") and "Ana" in done.out
    told = json.loads(call("memory", "stats", memory, "--json").out)
    assert told["entries"] == 2 and {row["who"] for row in told["from"]} == {"Ana", "old.tsv"}


def test_export(call, memory, tmp_path):
    assert call("memory", "export", memory, tmp_path / "out.tmx").code == 0
    wanted = [("Page 3 of 10", "Página 3 de 10"), ("Save the file", "Guarda el archivo")]
    assert [*read_pairs(tmp_path / "out.tmx", languages=("en", "es"))] == wanted
    assert call("memory", "export", memory, tmp_path / "out.tmx").code == 2
    assert call("memory", "export", memory, tmp_path / "out.tsv").code == 0
    assert [*read_pairs(tmp_path / "out.tsv")] == wanted
    done = call("memory", "export", tmp_path / "old.tsv", tmp_path / "other.tmx")
    assert done.code == 2 and "--source-language CODE" in done.err and not (tmp_path / "other.tmx").exists()


def test_what_is_refused(call, memory, tmp_path):
    done = call("memory", "add", tmp_path / "old.tmx", tmp_path / "old.tsv")
    assert done.code == 2 and ".memory" in done.err
    done = call("memory", "add", memory, tmp_path / "old.tsv", "--target-language", "fr")
    assert done.code == 2 and "es, not fr" in done.err
    (tmp_path / "bad.tsv").write_text("new\tnuevo\nno pair\n")
    done = call("memory", "add", memory, tmp_path / "bad.tsv")
    assert done.code == 2 and "bad.tsv:2" in done.err
    assert "2 entries" in call("memory", "stats", memory).out
    done = call("memory", "add", memory, tmp_path / "bad.tsv", "--skip-bad")
    assert done.code == 0 and "no sentence pairs: 1" in done.err and "3 entries" in done.err
    assert call("memory", "search", tmp_path / "missing.memory", "x").code == 2


def test_find_shows_a_part_of_a_text_in_its_context(call, memory):
    done = call("memory", "find", memory, "ARCHIVO")
    assert done.code == 0 and "Save the file  (Ana, " in done.out and "Guarda el archivo" in done.out
    assert "Page 3" not in done.out
    (found,) = json.loads(call("memory", "find", memory, "page", "--in", "source", "--json").out)
    assert (found["source"], found["target"], found["who"]) == ("Page 3 of 10", "Página 3 de 10", "old.tsv")
    assert json.loads(call("memory", "find", memory, "page", "--in", "target", "--json").out) == []
    done = call("memory", "find", memory, "ave", "--words")
    assert done.code == 0 and done.out == "" and "no entry has 'ave'" in done.err
    assert "more than 1" in call("memory", "find", memory, "e", "--most", "1").err
    done = call("memory", "find", memory, " ")
    assert done.code == 2 and "nothing to find" in done.err


def test_edit_and_remove(call, memory, tmp_path):
    done = call("memory", "edit", memory, "Save the file", "Guarde el archivo", "--who", "Ben")
    assert done.code == 0 and done.out == "Save the file: Guarda el archivo → Guarde el archivo\n"
    assert "Ben" in call("memory", "find", memory, "Guarde").out
    done = call("memory", "edit", memory, "Save it", "Guárdelo")
    assert done.code == 2 and "no entry of 'Save it'" in done.err and "memory find" in done.err
    done = call("memory", "remove", memory, "Save the file", "Save it")
    assert done.code == 2 and "no entry of 'Save it'" in done.err
    done = call("memory", "remove", memory, "Save the file")
    assert done.code == 0 and done.out == "removed: Save the file → Guarde el archivo\n" and "1 entries" in done.err
    for other in (tmp_path / "old.tsv", tmp_path / "none.memory"):
        assert call("memory", "remove", other, "Save the file").code == 2
        assert call("memory", "edit", other, "Save the file", "x").code == 2
    assert not (tmp_path / "none.memory").exists()
