"""Jobs as a user starts them: in a process of their own, which can be killed."""

import subprocess
import sys

import pytest
import torch

from translucid.corpora.phrasebook import generate

QUICK = ["--beam", "1", "--max-length-ratio", "0"]
if torch.backends.mkl.is_available():  # which makes the same sums on any number of threads, to the last digit
    QUICK += ["--format", "jsonl"]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A text of five windows; in the last, a line that is empty, one that is not UTF-8, one too long for one piece.

    Only so many sentences differ, because each is translated once a window.
    """
    file = tmp_path_factory.mktemp("text") / "in.txt"
    sources = [pair.source.encode() for pair in generate(211, max_words=8)]
    lines = [sources[i % len(sources)] for i in range(20_000)]
    lines[17_000], lines[17_001], lines[19_999] = b"", b"ca\xf1a", b"I like soccer " * 150
    file.write_bytes(b"\n".join(lines))
    return file


@pytest.fixture
def start(small_run, text, tmp_path):
    """Start a job: start("--workers", 2) gives the process; its output goes to out.txt."""
    processes = []

    def starting(*options, out=tmp_path / "out.txt", **given):
        command = [sys.executable, "-m", "translucid", "translate", small_run, "--input", text, "--output", out]
        process = subprocess.Popen(
            [str(word) for word in [*command, *QUICK, *options]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **given,
        )
        processes.append(process)
        return process

    yield starting
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def whole(small_run, text, tmp_path_factory):
    """What comes out for the text when nothing is in the way."""
    out = tmp_path_factory.mktemp("whole") / "out.txt"
    command = [sys.executable, "-m", "translucid", "translate", str(small_run), "--input", str(text)]
    done = subprocess.run([*command, "--output", str(out), *QUICK], capture_output=True, text=True)
    assert done.returncode == 2 and "1 lines are not UTF-8" in done.stderr
    return out.read_bytes()
