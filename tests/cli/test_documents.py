"""`translucid translate RUN FILE`: which files are documents, what is written and what is refused."""

import pytest

from translucid.api.translator import Translator


def test_a_document_by_its_name(call, small_run, forked_workers, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"  I like soccer.\r\n\n42\n")
    result = call("translate", small_run, tmp_path / "a.txt", "--output", tmp_path / "b.txt")
    assert result.code == 0, result.err
    text = Translator.load(small_run, "cpu").translate("I like soccer.").text
    assert (tmp_path / "b.txt").read_bytes() == f"  {text}\r\n\n42\n".encode()
    assert call("translate", small_run, tmp_path / "a.txt", "--workers", 2).out == f"  {text}\r\n\n42\n"


def test_a_translation_that_the_document_has_stays_unless_asked(call, small_run, tmp_path):
    (tmp_path / "a.po").write_text('msgid "I like soccer."\nmsgstr "Mío"\n\nmsgid "She works."\nmsgstr ""\n')
    result = call("translate", small_run, tmp_path / "a.po")
    assert result.code == 0 and "1 of 2 segments have a translation, which stays" in result.err
    assert 'msgid "I like soccer."\nmsgstr "Mío"\n' in result.out
    assert 'msgid "She works."\nmsgstr ""' not in result.out
    retranslated = call("translate", small_run, tmp_path / "a.po", "--retranslate")
    assert retranslated.code == 0 and "Mío" not in retranslated.out and "which stays" not in retranslated.err


def test_existing_files_are_not_replaced_by_default(call, small_run, tmp_path):
    (tmp_path / "a.txt").write_text("I like soccer.")
    result = call("translate", small_run, tmp_path / "a.txt", "--output", tmp_path / "a.txt")
    assert result.code == 2 and "is there already" in result.err
    assert (tmp_path / "a.txt").read_text() == "I like soccer."


def test_a_text_that_ends_like_a_document_is_a_text(call, small_run):
    result = call("translate", small_run, "I like soccer.txt")
    assert result.code == 0 and result.out.count("\n") == 1


@pytest.mark.parametrize("name", ["a.xls", "a.mo", "dir/a.ods", "notes", "a.zip", "a b.xyz"])
@pytest.mark.parametrize("exists", [True, False])
def test_the_name_of_a_file_is_no_text(call, small_run, tmp_path, monkeypatch, name, exists):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    if exists:
        (tmp_path / name).write_text("I like soccer.")
    result = call("translate", small_run, name, "--output", "out")
    if exists or name not in ("notes", "a b.xyz"):
        assert result.code == 2 and f"{name}: is not a document that can be translated. Supported:" in result.err
        assert ".docx" in result.err and result.err.count("\n") == 1 and not (tmp_path / "out").exists()
    else:
        assert result.code == 0 and (tmp_path / "out").exists()
    if exists and name in ("a.xls", "a.zip"):
        assert "is not a document that can be translated" in call("translate", small_run, "--input", name).err


def test_a_document_that_is_missing_is_no_text(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("translate", small_run, "leter.docx", "--output", "out.docx")
    assert result.code == 2 and "leter.docx: is not there. Check the path." in result.err and result.out == ""
    assert call("translate", small_run, "https://example.org/a.html").code == 0


def test_several_documents_are_refused_in_one_line(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("I like soccer.\n")
    for texts in (["a.md", "b.md"], ["I like soccer.", "b.md"], ["a.md", "missing.docx"]):
        result = call("translate", small_run, *texts, "--output", "out")
        assert result.code == 2 and "Give one document at a time, each with an --output of its own." in result.err
        assert result.err.count("\n") == 1 and not (tmp_path / "out").exists()


def test_a_packed_document_is_not_written_to_a_terminal(call, small_run, tmp_path, monkeypatch):
    (tmp_path / "a.docx").write_bytes(b"PK")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    result = call("translate", small_run, tmp_path / "a.docx")
    assert result.code == 2 and "is not text, and a terminal shows nothing else. Add --output FILE." in result.err


@pytest.mark.parametrize("command", ["look", "explain"])
def test_other_commands_take_no_name_of_a_file_for_words(call, small_run, tmp_path, command):
    (tmp_path / "a").write_text("I like soccer.")
    for name in (tmp_path / "a", "missing.txt"):
        result = call(command, small_run, name)
        assert result.code == 2 and f"{name}: is the name of a file, where a text was expected" in result.err


def test_lines_with_input_stay_lines(call, small_run, tmp_path):
    (tmp_path / "a.txt").write_text("I like soccer.\n")
    result = call("translate", small_run, "--input", tmp_path / "a.txt", "--format", "jsonl")
    assert result.code == 0 and result.out.startswith("{")


@pytest.mark.parametrize(
    "options", [["--format", "jsonl"], ["--alignments"], ["--nbest", 2], ["--wrapped"], ["--ray", "local"]]
)
def test_options_without_a_place_in_documents_are_refused(call, small_run, tmp_path, options):
    (tmp_path / "a.txt").write_text("I like soccer.")
    result = call("translate", small_run, tmp_path / "a.txt", *options)
    assert result.code == 2 and "error: a document and --" in result.err and "do not go together" in result.err
    assert call("translate", small_run, "I like soccer.", "--retranslate").code == 2


def test_a_broken_document_is_reported_in_one_line(call, small_run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\xff\n")
    result = call("translate", small_run, tmp_path / "a.txt", "--output", tmp_path / "b.txt")
    assert result.code == 2 and "a.txt:2: is not UTF-8" in result.err and result.err.count("\n") == 1
    assert not (tmp_path / "b.txt").exists()
