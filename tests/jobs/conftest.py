"""Jobs as a user starts them: in a process of their own, which can be killed."""

import pytest
import torch

from tests.probes.forked import forked
from translucid.corpora.phrasebook import generate

WINDOW = 256
"""Lines that are written together, in these tests: fewer than usual, so that a text has several windows soon."""
REPLACED = {"translucid.jobs.job.Job.window": WINDOW}
QUICK = ["--beam", "1", "--max-length-ratio", "0"]
if torch.backends.mkl.is_available():  # which makes the same sums on any number of threads, to the last digit
    QUICK += ["--format", "jsonl"]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A text of five windows; in the last, a line that is empty, one that is not UTF-8, one too long for one piece.

    Only so many sentences differ, because each is translated once a window.
    """
    file = tmp_path_factory.mktemp("text") / "in.txt"
    sources = [pair.source.encode() for pair in generate(61, max_words=8)]
    lines = [sources[i % len(sources)] for i in range(1250)]
    lines[1100], lines[1101], lines[1249] = b"", b"ca\xf1a", b"I like soccer " * 150
    file.write_bytes(b"\n".join(lines))
    return file


@pytest.fixture
def start(small_run, text, tmp_path):
    """Start a job: start("--workers", 2) gives the process; its output goes to out.txt."""
    processes = []

    def starting(*options, out=tmp_path / "out.txt", **given):
        command = ["translate", small_run, "--input", text, "--output", out]
        process = forked(*command, *QUICK, *map(str, options), errors_apart=True, replaced=REPLACED, **given)
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
    process = forked("translate", small_run, "--input", text, "--output", out, *QUICK, replaced=REPLACED)
    said, _ = process.communicate()
    assert process.returncode == 2 and "1 lines are not UTF-8" in said
    return out.read_bytes()
