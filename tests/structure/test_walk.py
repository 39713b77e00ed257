"""The call stack from a command to the attention equation goes through the files that docs/code-walk.md names.

The tests trace the stack when the first function of `attention/attend.py` is called. They leave out `cli/main.py`,
which dispatches to the file of the command.
"""

import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import translucid
import translucid.jobs.documents
from bitext.documents.document import read_document
from translucid.cli.main import run

from ..conftest import SHAPE
from ..probes.packed import packed, types

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
BOLD = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>I like '
    "</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>soccer</w:t></w:r></w:p></w:body></w:document>"
)
"""The content of a Word file with a bold word."""
SOURCES = Path(translucid.__file__).parents[1]
ROOT = Path(__file__).resolve().parents[2]
EQUATION = "attention/attend.py"
MOST_FILES = {"Translating": 11, "Training": 8, "Translating a document": 7}
"""The maximum number of files in each walk. Calls do not count: a function that is split into steps is easier to read.
"""


def reference_mode():
    """Return the context without fast paths, or one without effect if the package has no such switch."""
    try:
        from translucid.kernels.dispatch import reference_mode as switch
    except ImportError:
        return nullcontext()
    return switch()


def walked(arguments):
    """Run a command; return the files from the command to the equation, and those of all functions called."""
    steps = []
    files = set()

    def look(frame, event, _):
        if event == "call" and not frame.f_code.co_name.startswith("<module"):
            files.add(frame.f_code.co_filename)
        if steps or event != "call" or not frame.f_code.co_filename.endswith(f"/{EQUATION}"):
            return
        while frame:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(SOURCES):
                steps.append(file.relative_to(SOURCES).as_posix().removeprefix("translucid/"))
            frame = frame.f_back

    sys.setprofile(look)
    try:
        assert run([str(argument) for argument in arguments]) == 0
    finally:
        sys.setprofile(None)
    calls = steps[::-1]
    assert calls[0] == "cli/main.py"
    return [file for file in calls if file != "cli/main.py"], files


def part_of(section):
    """Return a section of the document."""
    text = (ROOT / "docs" / "code-walk.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return part


def linked_files(section):
    """Return the files that the steps of a section of the document link to, in order."""
    part = part_of(section)
    steps = re.findall(r"^\d+\. (.*(?:\n   .*)*)", part, flags=re.MULTILINE)
    return [file for step in steps for file in re.findall(r"\]\(\.\./src/(?:translucid/)?([\w/.]+)\)", step)]


@pytest.mark.parametrize("mode", [reference_mode, nullcontext], ids=["plain", "fast"])
@pytest.mark.parametrize("section", MOST_FILES)
def test_the_files_of_a_walk_are_few_and_those_of_the_document(section, mode, small_run, corpus, tmp_path):
    document = tmp_path / "letter.docx"
    if section == "Translating":
        command = ["translate", small_run, "I like soccer", "--engine", "torch"]
    elif section == "Translating a document":
        content = packed({"[Content_Types].xml": types({"word/document.xml": WORD}), "word/document.xml": BOLD})
        read_document("letter.docx", content, (None, None))  # imports the reader; the import of a file is no call of it
        document.write_bytes(content)
        command = ["translate", small_run, document, "--output", tmp_path / "brief.docx", "--engine", "torch"]
    else:
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run"]
        limits = ["training.max_steps=1", "training.validate_every=1"]
        command = ["train", *files, "--no-tune", "--set", *SHAPE, *limits]
    with mode():
        calls, called = walked(command)
    files = list(dict.fromkeys(calls))
    if document.exists():
        # From the translator on, the walk is that of a text; the library for documents is in a table.
        files = files[: files.index("api/translator.py") + 1]
        library = {file for file in called if file.startswith(f"{SOURCES}/bitext/")}
        linked = re.findall(r"\]\(\.\./src/(bitext/[\w/.]+)\)", part_of(section))
        assert {file.removeprefix(f"{SOURCES}/") for file in library} <= set(linked)
    assert files == linked_files(section)
    assert len(files) <= MOST_FILES[section]
