"""The boundaries of documents in each format of a corpus."""

import json

import pytest

from bitext.pair import Pair
from translucid.data.filtering import Filter
from translucid.data.linked_pairs import Edit, LinkedPair, edited
from translucid.data.readers.corpus import SyntheticPair, read_pairs
from translucid.data.statistics import SplitStatistics
from translucid.ground.errors import UserError

TMX = """<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>"""


def unit(number, attributes="", prop=""):
    texts = f'<tuv xml:lang="en"><seg>{number}</seg></tuv><tuv xml:lang="es"><seg>n{number}</seg></tuv>'
    return f"<tu {attributes}>{prop}{texts}</tu>"


def documents(*files):
    """Return the sentences of each document; None has those without a document."""
    by_document = {}
    for pair in read_pairs(*files, documents=True):
        if pair.source.strip():
            by_document.setdefault(pair.document, []).append(pair.source)
    return by_document


def test_a_blank_line_begins_another_document(tmp_path):
    lines = ["1\t1", "2\t2", "", "3\t3", "\t", "\t ", "4\t4", "5\t5"]
    (tmp_path / "c.tsv").write_text("\n".join(lines) + "\n")
    assert list(documents(tmp_path / "c.tsv").values()) == [["1", "2"], ["3"], ["4", "5"]]
    for side in ("en", "es"):
        (tmp_path / f"c.{side}").write_text("1\n2\n\n3\n \n\n4\n5\n")
    assert list(documents(tmp_path / "c.{en,es}").values()) == [["1", "2"], ["3"], ["4", "5"]]


def test_a_line_that_is_blank_on_one_side_begins_none(tmp_path):
    (tmp_path / "c.tsv").write_text("1\t1\n\t2\n3\t3\n")
    assert list(documents(tmp_path / "c.tsv").values()) == [["1", "3"]]
    (tmp_path / "d.en").write_text("1\n\n3\n")
    (tmp_path / "d.es").write_text("1\n2\n3\n")
    assert list(documents(tmp_path / "d.{en,es}").values()) == [["1", "3"]]


def test_a_header_with_a_column_document(tmp_path):
    rows = ["id\tdocument\ttarget\tsource", "7\ta\tuno\t1", "8\ta\tdos\t2", "9\tb\ttres\t3", "9\ta\tcuatro\t4"]
    (tmp_path / "c.tsv").write_text("\n".join(rows))
    assert list(documents(tmp_path / "c.tsv").values()) == [["1", "2"], ["3"], ["4"]]
    assert next(read_pairs(tmp_path / "c.tsv")) == Pair("1", "uno")
    (tmp_path / "d.tsv").write_text("\n".join([*rows, "9\ta"]))
    with pytest.raises(UserError, match=r"d\.tsv:6: a column is missing"):
        list(read_pairs(tmp_path / "d.tsv"))
    (tmp_path / "e.tsv").write_text("source\ttarget\n1\t1\n")
    assert len(list(read_pairs(tmp_path / "e.tsv"))) == 2, "without `document` the first line is a pair like others"


def test_the_key_document_of_json_lines(tmp_path):
    names = ["a", "a", 1, 1, None, "a"]
    rows = [{"source": str(i), "target": "x", "document": name} for i, name in enumerate(names)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert list(documents(tmp_path / "c.jsonl").values()) == [["0", "1"], ["2", "3"], ["4"], ["5"]]
    (tmp_path / "d.jsonl").write_text('{"source": "a", "target": "b", "document": ["c"]}\n')
    with pytest.raises(UserError, match=r"d\.jsonl:1: document must be a string or a number"):
        list(read_pairs(tmp_path / "d.jsonl"))


def test_a_property_or_an_id_of_translation_units(tmp_path):
    prop = '<prop type="x-document">{}</prop>'.format
    units = [unit(1, "", prop("a")), unit(2, "tuid='b:1'", prop("a")), unit(3, "tuid='b:2'"), unit(4, "tuid='b:3'")]
    units += [unit(5, "tuid='9'"), unit(6), unit(7, "tuid='b:c:1'"), unit(8, "tuid='b:c:2'")]
    (tmp_path / "c.tmx").write_text(TMX.format("".join(units)))
    by_document = documents(tmp_path / "c.tmx")
    assert by_document.pop(None) == ["5", "6"]
    assert list(by_document.values()) == [["1", "2"], ["3", "4"], ["7", "8"]]


def test_each_file_begins_a_document(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("1\t1\n2\t2\n")
    (tmp_path / "c.po").write_text('msgid "1"\nmsgstr "uno"\n\nmsgid "2"\nmsgstr "dos"\n')
    assert len(documents(tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "c.po")) == 3
    assert not documents(tmp_path / "a.tsv").keys() & documents(tmp_path / "b.tsv").keys()


def test_documents_are_read_only_where_they_are_wanted(tmp_path):
    (tmp_path / "a.tsv").write_text("1\t1\n")
    (pair,) = read_pairs(tmp_path / "a.tsv")
    assert pair.document is None and not vars(pair)


def test_a_pair_stays_in_its_document_whatever_changes():
    pair = Pair("a b", "c").of_document(3)
    linked = LinkedPair.of(SyntheticPair.of(pair), [(0, 0)])
    changed = [pair.swapped, linked, linked.swapped, edited(pair, [Edit(0, 1, "x")]), edited(linked, [Edit(0, 1, "x")])]
    assert [changed_pair.document for changed_pair in changed] == [3] * 5


def test_statistics_count_the_documents(tmp_path):
    (tmp_path / "c.tsv").write_text("1\t1\n2\t2\n\n\n3\t3\n")
    (tmp_path / "d.tsv").write_text("1\t1\n")
    split = SplitStatistics("train")
    assert len(list(split.read(read_pairs(tmp_path / "c.tsv", tmp_path / "d.tsv", documents=True), Filter()))) == 6
    assert split.summary()["documents"] == 3
