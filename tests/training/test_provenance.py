"""Where weights come from: the commit of our code, and the machine."""

import shutil
import subprocess

import pytest

from translucid import __version__
from translucid.training import provenance as module
from translucid.training.provenance import provenance


def said(step=7, processes=2, command=None, files=None):
    return provenance(files or {}, "cpu", step, processes, command)


def test_what_is_given_and_what_the_machine_has(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "physical_memory", lambda: int(2.34 * 2**30))
    file = tmp_path / "a.tsv"
    file.write_bytes(b"a\tb\n")
    row = said(files={str(file): "ab12"}, command=["train", "x"])
    assert (row["step"], row["machine"]["processes"], row["machine"]["device"]) == (7, 2, "cpu")
    assert row["machine"]["memory_gib"] == 2.3
    assert row["translucid"] == __version__
    assert row["command"] == ["translucid", "train", "x"] and said()["command"] is None
    assert row["data"] == [{"file": str(file), "bytes": 4, "sha256": "ab12"}]


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_the_commit_and_whether_the_code_was_changed_since(monkeypatch, tmp_path):
    def git(*what):
        given = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", tmp_path, *given, *what], check=True, capture_output=True, text=True).stdout

    code = tmp_path / "src" / "translucid" / "training" / "provenance.py"
    code.parent.mkdir(parents=True)
    code.write_text("one")
    monkeypatch.setattr(module, "__file__", str(code))
    assert said()["commit"] is None  # no checkout
    git("init")
    assert said()["commit"] is None  # no commit
    git("add", ".")
    git("commit", "-m", "first")
    commit = git("rev-parse", "HEAD").strip()
    (tmp_path / "new").write_text("not of the code yet")
    assert said()["commit"] == commit
    code.write_text("two")
    assert said()["commit"] == f"{commit}+changes"
