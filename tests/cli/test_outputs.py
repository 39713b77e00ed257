"""Commands that write to files, through links, to pipes and devices, and to standard output."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from tests.probes.forked import Forked
from translucid.cli import main as main_module
from translucid.cli.main import main, run


@pytest.fixture(params=["", ".tsv", ".npz", ".json", ".html", ".svg"])
def ending(request):
    return request.param


@pytest.fixture
def writers(small_run, corpus, ending, forked_workers):
    """Commands that write a file of this ending, without its name."""
    run, pairs = small_run, corpus / "test.tsv"
    look = ["look", run, "I sing", "--save"]
    return {
        "": [
            ["translate", run, "I sing", "--output"],
            ["translate", run, "I sing", "--workers", "2", "--output"],
            ["align", run, "--pairs", pairs, "--output"],
            ["evaluate", run, "--test", pairs, "--beam", "1", "--hypotheses"],
        ],
        ".tsv": [["data", "phrasebook", "--count", "3"]],
        ".npz": [look, ["look", run, "--tsv", pairs, "--save"]],
        ".json": [look],
        ".html": [look],
        ".svg": [["draw", "positions", "--length", "5", "--out"]],
    }[ending]


def test_a_device_is_written_to_and_stays_one(call, null, writers, ending):
    node = null.rename(null.with_name(f"node{ending}"))
    for command in writers:
        for overwrite in ([], ["--overwrite"]):
            result = call(*command, node, *overwrite)
            assert result.code == 0, result.err
            assert node.is_char_device()
    assert [item.name for item in node.parent.iterdir()] == [node.name]


def test_a_pipe_gets_what_a_file_gets(call, tmp_path, writers, ending):
    file, pipe = tmp_path / f"file{ending}", tmp_path / f"pipe{ending}"
    os.mkfifo(pipe)
    for command in writers:
        assert call(*command, file, "--overwrite").code == 0
        copy = tmp_path / "copy.npz"
        with copy.open("wb") as stream:
            reader = subprocess.Popen(["cat", pipe], stdout=stream)
        try:
            result = call(*command, pipe, "--overwrite")
            assert result.code == 0, result.err
            assert pipe.is_fifo()
            reader.wait(60)
        finally:
            reader.kill()
        if ending == ".npz":  # in an unseekable file, entries have their sizes behind them
            expected, written = np.load(file), np.load(copy)
            assert expected.files == written.files
            assert all(np.array_equal(expected[name], written[name]) for name in expected.files)
        elif ending == ".svg":  # the names of its clip paths differ from picture to picture
            assert copy.stat().st_size == file.stat().st_size
        else:
            assert copy.read_bytes() == file.read_bytes()


def test_a_folder_is_refused_and_a_link_stays_one(call, tmp_path, writers, ending):
    folder, link, file = (tmp_path / f"{name}{ending}" for name in ("folder", "link", "file"))
    folder.mkdir()
    link.symlink_to(file)
    for command in writers:
        failure = call(*command, folder, "--overwrite")
        assert failure.code == 2
        assert "is a folder, not a file" in failure.err
        assert call(*command, link).code == 0
        assert link.is_symlink() and file.stat().st_size
        assert "is there already" in call(*command, link).err
        assert call(*command, link, "--overwrite").code == 0
        assert link.is_symlink() and file.stat().st_size
        file.unlink()
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([folder.name, link.name])


def _print_and_run(arguments, before):
    """Write a line to standard output, then run our command."""
    print(before, flush=True)
    main(arguments)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_name_is_standard_output(call, small_run, tmp_path, monkeypatch, name):
    arguments = ["translate", str(small_run), "I sing"]
    expected = call(*arguments).out
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "shown.txt"
    process = Forked(
        _print_and_run, [*arguments, "--output", name, "--overwrite"], "before", log=log, errors_apart=True
    )
    assert process.wait() == 0
    assert log.read_text() == f"before\n{expected}"
    assert [item.name for item in tmp_path.iterdir()] == ["shown.txt"]


def _run_into(arguments, path):
    """Run our command with a standard output that is a file or a device."""
    target = os.open(path, os.O_WRONLY)
    os.dup2(target, 1)
    os.close(target)
    main(arguments)


@pytest.mark.parametrize("output", [["--output", "FULL"], ["--output", "-"]], ids=str)
def test_a_full_device_is_one_line_that_names_it(small_run, full, output):
    names = {"FULL": str(full)}
    output = [names.get(word, word) for word in output]
    process = Forked(_run_into, ["translate", str(small_run), "I sing", *output], str(full), errors_apart=True)
    _, stderr = process.communicate()
    assert process.returncode == 2
    output_name = str(full) if str(full) in output else "standard output"
    assert stderr.startswith(f"error: {output_name}: can't be written (No space left on device)")


BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""An environment in which standard output is not written before the buffer is full, or flushed."""


@pytest.mark.parametrize("arguments", [["translate", "RUN", "I sing"], ["--version"]], ids=" ".join)
def test_a_standard_output_without_room_is_one_line_to_the_end_of_the_process(small_run, full, arguments):
    """Python flushes its buffer at exit, which must not print a second error."""
    command = [sys.executable, "-m", "translucid", *(str(small_run) if word == "RUN" else word for word in arguments)]
    with full.open("w") as stream:
        completed = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, text=True, check=False, env=BUFFERED)
    assert completed.returncode == 2
    (line,) = completed.stderr.splitlines()
    assert line.startswith("error: standard output: can't be written (No space left on device)")


def test_a_reader_that_has_ended_is_no_failure():
    command = [sys.executable, "-m", "translucid", "models"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=BUFFERED) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_without_a_temporary_folder_the_error_is_one_line(capfd, tmp_path, monkeypatch):
    def need_temporary_file(*_):
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])
        try:
            tempfile.gettempdir()
        finally:
            monkeypatch.undo()

    monkeypatch.setattr(main_module, "several", need_temporary_file)
    assert run(["data", "clean"]) == 2
    assert capfd.readouterr().err == "error: no temporary folder can be written to. Set TMPDIR to one that can.\n"
