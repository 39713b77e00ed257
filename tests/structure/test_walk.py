"""The walk from a command to the equation of attention is as short as docs/code-walk.md says, and goes where it says.

What is traced is the stack when the first function of `attention/attend.py` is entered, from the file of the
command on; `cli/main.py` finds that file.
"""

import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import translucid
from translucid.cli.main import run

from ..conftest import SHAPE

HOUSE = Path(translucid.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
EQUATION = "attention/attend.py"
MOST_FILES = {"Translating": 11, "Training": 8}
"""The files of the walks. Calls are not counted: a function that is split into its steps is easier to read."""


def reference_mode():
    """Return what turns all fast paths off, where there is such a switch."""
    try:
        from translucid.kernels.dispatch import reference_mode as switch
    except ImportError:
        return nullcontext()
    return switch()


def walked(arguments):
    """Run a command; return the frames that lead from its file to the equation, each as the path of its file."""
    steps = []

    def look(frame, event, _):
        if steps or event != "call" or not frame.f_code.co_filename.endswith(f"/{EQUATION}"):
            return
        while frame:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(HOUSE):
                steps.append(file.relative_to(HOUSE).as_posix())
            frame = frame.f_back

    sys.setprofile(look)
    try:
        assert run([str(argument) for argument in arguments]) == 0
    finally:
        sys.setprofile(None)
    calls = steps[::-1]
    assert calls[0] == "cli/main.py"
    return [file for file in calls if file != "cli/main.py"]


def words_of(section):
    """Return the files that a section of the document links to, in order."""
    text = (ROOT / "docs" / "code-walk.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    steps = re.findall(r"^\d+\. (.*(?:\n   .*)*)", part, flags=re.MULTILINE)
    return [file for step in steps for file in re.findall(r"\]\(\.\./src/translucid/([\w/.]+)\)", step)]


@pytest.mark.parametrize("way", [reference_mode, nullcontext], ids=["plain", "fast"])
@pytest.mark.parametrize("section", MOST_FILES)
def test_the_walk_is_short_and_goes_where_the_document_says(section, way, small_run, corpus, tmp_path):
    if section == "Translating":
        command = ["translate", small_run, "I like soccer", "--engine", "torch"]
    else:
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run"]
        limits = ["training.max_steps=1", "training.validate_every=1"]
        command = ["train", *files, "--no-tune", "--set", *SHAPE, *limits]
    with way():
        calls = walked(command)
    files = list(dict.fromkeys(calls))
    assert files == words_of(section)
    assert len(files) <= MOST_FILES[section]
