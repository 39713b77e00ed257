"""Files that are not read: recognized by their endings, and refused with advice."""

from pathlib import Path

import pytest

from bitext.readers.file_kinds import (
    has_structure,
    names_file,
    refuse_as_pairs,
    refuse_as_texts,
    refuse_documents,
    refuse_file_names,
)
from translucid.cli.arguments import pair_up
from translucid.ground.errors import UserError


def test_structure_is_told_by_the_ending():
    assert [has_structure(Path(name)) for name in ("a.DOCX", "b.tmx", "c.txt", "d", "docx")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("report.DOCX", True),
        ("readme.md", True),
        ("in/some folder", False),
        ("mine.own", True),
        ("theirs.own2", False),
        ("my report.docx", False),
        ("https://a.org/report.pdf", False),
        ("one.txt\n", False),
        ("", False),
        ("Go.", False),
        ("x" * 4092 + ".txt", True),
        ("x" * 4093 + ".txt", False),
        ("a\0b", False),
    ],
)
def test_which_texts_are_names_of_files(text, is_name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_file(text, [".own"]) is is_name


def test_an_existing_file_is_one_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some words").touch()
    assert names_file("some words", ()) and not names_file("other words", ()) and not names_file(".", ())
    refuse_file_names(["other words", "Go."])
    with pytest.raises(UserError, match="some words: is the name of a file, where a text was expected"):
        refuse_file_names(["other words", "some words"])


def test_documents_are_not_read_as_plain_text():
    for file in (None, Path("a.txt"), Path("a"), Path("a.docx.txt")):
        refuse_documents(file)
    with pytest.raises(UserError, match="is a document by its ending: only plain text is translated"):
        refuse_documents(Path("a.Docx"))
    refuse_as_texts("a.txt.gz")
    for name in ("a.html", "a.HTML.gz", "a.html.GZ"):
        with pytest.raises(UserError, match="is a page with markup by its ending, which is not read as running text"):
            refuse_as_texts(name)


def test_only_pairs_are_read_as_pairs():
    for name in ("a.tsv", "a.TMX.gz", "a.tmx.GZ", "a.parquet", "a.en.XZ", "a.tmx.bz2", "a.words", "a"):
        refuse_as_pairs(name)
    with pytest.raises(UserError, match=r"is a table by its ending.*Export it as \.tsv"):
        refuse_as_pairs("a.CSV.GZ")
    with pytest.raises(UserError, match=r"is a table of columns by its ending.*pandas has to_json"):
        refuse_as_pairs("a.arrow")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.tsv.zst", "zstd -d"),
        ("a.tsv.ZIP", "unzip"),
        ("a.tar.gz", "tar -xf"),
        ("a.tgz", "tar -xf"),
        ("a.7z", "7z x"),
        ("a.en.lz4", "lz4 -d"),
    ],
)
def test_other_compressed_files_name_the_command_that_unpacks_them(name, command):
    for refuse in (refuse_as_pairs, lambda name: pair_up([name])):
        with pytest.raises(UserError, match=f"compressed by its ending.*as with {command}; .gz, .bz2, .xz are read"):
            refuse(name)
    with pytest.raises(UserError, match=f"compressed by its ending.*as with {command}"):
        refuse_as_texts(name)
