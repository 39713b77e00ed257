"""Example sentences are read only from a run's own folder."""

import shutil

import pytest

from translucid.runs.run_folder import RunFolder
from translucid.serving import catalog
from translucid.serving.catalog import LONGEST_EXAMPLE, examples_of

PAIRS = "".join(f"{' '.join(['word'] * count)}\t{' '.join(['palabra'] * count)}\n" for count in (3, 5, 5, 7, 7, 9, 60))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run" / "corpus").mkdir(parents=True)
    (tmp_path / "elsewhere.tsv").write_text(PAIRS)
    (tmp_path / "run" / "corpus" / "valid.tsv").write_text(PAIRS)
    return tmp_path / "run"


def load_examples(run, folder, **data):
    configuration = RunFolder(run).configuration()
    return examples_of(folder, configuration.model_copy(update={"data": configuration.data.model_copy(update=data)}))


def test_of_validation_pairs_in_the_folder_some_of_different_lengths(run, folder):
    sentences = load_examples(run, folder, valid=["runs/moved/corpus/valid.tsv"])
    assert sentences == [" ".join(["word"] * count) for count in (5, 7, 9)]
    assert load_examples(run, folder, valid=["x/corpus/valid.tsv"], reverse=True)[0].startswith("palabra")


def test_files_elsewhere_are_not_read(run, folder):
    for name in (folder.parent / "elsewhere.tsv", "corpus/../../elsewhere.tsv", "../elsewhere.tsv"):
        assert load_examples(run, folder, valid=[str(name)]) == [], name


def test_a_link_to_a_file_elsewhere_is_not_followed(run, folder):
    (folder.parent / "secret.txt").write_text("secret\n")
    (folder / "examples.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "linked.tsv").symlink_to(folder.parent / "elsewhere.tsv")
    assert load_examples(run, folder, valid=["x/linked.tsv"]) == []


def test_a_file_of_examples_comes_first(run, folder):
    (folder / "examples.txt").write_text("One.\n\n  Two.\n" + "x" * 200 + "\nThree.\n")
    assert load_examples(run, folder, valid=["x/corpus/valid.tsv"]) == ["One.", "Two.", "Three."]
    (folder / "examples.txt").write_bytes(b"\xff\n")
    assert load_examples(run, folder) == []


def test_examples_that_are_too_long_are_left_out(run, folder):
    (folder / "examples.txt").write_text("x" * LONGEST_EXAMPLE + "\n" + "y" * (LONGEST_EXAMPLE + 1) + "\n")
    assert load_examples(run, folder) == ["x" * LONGEST_EXAMPLE]


def test_they_are_told_by_name(run, tmp_path, serve):
    copied_run = tmp_path / "moved"
    shutil.copytree(run, copied_run)
    (copied_run / "examples.txt").write_text("I like soccer\n")
    assert serve(str(copied_run), str(run)).get("/examples").json() == {"moved": ["I like soccer"], "tiny": []}


def test_of_each_length_the_first_and_at_most_six(run, folder):
    counts = [4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 11]
    lines = [f"{' '.join([f'w{i}'] * count)}\tx\n" for i, count in enumerate(counts)]
    (folder / "corpus" / "valid.tsv").write_text("".join(lines))
    expected = [" ".join([f"w{i}"] * count) for i, count in ((1, 5), (3, 7), (5, 9), (7, 11))]
    assert load_examples(run, folder, valid=["corpus/valid.tsv"]) == expected
    sentences = [f"{i}." for i in range(9)]
    (folder / "examples.txt").write_text("\n".join(sentences))
    assert load_examples(run, folder) == sentences[:6]


def test_only_the_first_pairs_are_read(run, folder):
    for lines_before, expected in ((299, ["a b c d e"]), (300, [])):
        (folder / "corpus" / "valid.tsv").write_text("x\ty\n" * lines_before + "a b c d e\tf\n")
        assert load_examples(run, folder, valid=["corpus/valid.tsv"]) == expected


def test_a_large_file_is_not_read(run, folder, monkeypatch):
    file = folder / "examples.txt"
    file.write_text("One.\n")
    assert catalog.LARGEST_FILE == 64 << 20
    for largest, expected in ((5, ["One."]), (4, [])):
        monkeypatch.setattr(catalog, "LARGEST_FILE", largest)
        assert load_examples(run, folder, valid=[]) == expected


def test_the_longest_ending_of_a_path_counts(run, folder):
    for name, text in (("valid.tsv", "one"), ("corpus/valid.tsv", "two")):
        (folder / name).write_text(f"{text} a b c d\tx\n")
    assert load_examples(run, folder, valid=["x/corpus/valid.tsv"]) == ["two a b c d"]
    assert load_examples(run, folder, valid=["/srv/run/valid.tsv", "none.tsv"]) == ["one a b c d"]
    assert load_examples(run, folder, valid=["valid.tsv", "corpus/valid.tsv"]) == ["one a b c d"]


def test_the_demo_has_examples_of_its_own(run, folder):
    configuration = RunFolder(run).configuration()
    demo = examples_of(folder, configuration.model_copy(update={"preset": "demo"}))
    assert demo == list(catalog.DEMO_TEXTS)[:6]
    assert examples_of(folder, configuration.model_copy(update={"preset": "base"})) == []
