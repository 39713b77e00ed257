"""`translucid data guess-labels`, as it is typed."""

import json

import pytest

from translucid.cli.main import run
from translucid.data.readers.texts import read_texts

KINDS = {"pos": ["good", "lovely", "warm"], "neg": ["bad", "dull", "cold"]}


def text(label, number):
    words = KINDS[label]
    return f"a {words[number % 3]} and {words[number % 2 + 1]} film of {number}"


@pytest.fixture
def files(tmp_path):
    """Texts with labels, and without: two of the first are among them, and one line is blank."""
    labelled, rest = tmp_path / "labelled.tsv", tmp_path / "texts.txt"
    known = [f"{text(label, number)}\t{label}" for number in range(5) for label in KINDS]
    labelled.write_text("\n".join(known) + "\n")
    others = [text(label, number) for number in range(5, 105) for label in KINDS]
    rest.write_text("\n".join([*others, "", *(line.split("\t")[0] for line in known[:2])]) + "\n")
    return labelled, rest


def guess(files, out, *more):
    labelled, rest = files
    arguments = "--train", labelled, "--text", rest, "--out", out, "--dimensions", "3", *more
    return run(["data", "guess-labels", *map(str, arguments)])


def test_texts_get_labels_and_a_classifier_can_learn_from_them(files, tmp_path, capsys):
    out = tmp_path / "guessed.jsonl"
    assert guess(files, out, "--share", "1") == 0
    assert "10 texts with labels, each guessed from the others: right are 100 % of them" in capsys.readouterr().err
    found = list(read_texts(out))
    assert len(found) == 200 and not {one.source for one in found} & {one.source for one in read_texts(files[0])}
    assert all(set(one.source.split()) & set(KINDS[one.target]) for one in found)
    assert all(0.5 <= json.loads(line)["probability"] <= 1 for line in out.read_text().splitlines())
    assert guess(files, out) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_text_without_a_label_is_refused_and_nothing_written(files, tmp_path, capsys):
    labelled, out = files[0], tmp_path / "guessed.jsonl"
    labelled.write_text(labelled.read_text() + "no label here\n")
    assert guess(files, out) == 2
    assert "labelled.tsv:11: has no label" in capsys.readouterr().err
    assert not out.exists()


def test_lines_that_are_no_text_can_be_left_out(files, tmp_path, capsys):
    rest = files[1]
    texts = rest.read_bytes()
    rest.write_bytes(b"\xff\xfe\n" + texts)
    out = tmp_path / "guessed.jsonl"
    assert guess(files, out) == 2
    assert "texts.txt:1" in capsys.readouterr().err
    assert guess(files, out, "--skip-bad", "--share", "1") == 0
    assert len(out.read_text().splitlines()) == 200
