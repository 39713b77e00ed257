"""Differences of Windows: no signal masks, pools of at most 61 processes, pipes in a code page."""

import io
import signal
import sys
from multiprocessing import resource_tracker

import pytest

from translucid.cli import main
from translucid.ground.errors import UserError
from translucid.jobs import processes
from translucid.kernels import machine
from translucid.runs.run_folder import RunFolder


def test_processes_start_without_masks_of_signals(monkeypatch):
    def missing():
        raise AttributeError("module '_posixshmem' is not there")

    monkeypatch.delattr(signal, "pthread_sigmask")
    monkeypatch.setattr(resource_tracker, "ensure_running", missing)
    with processes._no_ctrl_c():
        pass


@pytest.mark.parametrize(("platform", "expected"), [("win32", 61), ("linux", 96)])
def test_a_pool_has_at_most_61_processes(platform, expected, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(machine, "cores", lambda: 96)
    assert machine.processes() == expected


def test_files_and_pipes_get_utf8(monkeypatch):
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="cp1252"))
    main._write_utf8()
    print("▁Привет", flush=True)
    assert content.getvalue() == "▁Привет\n".encode()


def test_the_error_is_not_hidden_by_a_lock_that_cannot_go(tmp_path, monkeypatch):
    def hold_lock(self, **more):
        raise PermissionError(13, "The process cannot access the file", str(self))

    monkeypatch.setattr("pathlib.Path.unlink", hold_lock)
    with pytest.raises(UserError, match="what was wrong"), RunFolder(tmp_path / "run").locked():
        raise UserError("what was wrong")
