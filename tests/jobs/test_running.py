"""A job goes on where it stopped, whatever stopped it, or says why it does not. No model is needed to see that."""

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
WANTED = TEXT.upper() + b"\n"


WARNING = (
    "warning: 1 of 23 lines looks wrong. 1 text is too long for the model: line 22. "
    "--format jsonl shows the warnings of each line."
)


class Shouting:
    """A job that writes in capitals."""

    wrapped = False
    window = 4096

    def __init__(self, **identity):
        self.made_of = {"beam": 5, "the model": "a" * 64, **identity}

    def identity(self, device):
        return {**self.made_of, "the device": device}


class Crash(BaseException):
    """The plug is pulled."""


@contextmanager
def shouting(stop_before=None):
    """Be a way to do it; the plug is pulled before a window, if so told."""

    class Way:
        device = "cpu"

        def __call__(self, windows):
            for number, window in enumerate(windows):
                if number == stop_before:
                    raise Crash
                text = b"".join(line.upper() + b"\n" for line in window.lines)
                bad = [(i, "not UTF-8") for i, line in enumerate(window.lines) if b"\xf1" in line]
                long = [(i, "long: a line") for i, line in enumerate(window.lines) if line == b"long"]
                yield window, Done(text, long, bad)

    yield Way()


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(Shouting, "window", SIZE)


class Pipe(io.BytesIO):
    """What can't be rewound."""

    def seekable(self):
        return False


def translate(file, text=TEXT, job=None, stop_before=None, stream=io.BytesIO):
    """Run the job; return how many lines were bad and what was said."""
    said = []
    target = FileOutput(file) if file else StreamOutput()
    bad = running.run(job or Shouting(), stream(text), target, shouting(stop_before), say=said.append)
    return bad, said


def interrupt(file, after=3, **given):
    with pytest.raises(Crash):
        translate(file, stop_before=after, **given)


def files(folder):
    return sorted(item.name for item in folder.iterdir())


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.txt"


def test_a_whole_run_leaves_the_output_and_nothing_else(out):
    assert translate(out) == (1, ["line 21: not UTF-8", WARNING])
    assert out.read_bytes() == WANTED
    assert files(out.parent) == ["out.txt"]


def test_standard_output_gets_the_same(capfdbinary):
    assert translate(None)[0] == 1
    assert capfdbinary.readouterr().out == WANTED


@pytest.mark.parametrize("stream", [io.BytesIO, Pipe])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_an_interrupted_run_is_continued(out, after, stream):
    interrupt(out, after)
    assert not out.exists()
    with out.with_name(".out.txt.part").open("ab") as part:
        part.write(b"what a run wrote that did not live to say so\n" * 100)
    bad, said = translate(out, stream=stream)
    assert said == [
        f"continued after line {4 * after} of an earlier, interrupted run",
        "line 21: not UTF-8",
        WARNING,
    ]
    assert bad == 1
    assert out.read_bytes() == WANTED
    assert files(out.parent) == ["out.txt"]


@pytest.mark.parametrize("finished", [True, False])
def test_what_a_killed_run_was_writing_is_cleared_away_and_nothing_else(out, finished):
    for name in ("..out.txt.part.json.999999.tmp", ".out.txt.999999.tmp", ".out.txt.old.tmp", ".other.txt.999999.tmp"):
        out.with_name(name).write_text("{")
    if finished:
        interrupt(out)
        translate(out)
    else:
        interrupt(out, 0)
    assert files(out.parent) == [".other.txt.999999.tmp", ".out.txt.old.tmp", *(["out.txt"] if finished else [])]


def test_bad_lines_of_the_earlier_run_are_counted(out):
    text = b"\xf1\nx\nx\nx\n" * 5
    interrupt(out, text=text)
    bad, said = translate(out, text=text)
    assert bad == 5
    assert said[1:] == []  # the first three were told of before


def test_an_interruption_before_anything_is_done_leaves_nothing(out):
    interrupt(out, 0)
    assert files(out.parent) == []


def test_what_was_there_before_stays_until_the_new_one_is_whole(out):
    out.write_text("old")
    interrupt(out)
    assert out.read_text() == "old"
    translate(out)
    assert out.read_bytes() == WANTED


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"beam": 4}, "beam was 5 and is 4"),
        ({"the model": "b" * 64}, "the model has changed"),
        ({"--format": "jsonl"}, "--format was None and is jsonl"),
    ],
)
def test_another_job_starts_over_and_says_why(out, changed, why):
    interrupt(out)
    _, said = translate(out, job=Shouting(**changed))
    assert said[0] == f"the partial output of an earlier run is thrown away: {why}"
    assert not any("continued" in line for line in said)
    assert out.read_bytes() == WANTED


def test_a_changed_input_starts_over_and_says_why(out):
    interrupt(out)
    _, said = translate(out, text=TEXT.replace(b"line 3", b"line three"))
    assert said[0] == "the partial output of an earlier run is thrown away: the input has changed"
    assert out.read_bytes() == WANTED.replace(b"LINE 3", b"LINE THREE")


def test_standard_input_that_has_changed_can_only_be_refused(out):
    interrupt(out)
    with pytest.raises(UserError, match=r"standard input is not what .* up to line 12\. Start over by deleting .*part"):
        translate(out, text=TEXT.replace(b"line 3", b"line three"), stream=Pipe)
    assert translate(out)[1][0].startswith("continued after line 12")  # nothing was lost


@pytest.mark.parametrize("at", [16, 17, 20, 23])
def test_an_input_that_has_grown_is_continued(out, at):
    """Also where it ended within a window or within a line."""
    short = b"".join(TEXT.splitlines(keepends=True)[:at])
    for cut in (0, 1):
        interrupt(out, 3, text=short[: len(short) - cut])
        _, said = translate(out)
        assert said[0].startswith("continued after line 12")
        assert out.read_bytes() == WANTED
        out.unlink()


def test_a_window_that_may_still_grow_is_not_kept(out, monkeypatch):
    """Killed between the last window and the end, then the file grows within its last line."""
    monkeypatch.setattr(FileOutput, "finish", lambda self: (_ for _ in ()).throw(Crash()))
    with pytest.raises(Crash):
        translate(out, text=TEXT[:-5])
    monkeypatch.undo()
    monkeypatch.setattr(Shouting, "window", SIZE)
    translate(out)
    assert out.read_bytes() == WANTED


@pytest.mark.parametrize("damage", ["{", "[]", "", '{"identity": {}, "place": 3}'])
def test_a_damaged_record_starts_over(out, damage):
    interrupt(out)
    out.with_name(".out.txt.part.json").write_text(damage)
    assert "its record can't be read" in translate(out)[1][0]
    assert out.read_bytes() == WANTED


def test_a_part_that_is_too_short_starts_over(out):
    interrupt(out)
    part = out.with_name(".out.txt.part")
    part.write_bytes(part.read_bytes()[:-1])
    assert "some of it is lost" in translate(out)[1][0]
    assert out.read_bytes() == WANTED


def test_only_one_job_writes_a_file_at_a_time(out):
    with FileOutput(out):
        with pytest.raises(UserError, match="another job is writing this file"):
            translate(out)
        translate(out.with_name("other.txt"))
    translate(out)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        translate(tmp_path / "nowhere" / "out.txt")
    assert files(tmp_path) == []


def test_the_record_speaks_only_of_what_is_on_the_disk(out, monkeypatch):
    """At each call of the system that makes something last, one after the other, the plug is pulled."""
    calls, synced = [], {}

    def fragile(name, function, fatal):
        def calling(*arguments, **named):
            calls.append(name)
            if len(calls) == fatal:
                raise Crash
            return function(*arguments, **named)

        return calling

    def syncing(descriptor, really=os.fsync):
        really(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    def die(self, *error):
        """Tidy nothing. The system closes what was open, and what was not synced is gone."""
        if self.stream:
            self.stream.close()
        for file in (self.part, self.file):
            if file.exists():
                os.truncate(file, min(file.stat().st_size, synced.get(file.stat().st_ino, 0)))
        self.lock.release()

    for fatal in range(1, 100):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fragile("fsync", syncing, fatal))
            patch.setattr(output_module.Path, "replace", fragile("replace", output_module.Path.replace, fatal))
            patch.setattr(output_module.Path, "unlink", fragile("unlink", output_module.Path.unlink, fatal))
            patch.setattr(FileOutput, "__exit__", die)
            try:
                translate(out)
                break
            except Crash:
                pass
            record = out.with_name(".out.txt.part.json")
            if out.exists():
                assert out.read_bytes() == WANTED
            elif record.exists():
                told = json.loads(record.read_bytes())
                good = out.with_name(".out.txt.part").read_bytes()[: told["written"]]
                assert WANTED.startswith(good) and good.count(b"\n") == told["place"]["lines"]
        translate(out)
        assert out.read_bytes() == WANTED, f"after a crash in call {fatal}, {calls[-1]}"
        assert set(files(out.parent)) <= {"out.txt", ".out.txt.part.json"}
        out.unlink()
        out.with_name(".out.txt.part.json").unlink(missing_ok=True)
    assert fatal > 20
    assert {"fsync", "replace", "unlink"} == set(calls)
