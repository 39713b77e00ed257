"""A job continues where it stopped, or says why it can't; no model is needed to test that."""

import io
import json
import os
from contextlib import contextmanager

import pytest

from translucid.ground.errors import UserError
from translucid.jobs import output as output_module
from translucid.jobs import running
from translucid.jobs.job import Done
from translucid.jobs.output import FileOutput, StreamOutput

TEXT = b"".join(b"line %d\n" % i for i in range(20)) + b"ca\xf1a\nlong\nthe last"
SIZE = 4
EXPECTED = TEXT.upper() + b"\n"


WARNING = (
    "warning: 1 of 23 lines looks wrong. 1 text is too long for the model: line 22. "
    '`form="jsonl"` shows the warnings of each line.'
)


class UppercaseJob:
    """A job that writes in capitals."""

    wrapped = False
    window = 4096

    def __init__(self, **identity):
        self.parts = {"beam": 5, "the model": "a" * 64, **identity}

    def identity(self, device):
        return {**self.parts, "the device": device}


class Crash(BaseException):
    """Simulates a power failure."""


@contextmanager
def uppercase_executor(stop_before=None):
    """Provide an executor that writes lines in capitals and crashes before window `stop_before`."""

    class Executor:
        device = "cpu"

        def __call__(self, windows):
            for number, window in enumerate(windows):
                if number == stop_before:
                    raise Crash
                text = b"".join(line.upper() + b"\n" for line in window.lines)
                bad = [(i, "not UTF-8") for i, line in enumerate(window.lines) if b"\xf1" in line]
                long = [(i, "long: a line") for i, line in enumerate(window.lines) if line == b"long"]
                yield window, Done(text, long, bad)

    yield Executor()


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(UppercaseJob, "window", SIZE)


class Pipe(io.BytesIO):
    """A stream that can't be rewound."""

    def seekable(self):
        return False


def translate(file, text=TEXT, job=None, stop_before=None, stream=io.BytesIO):
    """Run the job; return the number of bad lines and the messages."""
    messages = []
    output = FileOutput(file) if file else StreamOutput()
    bad = running.run(job or UppercaseJob(), stream(text), output, uppercase_executor(stop_before), say=messages.append)
    return bad, messages


def interrupt_job(file, after=3, **options):
    with pytest.raises(Crash):
        translate(file, stop_before=after, **options)


def file_names(folder):
    return sorted(item.name for item in folder.iterdir())


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.txt"


def test_a_whole_run_leaves_the_output_and_nothing_else(out):
    assert translate(out) == (1, ["line 21: not UTF-8", WARNING])
    assert out.read_bytes() == EXPECTED
    assert file_names(out.parent) == ["out.txt"]


def test_standard_output_gets_the_same(capfdbinary):
    assert translate(None)[0] == 1
    assert capfdbinary.readouterr().out == EXPECTED


@pytest.mark.parametrize("stream", [io.BytesIO, Pipe])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_an_interrupted_run_is_continued(out, after, stream):
    interrupt_job(out, after)
    assert not out.exists()
    with out.with_name(".out.txt.part").open("ab") as part:
        part.write(b"what a run wrote that did not live to say so\n" * 100)
    bad, messages = translate(out, stream=stream)
    assert messages == [
        f"continued after line {4 * after} of an earlier, interrupted run",
        "line 21: not UTF-8",
        WARNING,
    ]
    assert bad == 1
    assert out.read_bytes() == EXPECTED
    assert file_names(out.parent) == ["out.txt"]


@pytest.mark.parametrize("finished", [True, False])
def test_only_the_unfinished_files_of_a_killed_job_are_removed(out, finished):
    for name in ("..out.txt.part.json.999999.tmp", ".out.txt.999999.tmp", ".out.txt.old.tmp", ".other.txt.999999.tmp"):
        out.with_name(name).write_text("{")
    if finished:
        interrupt_job(out)
        translate(out)
    else:
        interrupt_job(out, 0)
    assert file_names(out.parent) == [".other.txt.999999.tmp", ".out.txt.old.tmp", *(["out.txt"] if finished else [])]


def test_bad_lines_of_the_earlier_run_are_counted(out):
    text = b"\xf1\nx\nx\nx\n" * 5
    interrupt_job(out, text=text)
    bad, messages = translate(out, text=text)
    assert bad == 5
    assert messages[1:] == []  # the earlier run reported its first three bad lines already


def test_an_interruption_before_anything_is_done_leaves_nothing(out):
    interrupt_job(out, 0)
    assert file_names(out.parent) == []


def test_an_existing_file_stays_until_the_new_one_is_complete(out):
    out.write_text("old")
    interrupt_job(out)
    assert out.read_text() == "old"
    translate(out)
    assert out.read_bytes() == EXPECTED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"beam": 4}, "beam was 5 and is 4"),
        ({"the model": "b" * 64}, "the model has changed"),
        ({"`form`": "jsonl"}, "`form` was None and is jsonl"),
    ],
)
def test_another_job_starts_over_and_says_why(out, changes, reason):
    interrupt_job(out)
    _, messages = translate(out, job=UppercaseJob(**changes))
    assert messages[0] == f"the partial output of an earlier run is thrown away: {reason}"
    assert not any("continued" in line for line in messages)
    assert out.read_bytes() == EXPECTED


def test_a_changed_input_starts_over_and_says_why(out):
    interrupt_job(out)
    _, messages = translate(out, text=TEXT.replace(b"line 3", b"line three"))
    assert messages[0] == "the partial output of an earlier run is thrown away: the input has changed"
    assert out.read_bytes() == EXPECTED.replace(b"LINE 3", b"LINE THREE")


def test_standard_input_that_has_changed_can_only_be_refused(out):
    interrupt_job(out)
    with pytest.raises(UserError, match=r"standard input is not what .* up to line 12\. Start over by deleting .*part"):
        translate(out, text=TEXT.replace(b"line 3", b"line three"), stream=Pipe)
    assert translate(out)[1][0].startswith("continued after line 12")  # nothing was lost


@pytest.mark.parametrize("count", [16, 17, 20, 23])
def test_an_input_that_has_grown_is_continued(out, count):
    """Also if the earlier input ended within a window or within a line."""
    short = b"".join(TEXT.splitlines(keepends=True)[:count])
    for cut in (0, 1):
        interrupt_job(out, 3, text=short[: len(short) - cut])
        _, messages = translate(out)
        assert messages[0].startswith("continued after line 12")
        assert out.read_bytes() == EXPECTED
        out.unlink()


def test_a_window_that_may_still_grow_is_not_kept(out, monkeypatch):
    """The job is killed between the last window and the end; then the file grows within its last line."""
    monkeypatch.setattr(FileOutput, "finish", lambda self: (_ for _ in ()).throw(Crash()))
    with pytest.raises(Crash):
        translate(out, text=TEXT[:-5])
    monkeypatch.undo()
    monkeypatch.setattr(UppercaseJob, "window", SIZE)
    translate(out)
    assert out.read_bytes() == EXPECTED


@pytest.mark.parametrize("damage", ["{", "[]", "", '{"identity": {}, "place": 3}'])
def test_a_damaged_record_starts_over(out, damage):
    interrupt_job(out)
    out.with_name(".out.txt.part.json").write_text(damage)
    assert "its record can't be read" in translate(out)[1][0]
    assert out.read_bytes() == EXPECTED


def test_a_part_that_is_too_short_starts_over(out):
    interrupt_job(out)
    part = out.with_name(".out.txt.part")
    part.write_bytes(part.read_bytes()[:-1])
    assert "some of it is lost" in translate(out)[1][0]
    assert out.read_bytes() == EXPECTED


def test_only_one_job_writes_a_file_at_a_time(out):
    with FileOutput(out):
        with pytest.raises(UserError, match="another job is writing this file"):
            translate(out)
        translate(out.with_name("other.txt"))
    translate(out)


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        translate(tmp_path / "nowhere" / "out.txt")
    assert file_names(tmp_path) == []


def test_the_record_never_claims_more_than_what_is_on_disk(out, monkeypatch):
    """Simulate a power failure at each system call that makes data durable, one after the other."""
    calls, synced = [], {}

    def crash_at(name, function, fatal):
        def call(*arguments, **keywords):
            calls.append(name)
            if len(calls) == fatal:
                raise Crash
            return function(*arguments, **keywords)

        return call

    def sync(descriptor, real_fsync=os.fsync):
        real_fsync(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    def die(self, *error):
        """Skip all cleanup: the system closes open files, and data that was not synced is lost."""
        if self.stream:
            self.stream.close()
        for file in (self.part_file, self.file):
            if file.exists():
                os.truncate(file, min(file.stat().st_size, synced.get(file.stat().st_ino, 0)))
        self.lock.release()

    for fatal in range(1, 100):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", crash_at("fsync", sync, fatal))
            patch.setattr(output_module.Path, "replace", crash_at("replace", output_module.Path.replace, fatal))
            patch.setattr(output_module.Path, "unlink", crash_at("unlink", output_module.Path.unlink, fatal))
            patch.setattr(FileOutput, "__exit__", die)
            try:
                translate(out)
                break
            except Crash:
                pass
            record = out.with_name(".out.txt.part.json")
            if out.exists():
                assert out.read_bytes() == EXPECTED
            elif record.exists():
                state = json.loads(record.read_bytes())
                synced_output = out.with_name(".out.txt.part").read_bytes()[: state["written"]]
                assert EXPECTED.startswith(synced_output) and synced_output.count(b"\n") == state["place"]["lines"]
        translate(out)
        assert out.read_bytes() == EXPECTED, f"after a crash in call {fatal}, {calls[-1]}"
        assert set(file_names(out.parent)) <= {"out.txt", ".out.txt.part.json"}
        out.unlink()
        out.with_name(".out.txt.part.json").unlink(missing_ok=True)
    assert fatal > 20
    assert {"fsync", "replace", "unlink"} == set(calls)
