"""Output paths: files are replaced atomically; pipes and devices are written to and kept."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from translucid.ground.atomic import is_stream, output, resolve_symlinks, write_atomically, write_output
from translucid.ground.errors import UserError


def test_a_file_appears_when_it_is_complete(tmp_path):
    file = tmp_path / "a.txt"
    for content in (b"one", b"two"):
        write_output(file, content)
        assert file.read_bytes() == content

    def write_interrupted():
        with output(file) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_interrupted()
    assert file.read_bytes() == b"two"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write_output(pipe, b"content")
        assert reader.communicate(timeout=60)[0] == b"content"
    assert pipe.is_fifo()
    assert [item.name for item in tmp_path.iterdir()] == ["pipe"]


def test_a_device_is_written_to(null):
    write_output(null, b"content")
    assert null.is_char_device()
    assert [item.name for item in null.parent.iterdir()] == [null.name]


def test_a_full_device_is_one_line(full):
    with pytest.raises(UserError, match=r"full: can't be written \(No space left on device\)"):
        write_output(full, b"content")
    assert full.is_char_device()


def test_a_reader_that_has_left_is_one_line(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["head", "-c", "1", pipe], stdout=subprocess.DEVNULL)
    with pytest.raises(UserError, match=r"pipe: can't be written \(Broken pipe\)"):
        write_output(pipe, b"content" * 1_000_000)
    reader.wait(60)


@pytest.mark.parametrize("kind", ["a folder", "a socket", "a block device"])
def test_unwritable_paths_are_refused(tmp_path, kind):
    target = tmp_path / "x"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "a folder":
            target.mkdir()
        elif kind == "a socket":
            server.bind(str(target))
        else:
            try:
                os.mknod(target, stat.S_IFBLK | 0o600, os.makedev(240, 0))
            except PermissionError:
                pytest.skip("no right to make a device here")
        mode = target.stat().st_mode
        for function in (is_stream, lambda path: write_output(path, b"content")):
            with pytest.raises(UserError, match=f"x: is {kind}, not a file"):
                function(target)
        assert target.stat().st_mode == mode


def test_the_target_of_a_link_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "a.txt", tmp_path / "link"
    link.symlink_to(file)
    for content in (b"one", b"two"):  # the link is dangling at first
        write_output(link, content)
        assert file.read_bytes() == content
    assert link.is_symlink() and resolve_symlinks(link) == file
    assert [item.name for item in file.parent.iterdir()] == ["a.txt"]


def test_our_own_files_are_not_written_through_links(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "ours").symlink_to(tmp_path / "precious")
    write_atomically(tmp_path / "ours", b"content")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "ours").is_symlink()


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_names_is_appended_to(name, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    print("before", flush=True)
    write_output(Path(name), b"content\n")
    print("after", flush=True)
    assert capfd.readouterr().out == "before\ncontent\nafter\n"
    assert not list(tmp_path.iterdir())


def test_a_descriptor_that_is_not_open_is_one_line():
    with pytest.raises(UserError, match=r"/dev/fd/999: can't be written \(Bad file descriptor\)"):
        write_output(Path("/dev/fd/999"), b"content")


@pytest.mark.parametrize(("refusals", "platform", "is_replaced"), [(3, "win32", True), (1, "linux", False)])
def test_a_file_that_a_viewer_reads_is_replaced_later(refusals, platform, is_replaced, tmp_path, monkeypatch):
    file, replace, remaining = tmp_path / "a.txt", Path.replace, [refusals]
    file.write_bytes(b"before")

    def fail_first(self, target):
        if remaining[0]:
            remaining[0] -= 1
            raise PermissionError(13, "Access is denied")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_first)
    monkeypatch.setattr("sys.platform", platform)
    if is_replaced:
        write_atomically(file, b"after")
        assert file.read_bytes() == b"after"
    else:
        with pytest.raises(UserError, match="Access is denied"):
            write_atomically(file, b"after")
        assert file.read_bytes() == b"before"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]
