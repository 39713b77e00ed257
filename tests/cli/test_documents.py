"""`translucid translate RUN FILE`: which files are documents, what is written and what is refused."""

import pytest

from translucid.api.translator import Translator
from translucid.jobs import job as job_module


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


@pytest.mark.parametrize("name", ["a.xls", "a.mo", "dir/a.odg", "notes", "a.zip", "a b.xyz"])
@pytest.mark.parametrize("exists", [True, False])
def test_the_name_of_a_file_is_no_text(call, small_run, tmp_path, monkeypatch, name, exists):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    if exists:
        (tmp_path / name).write_text("I like soccer.")
    result = call("translate", small_run, name, "--output", "out")
    if exists or name not in ("notes", "a b.xyz"):
        remedy = "Save it as .xlsx" if name == "a.xls" else "Supported:"
        assert result.code == 2 and f"{name}: is not a document that can be translated. {remedy}" in result.err
        assert result.err.count("\n") == 1 and not (tmp_path / "out").exists()
    else:
        assert result.code == 0 and (tmp_path / "out").exists()
    if exists and name in ("a.xls", "a.zip"):
        assert "is not a document that can be translated" in call("translate", small_run, "--input", name).err


def test_a_document_that_is_missing_is_no_text(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("translate", small_run, "leter.docx", "--output", "out.docx")
    assert result.code == 2 and "leter.docx: is not there. Check the path." in result.err and result.out == ""
    assert call("translate", small_run, "https://example.org/a.html").code == 0
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "leter.docx").touch()
    for options in ([], ["--output", "out/", "--overwrite"]):
        result = call("translate", small_run, "--input", "leter.docx", *options)
        assert result.code == 2 and result.err.startswith("error: leter.docx: can't be read (No such file"), result.err


def test_several_documents_need_a_folder(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.md", "docs/b.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("I like soccer.\n")
    needs_folder = "Write the translations to a folder, --output FOLDER/"
    for arguments, message in (
        (["a.md", "docs/b.md"], f"a.md: is one of 2 documents or folders. {needs_folder}"),
        (["docs"], f"docs: is a folder. {needs_folder}"),
        (["--input", "docs/"], f"docs: is a folder. {needs_folder}"),
        (["I like soccer.", "a.md"], "a.md: is a file or a folder among 2 texts"),
        (["I like soccer.", "docs"], "docs: is a file or a folder among 2 texts"),
        (["a.md", "missing.docx"], "missing.docx: is not there"),
    ):
        result = call("translate", small_run, *arguments, "--output", "out")
        assert result.code == 2 and message in result.err, result.err
        assert result.err.count("\n") == 1 and not (tmp_path / "out").exists()
    result = call("translate", small_run, "I like soccer.", "--output", "out/")
    assert (
        result.code == 2 and "out/: is a folder, not a file. Name a file; only documents go to a folder." in result.err
    )
    # A folder that exists needs no separator; one document keeps its name in it, too.
    (tmp_path / "out").mkdir()
    assert call("translate", small_run, "a.md", "--output", "out").code == 0
    assert (tmp_path / "out" / "a.md").exists()
    # Only names of folders that are there are no words.
    assert call("translate", small_run, ".", "documents", "a/b").code == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_documents_and_folders_are_written_to_a_folder(call, small_run, forked_workers, tmp_path, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    contents = {
        "docs/a.md": "I like soccer.\n",
        "docs/deep/a.md": "She works.\n",
        "docs/deep/b.xlf": '<xliff version="1.2"><file source-language="en" target-language="es" original="x"'
        ' datatype="plaintext"><body><trans-unit id="1"><source>I work.</source></trans-unit></body></file></xliff>',
        "docs/picture.png": "",
        "docs/.hidden/a.md": "hidden\n",
        "x.po": 'msgid "She works."\nmsgstr ""\n',
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    opened = []
    open_translator = job_module.open_translator
    monkeypatch.setattr(job_module, "open_translator", lambda *a: opened.append(1) or open_translator(*a))
    command = "translate", small_run, "docs", "x.po", "--output", "docs/es/", "--workers", workers
    result = call(*command)
    assert result.code == 0, result.err
    assert "1 files are of no kind that is translated: picture.png" in result.err
    written = sorted(
        str(file.relative_to(tmp_path / "docs/es")) for file in (tmp_path / "docs/es").rglob("*") if file.is_file()
    )
    assert written == ["a.md", "deep/a.md", "deep/b.xlf", "x.po"]
    if workers == 1:
        assert len(opened) == 3, "once for each kind of job: with near matches only XLIFF"
    for name in ("docs/a.md", "docs/deep/a.md", "docs/deep/b.xlf", "x.po"):
        alone = call("translate", small_run, name).out
        assert (tmp_path / "docs/es" / name.removeprefix("docs/")).read_text() == alone
    # A repeated command goes on with what is missing.
    (tmp_path / "docs/es/deep/a.md").unlink()
    (tmp_path / "docs/es/x.po").write_text("kept")
    result = call(*command)
    assert "3 of 4 documents are there already and stay; --overwrite replaces them" in result.err
    assert (tmp_path / "docs/es/deep/a.md").exists() and (tmp_path / "docs/es/x.po").read_text() == "kept"
    assert call(*command).code == 0
    assert call(*command, "--overwrite").code == 0 and (tmp_path / "docs/es/x.po").read_text() != "kept"


def test_a_document_that_fails_does_not_stop_the_others(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_bytes(b"one\n\xff\n")
    (tmp_path / "docs/b.txt").write_text("I like soccer.\n")
    result = call("translate", small_run, "docs", "--output", "es/")
    assert result.code == 2 and "docs/a.txt:2: is not UTF-8" in result.err
    assert "error: 1 of 2 documents were not translated" in result.err
    assert (tmp_path / "es/b.txt").exists() and not (tmp_path / "es/a.txt").exists()


def test_outputs_that_collide_are_refused_before_any_work(call, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one/a.txt", "two/a.txt", "empty/a.png", "file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("I like soccer.\n")
    for arguments, message in (
        (["one", "two", "--output", "es/"], "two/a.txt: and one/a.txt would both be written to es/a.txt"),
        (["one", "--output", "one"], "one/a.txt: would be replaced by its translation"),
        (["one/a.txt", "--output", "one", "--overwrite"], "one/a.txt: would be replaced by its translation"),
        (["one", "--output", "file/"], "file: is a file, not a folder"),
        (["one", "--output", "file/es/"], "file/es: can't be made (Not a directory)"),
        (["empty", "--output", "es/"], "empty: holds no document that can be translated"),
    ):
        result = call("translate", small_run, *arguments)
        assert result.code == 2 and message in result.err, result.err
        assert not (tmp_path / "es").exists() and (tmp_path / "one/a.txt").read_text() == "I like soccer.\n"


def test_a_packed_document_is_not_written_to_a_terminal(call, small_run, tmp_path, monkeypatch):
    (tmp_path / "a.docx").write_bytes(b"PK")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    result = call("translate", small_run, tmp_path / "a.docx")
    assert result.code == 2 and "is not text, and a terminal shows nothing else. Add --output FILE." in result.err


@pytest.mark.parametrize("command", ["look", "explain"])
def test_other_commands_take_no_name_of_a_file_for_words(call, small_run, tmp_path, command):
    (tmp_path / "a").write_text("I like soccer.")
    for name, what in ((tmp_path / "a", "file"), ("missing.txt", "file"), (tmp_path, "folder")):
        result = call(command, small_run, name)
        assert result.code == 2 and f"{name}: is the name of a {what}, where a text was expected" in result.err


def test_lines_with_input_stay_lines(call, small_run, tmp_path):
    (tmp_path / "a.txt").write_text("I like soccer.\n")
    result = call("translate", small_run, "--input", tmp_path / "a.txt", "--format", "jsonl")
    assert result.code == 0 and result.out.startswith("{")


@pytest.mark.parametrize(
    "options",
    [["--format", "jsonl"], ["--alignments"], ["--nbest", 2], ["--lines", "wrapped"], ["--workers", "ray:local"]],
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
