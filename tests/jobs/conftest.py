"""Translation jobs in a separate process, as users start them; the process can be killed."""

import pytest
import torch

from tests.probes.forked import forked
from translucid.corpora.phrasebook import generate

WINDOW = 256
"""Lines per window in these tests: fewer than usual, so that a short text has several windows."""
REPLACED = {"translucid.jobs.job.TranslationJob.window": WINDOW}
QUICK = ["--beam", "1", "--max-length-ratio", "0"]
if torch.backends.mkl.is_available():  # MKL's sums do not depend on the number of threads
    QUICK += ["--format", "jsonl"]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A text of five windows; the last one has an empty line, a line that is not UTF-8, and a line that is too long.

    Few sentences differ, because each window translates equal sentences only once.
    """
    file = tmp_path_factory.mktemp("text") / "in.txt"
    sources = [pair.source.encode() for pair in generate(61, max_words=8)]
    lines = [sources[i % len(sources)] for i in range(1250)]
    lines[1100], lines[1101], lines[1249] = b"", b"ca\xf1a", b"I like soccer " * 150
    file.write_bytes(b"\n".join(lines))
    return file


@pytest.fixture
def start(small_run, text, tmp_path):
    """Return a function that starts a job and returns its process: start("--workers", 2); it writes to out.txt."""
    processes = []

    def start_job(*options, out=tmp_path / "out.txt", **process_options):
        command = ["translate", small_run, "--input", text, "--output", out]
        process = forked(*command, *QUICK, *map(str, options), errors_apart=True, replaced=REPLACED, **process_options)
        processes.append(process)
        return process

    yield start_job
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def uninterrupted_output(small_run, text, tmp_path_factory):
    """The output of a job that is not interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out.txt"
    process = forked("translate", small_run, "--input", text, "--output", out, *QUICK, replaced=REPLACED)
    output, _ = process.communicate()
    assert process.returncode == 2 and "1 lines are not UTF-8" in output
    return out.read_bytes()
