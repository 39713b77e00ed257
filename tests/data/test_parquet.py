"""Parquet files as pyarrow and the Hugging Face hub write them."""

import sys
from itertools import islice

import pytest

from bitext.pair import Pair
from translucid.data.readers.corpus import BATCH, placed_pairs, read_pairs
from translucid.ground.errors import UserError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def write_table(tmp_path):
    """Write columns to a file and return its name."""

    def write(**columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", row_group_size=2)
        return str(tmp_path / "a.parquet")

    return write


def test_columns_of_texts(write_table):
    texts = pyarrow.array(["uno", "dos\nlínea", "tres"]).dictionary_encode()
    file = write_table(id=[1, 2, 3], target=texts, source=["one", "two", "three"], document=["a", "a", "b"])
    pairs = list(read_pairs(file, documents=True))
    assert pairs == [Pair("one", "uno"), Pair("two", "dos línea"), Pair("three", "tres")]
    assert [pair.document - pairs[0].document for pair in pairs] == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "languages", "sides"),
    [
        ("", (None, None), "en fr"),
        (":fr-en", (None, None), "fr en"),
        ("", ("fr", None), "fr en"),
        ("", (None, "en"), "fr en"),
    ],
)
def test_a_column_of_translations(write_table, name, languages, sides):
    rows = [{"en": f"en {i}", "fr": f"fr {i}"} for i in range(3)]
    source, target = sides.split()
    expected = [Pair(f"{source} {i}", f"{target} {i}") for i in range(3)]
    assert list(read_pairs(write_table(translation=rows) + name, languages=languages)) == expected


def test_rows_without_two_texts_are_named_or_skipped(write_table):
    file = write_table(translation=[{"en": "a", "fr": "b"}, None, {"en": "c", "fr": None}, {"en": "d", "fr": "e"}])
    with pytest.raises(UserError, match=r"a\.parquet:2: translation\.en or translation\.fr is no text"):
        list(read_pairs(file))
    bad = []
    rows = list(placed_pairs(file, on_bad=bad.append))
    assert [(row.line, *row.pair) for row in rows] == [(1, "a", "b"), (4, "d", "e")]
    assert [line.line for line in bad] == [2, 3]
    with pytest.raises(UserError, match=r"a\.parquet:1: .* is no text"):
        list(read_pairs(write_table(source=[1], target=["uno"])))


def test_unreadable_files_are_one_line(write_table, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"has the columns text\. It needs columns source and target"):
        list(read_pairs(write_table(text=["a"])))
    three = write_table(translation=[{"en": "a", "fr": "b", "de": "c"}])
    for languages in ((None, None), ("de", None)):
        with pytest.raises(
            UserError,
            match=r"has translations in en, fr, de\. Name two of them after the file, as in FILE.parquet:en-fr",
        ):
            list(read_pairs(three, languages=languages))
    assert list(read_pairs(f"{three}:de-en")) == [Pair("c", "a")]
    with pytest.raises(UserError, match="is empty"):
        list(read_pairs(write_table(source=pyarrow.array([], "string"), target=pyarrow.array([], "string"))))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    for name in ("b.parquet", "missing.parquet"):
        with pytest.raises(UserError, match=rf"{name}: can't be read as Parquet"):
            list(read_pairs(tmp_path / name))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="needs the package pyarrow"):
        list(read_pairs(three))


def test_a_file_is_read_in_batches(tmp_path, monkeypatch):
    """After the first pair, one batch is decoded."""
    texts = [str(i) for i in range(3 * BATCH)]
    parquet.write_table(pyarrow.table({"source": texts, "target": texts}), tmp_path / "a.parquet")
    decoded = []
    iter_batches = parquet.ParquetFile.iter_batches

    def counting_iter_batches(*arguments, **options):
        for batch in iter_batches(*arguments, **options):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counting_iter_batches)
    assert list(islice(read_pairs(tmp_path / "a.parquet"), 2)) == [Pair("0", "0"), Pair("1", "1")]
    assert decoded == [BATCH]
