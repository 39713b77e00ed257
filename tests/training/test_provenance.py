"""Provenance of weights: commit, data, command and machine."""

import shutil
import subprocess

import pytest

from translucid import __version__
from translucid.training.records import record as module
from translucid.training.records.record import provenance


def provenance_of(step=7, processes=2, command=None, files=None):
    return provenance(files or {}, "cpu", step, processes, command)


def test_given_facts_and_facts_of_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "physical_memory", lambda: int(2.34 * 2**30))
    file = tmp_path / "a.tsv"
    file.write_bytes(b"a\tb\n")
    row = provenance_of(files={str(file): "ab12"}, command=["train", "x"])
    assert (row["step"], row["machine"]["processes"], row["machine"]["device"]) == (7, 2, "cpu")
    assert row["machine"]["memory_gib"] == 2.3
    assert row["translucid"] == __version__
    assert row["command"] == ["translucid", "train", "x"] and provenance_of()["command"] is None
    assert row["data"] == [{"file": str(file), "bytes": 4, "sha256": "ab12"}]


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_the_commit_and_whether_the_code_was_changed_since(monkeypatch, tmp_path):
    def git(*arguments):
        options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", tmp_path, *options, *arguments], check=True, capture_output=True, text=True
        ).stdout

    code = tmp_path / "src" / "translucid" / "training" / "provenance.py"
    code.parent.mkdir(parents=True)
    code.write_text("one")
    monkeypatch.setattr(module, "__file__", str(code))
    assert provenance_of()["commit"] is None  # not a git checkout
    git("init")
    assert provenance_of()["commit"] is None  # no commit
    git("add", ".")
    git("commit", "-m", "first")
    commit = git("rev-parse", "HEAD").strip()
    (tmp_path / "new").write_text("not of the code yet")
    assert provenance_of()["commit"] == commit
    code.write_text("two")
    assert provenance_of()["commit"] == f"{commit}+changes"
