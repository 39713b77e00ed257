"""Files that are replaced or removed while they are open, on emulated Windows."""

import io
import os
import re
import socket
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest

import translucid
from tests.platforms.emulated import MacOS, Windows
from translucid.cli import main, serve
from translucid.data.stores.store import CorpusStore
from translucid.ground import atomic, cache
from translucid.ground.errors import UserError
from translucid.jobs.output import FileOutput, PartRecord
from translucid.jobs.windows import Place
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, staged
from translucid.serving.job_files import JobFiles

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says which files are open")


def write_folder(folder, content):
    folder.mkdir()
    (folder / "file").write_text(content)
    return folder


@pytest.mark.parametrize("use", ["open", "mapped"])
def test_the_emulation_holds_a_file_that_is_in_use(tmp_path, use):
    file = write_folder(tmp_path / "folder", "text") / "file"
    with Windows() as windows:
        used = file.open("rb") if use == "open" else np.memmap(file, np.uint8, "r")
        for change in (
            file.unlink,
            lambda: file.rename(tmp_path / "other"),
            lambda: file.replace(tmp_path / "other"),
            lambda: file.parent.rename(tmp_path / "other"),
        ):
            with pytest.raises(PermissionError):
                change()
        assert len(windows.files.refused) == 4
        used.close() if use == "open" else used._mmap.close()
        del used
        file.parent.rename(tmp_path / "other")


def test_the_emulation_refuses_names(tmp_path):
    (tmp_path / "Legal.txt").touch()
    with Windows():
        for name in ("con", "AUX.txt", "a:b", "what?", "end."):
            with pytest.raises(OSError, match="reserved"):
                (tmp_path / name).open("w")
    for system in (Windows, MacOS):
        with system(), pytest.raises(FileExistsError, match=r"same file as Legal\.txt"):
            (tmp_path / "legal.txt").touch()


def test_the_emulation_opens_text_in_the_code_page(tmp_path):
    with Windows():
        (tmp_path / "file").write_text("€\n")
    assert (tmp_path / "file").read_bytes() == b"\x80\r\n"


def test_a_folder_in_use_is_neither_replaced_nor_removed(tmp_path):
    out, new = (write_folder(tmp_path / name, name) for name in ("out", "new"))
    with Windows(), (out / "file").open():
        with pytest.raises(PermissionError):
            atomic.replace_folder(new, out)
        atomic.remove_folder(out)
    assert [(tmp_path / name / "file").read_text() for name in ("out", "new")] == ["out", "new"]
    atomic.replace_folder(new, out)
    assert (out / "file").read_text() == "new"
    atomic.remove_folder(out)
    assert list(tmp_path.iterdir()) == []


def test_an_encoded_corpus_in_use_is_not_lost(tmp_path):
    old, new = (CorpusStore(write_folder(tmp_path / name, name)) for name in ("corpus", "corpus.next"))
    refusal = pytest.raises(UserError, match=r"can't be replaced .* Close the program")
    with Windows(), (old.files.folder / "file").open(), refusal:
        new.replace(old)
    assert (old.files.folder / "file").read_text() == "corpus"
    new.replace(old)
    assert [file.read_text() for file in tmp_path.rglob("file")] == ["corpus.next"]


def test_a_file_that_a_viewer_closes_within_a_second_is_replaced(tmp_path, monkeypatch):
    new, old = (write_folder(tmp_path / name, name) / "file" for name in ("new", "old"))
    with Windows(), old.open() as viewer:
        monkeypatch.setattr("time.sleep", lambda seconds: viewer.close())
        atomic.replace(new, old)
    assert old.read_text() == "new" and not new.exists()


def test_two_processes_that_fill_the_cache_at_once(tmp_path, monkeypatch):
    """The slower process finds the folder that the other one has made in the meantime, and uses it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    used = []

    def make(folder):
        folder.mkdir()
        (folder / "file").write_text("content")

    def make_after_another_process(folder):
        used.append((cache.add_to_cache("models", "abc", make, 4) / "file").open())
        make(folder)

    with Windows():
        folder = cache.add_to_cache("models", "abc", make_after_another_process, 4)
        assert folder == cache.find_cached("models", "abc")
        cache.add_to_cache("models", "def", make, 1)
        assert cache.find_cached("models", "abc"), "a folder in use was removed in part"
        used[0].close()
        cache.add_to_cache("models", "ghi", make, 1)
    assert not cache.find_cached("models", "abc")


@pytest.fixture
def old_run(tmp_path):
    run = RunFolder(tmp_path / "run")
    (run.path / "state").mkdir(parents=True)
    for file in (run.config_file, run.model_file, run.state_file, run.path / "events.out.tfevents.1"):
        file.write_text("old")
    return run


def begin_new_run(new):
    (new.path / "state").mkdir()
    for file in (new.config_file, new.state_file):
        file.write_text("new")


def content_of(run):
    return {file.relative_to(run.path).as_posix(): file.read_text() for file in run.path.rglob("*") if file.is_file()}


def test_a_run_that_another_program_reads_stays_when_it_can_not_be_replaced(old_run):
    before = content_of(old_run)
    refusal = pytest.raises(UserError, match=r"tfevents\.1: can't be replaced .* such as TensorBoard")
    events = old_run.path / "events.out.tfevents.1"
    with Windows(), events.open(), refusal, staged(old_run, overwrite=True) as new:
        begin_new_run(new)
    assert content_of(old_run) == before
    with Windows(), staged(old_run, overwrite=True) as new:
        begin_new_run(new)
    assert content_of(old_run) == {"config.yaml": "new", "state/checkpoint.safetensors": "new"}


def test_a_crash_while_the_old_run_is_set_aside_leads_to_the_new_one(old_run, monkeypatch):
    replace, moves = os.replace, iter(range(100))

    def crash(source, target):
        if next(moves) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt), staged(old_run, overwrite=True) as new:
            begin_new_run(new)
    finish_replacing(old_run)
    new = content_of(old_run)
    new.pop(".lock")
    assert new == {"config.yaml": "new", "state/checkpoint.safetensors": "new"}


def test_an_output_that_a_viewer_has_open_is_finished_later(tmp_path, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(atomic, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: None))
    file = tmp_path / "out.txt"
    file.write_text("before")
    record = PartRecord(identity={"job": 1}, place=Place(lines=1), written=6)
    with Windows():
        with file.open(), FileOutput(file) as output:
            output.begin(PartRecord(identity={"job": 1}))
            output.write(b"after\n", record, keep=True)
            with pytest.raises(UserError, match=r"1 lines are kept: close the program"):
                output.finish()
        assert file.read_text() == "before"
        with FileOutput(file) as output:
            output.begin(output.earlier_record(lambda: {"job": 1}, print))
            output.finish()
    assert file.read_text() == "after\n"


def test_a_document_is_corrected_and_deleted_while_it_is_sent(tmp_path):
    with Windows():
        files = JobFiles(tmp_path / "job", io.BytesIO(b"document"))
        files.store_result(b"first")
        parts, size = files.open_result()
        files.store_result(b"second")
        assert (b"".join(parts), size) == (b"first", 5)
        parts, _ = files.open_result()
        files.delete()
        assert b"".join(parts) == b"second"
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] in ([], ["result-2"])


def test_a_server_has_its_port_to_itself(monkeypatch):
    options = []
    monkeypatch.setattr(socket.socket, "setsockopt", lambda self, *option: options.append(option))
    with Windows() as windows:
        serve.bound("127.0.0.1", 0).close()
        assert options == [(socket.SOL_SOCKET, windows.facades["socket"].SO_EXCLUSIVEADDRUSE, 1)]


def test_names_of_open_streams_may_have_backslashes():
    names = ["/dev/stdout", "/dev/fd/7", "-", "out.txt"]
    assert [atomic._descriptor(PureWindowsPath(name)) for name in names] == [1, 7, 1, None]


def test_no_module_needs_posix_when_it_is_imported():
    missing = set(Windows.missing_modules.split())
    imported = set()
    for file in Path(translucid.__file__).parent.rglob("*.py"):
        # Statements without indentation run when the module is imported.
        imported |= {*re.findall(r"^(?:from|import) (\w+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)}
    assert "os" in imported
    assert not imported & missing


@pytest.mark.parametrize("name", ["con", "Aux.2024", "a:b", "../up", "a\\b", "what?", "end.", "", "tab\t"])
def test_an_adapter_gets_no_name_that_some_system_refuses(name, small_run, capsys):
    assert main.run(["memory", "learn", str(small_run), "there-is-no.memory", "--adapter", name]) == 2
    assert "can't be the name of a file" in capsys.readouterr().err


def test_an_adapter_may_have_a_usual_name():
    for name in ("legal", "legal-2024", "Recht_über", "console", "v1.2"):
        atomic.refuse_unusable_name(name)
