"""`translucid live`."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

from translucid import Translator
from translucid.live.input import TextStream
from translucid.live.session import LiveSession
from translucid.models.kinds import tasks
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder

LINES = "I like soccer and\nMr. Smith sees 3.5 houses. The dog eats it!\n\nWe go to the"


class Chunks:
    """A stream of bytes that arrive one after another; an exception among them is raised."""

    def __init__(self, *chunks):
        self.chunks = [*chunks]

    def read1(self, size):
        chunk = self.chunks.pop(0) if self.chunks else b""
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk


def parts(*chunks, **options):
    stream = TextStream(Chunks(*chunks), **options)
    return [tuple(part) for part in stream if part.text.strip() or part.ends], stream.unreadable


def test_lines_words_and_times_arrive_in_any_parts():
    assert parts(b"I l", b"ike\n2.", b"5\tit. 3 ", b"m\n\n7") == (
        [("I l", None, False), ("ike\n", None, False), ("it. 3 ", 2.5, False), ("m\n", 2.5, False)]
        + [("\n", None, True), ("7", None, False)],
        [],
    )
    assert parts(b"a\nb\n", lines_end=True)[0] == [("a\n", None, True), ("b\n", None, True)]
    assert parts("ñ".encode()[:1], "ñ".encode()[1:], b" x\n\xff\xfe y\nz")[1] == [2]


@pytest.fixture(scope="module")
def expected(small_run):
    """The sentences of the lines by a session."""
    session = Translator.load(small_run, engine="torch").live()
    for paragraph in LINES.split("\n\n"):
        session.read(paragraph)
        session.finish()
        session.read(" ")
    return session


def test_text_and_jsonl(call, small_run, expected):
    result = call("live", small_run, stdin=LINES.encode())
    assert result.code == 0, result.err
    *first, last = [sentence.text for sentence in expected.sentences]
    assert result.out == f"{' '.join(first)}\n{last}\n"
    rows = list(map(json.loads, call("live", small_run, "--format", "jsonl", stdin=LINES.encode()).out.splitlines()))
    assert "".join(row["text"] for row in rows if "text" in row) == expected.text
    assert [row["sentence"] for row in rows if "sentence" in row] == expected.record["sentences"]


def test_subtitles_have_the_times_of_the_input(call, small_run, tmp_path):
    timed = b"1\tI like soccer.\n6.5\tThe dog eats it.\n"
    result = call("live", small_run, "--format", "srt", "--line-length", 12, stdin=timed)
    times = [line for line in result.out.splitlines() if "-->" in line]
    assert times[0].startswith("00:00:01,000 --> ")
    assert any(line.startswith("00:00:06,500 --> ") for line in times)
    file = tmp_path / "talk.vtt"
    file.write_text("WEBVTT\n\n00:00:01.000 --> 00:00:03.000\nI like soccer.\n")
    result = call("live", small_run, "--format", "vtt", "--input", file)
    assert result.out.startswith("WEBVTT\n\n1\n00:00:03.000 --> ")


def test_a_file_is_played_in_real_time(call, small_run, tmp_path, monkeypatch):
    """Each word is read at its time, however long the translation takes; the cues have the times of the file."""
    file = tmp_path / "talk.vtt"
    file.write_text("WEBVTT\n\n00:02.000 --> 00:04.000\nI like\n\n01:00.000 --> 01:01.000\nsoccer.\n")
    now, translating, slept, read = 100.0, 0.25, [], []

    def sleep(seconds):
        nonlocal now
        slept.append(seconds)
        now += seconds

    def read_slowly(session, character):
        nonlocal now
        if character == " ":
            read.append(now - 100)
            now += translating
        return original(session, character)

    original = LiveSession.read
    monkeypatch.setattr(LiveSession, "read", read_slowly)
    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    for module in ("commands", "input"):
        monkeypatch.setattr(f"translucid.live.{module}.time", clock)
    result = call("live", small_run, "--format", "vtt", "--input", file, "--play")
    assert result.code == 0, result.err
    assert read == pytest.approx([2.333, 4, 61])
    assert slept == pytest.approx([2.333, 4 - 2.333 - translating, 57 - translating])
    translating = 90.0  # what has been said meanwhile is read at once
    slept.clear()
    assert call("live", small_run, "--format", "vtt", "--input", file, "--play").out == result.out
    assert slept == pytest.approx([2.333])
    assert call("live", small_run, "--format", "vtt", "--input", file).out == result.out and len(slept) == 1


def test_ctrl_c_writes_what_is_left(call, small_run, monkeypatch):
    translation = call("live", small_run, "--policy", "whole", stdin=b"I like soccer").out
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(
        "translucid.live.commands.input_bytes", lambda file: Chunks(b"I like soc", b"cer", KeyboardInterrupt())
    )
    monkeypatch.setattr(sys, "stdin", stream)
    result = call("live", small_run, "--policy", "whole")
    assert (result.code, result.out) == (130, translation)


def test_what_is_wrong_is_one_line(call, small_run):
    result = call("live", small_run, "--lines", "whole", stdin=b"I like soccer\n\xff\xfe\nThe dog")
    assert result.code == 2 and len(result.out.splitlines()) == 3
    assert "line 2: not UTF-8" in result.err and "1 lines are not UTF-8" in result.err
    result = call("live", small_run, "--max-words", 3, stdin=b"I like soccer and the dog")
    assert "a sentence had no end after 3 words" in result.err
    for options, message in [
        (["--line-length", 40], "are for subtitles"),
        (["--alpha", 0.5], "--policy edatt"),
        (["--attention", "decoder.9.cross"], "It has decoder.0.cross"),
    ]:
        result = call("live", small_run, *options, stdin=b"I")
        assert result.code == 2 and message in result.err


def test_models_for_other_tasks_are_refused_by_name(tmp_path, call):
    others = [task for task in tasks() if task.reads != "text"]
    assert {task.reads for task in others} >= {"images"} and len(others) == 3
    for task in others:
        run = tmp_path / task.reads
        run.mkdir()
        RunFolder(run).save_configuration(resolve(overrides={"model": {"kind": next(iter(task.kinds))}}))
        result = call("live", run, stdin=b"I like soccer.")
        assert result.code == 2 and f"{task.reads}: {task.does}" in result.err and task.command in result.err
