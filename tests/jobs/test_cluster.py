"""The same job on Ray, here with two CPUs."""

import os
import signal
import sys
import time

import pytest

from translucid.corpora.phrasebook import generate
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.errors import UserError
from translucid.jobs.cluster import _ray, ray_cluster
from translucid.jobs.job import TranslationJob, in_this_process
from translucid.jobs.output import FileOutput
from translucid.jobs.running import run

WINDOW = 48


@pytest.fixture(scope="module")
def environment():
    """A MonkeyPatch for the module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def ray(environment):
    try:
        ray = _ray()
    except UserError as error:
        pytest.skip(f"RAY IS NOT TESTED: {error}. Install the extra `cluster`.")
    environment.setenv(
        "RAY_worker_niceness", "0"
    )  # otherwise its workers run at lower priority than all other processes
    ray.init("local", num_cpus=2, object_store_memory=80_000_000, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture
def text(tmp_path):
    """A text of four windows; in the second, a line that is empty, one that is not UTF-8, one too long."""
    lines = [pair.source.encode() for pair in generate(4 * WINDOW, max_words=8)]
    lines[WINDOW + 3 : WINDOW + 6] = b"", b"ca\xf1a", b"I like soccer " * 150
    file = tmp_path / "in.txt"
    file.write_bytes(b"\n".join(lines))
    return file


def test_ray_writes_what_one_process_writes_and_notices_an_input_that_changes(
    ray, small_run, text, tmp_path, monkeypatch
):
    """Ray resumes a job that a single process started, and a single process resumes Ray's."""
    monkeypatch.setattr("translucid.jobs.job.TranslationJob.window", WINDOW)
    job = TranslationJob(small_run, DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=4), device="cpu")
    messages = []

    def interrupt_after_lines(lines):
        if lines:
            raise KeyboardInterrupt

    def write_to(out, executor, **options):
        with text.open("rb") as stream:
            return run(job, stream, FileOutput(tmp_path / out), executor, say=messages.append, **options)

    assert write_to("one", in_this_process(job)) == 1
    with pytest.raises(KeyboardInterrupt):
        write_to("out", in_this_process(job), advance=interrupt_after_lines)
    summary = messages[1]
    assert summary.startswith("warning: ")
    assert f"of {4 * WINDOW} lines look wrong" in summary and "too long for the model: line" in summary
    messages.clear()
    changed_input = tmp_path / "other.txt"  # the file that the workers read
    changed_input.write_bytes(text.read_bytes()[:-1] + b"?")
    with pytest.raises(UserError, match="the input has changed while it was translated"):
        write_to("out", ray_cluster(job, changed_input, "auto", workers=1))
    assert write_to("out", in_this_process(job)) == 1
    assert messages == [
        f"continued after line {WINDOW} of an earlier, interrupted run",
        f"line {WINDOW + 5}: not UTF-8",
        f"continued after line {3 * WINDOW} of an earlier, interrupted run",
        summary,
    ]
    assert (tmp_path / "out").read_bytes() == (tmp_path / "one").read_bytes()


def test_ray_prints_nothing_among_the_translations_when_a_worker_dies(ray, capfd):
    @ray.remote(max_retries=0)
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(die.remote())
    time.sleep(1)  # Ray prints a moment later, in a thread
    assert capfd.readouterr() == ("", "")


def test_without_ray_the_user_is_told_what_to_install(small_run, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    job = TranslationJob(small_run, DecodingOptions())
    with pytest.raises(UserError, match=r"pip install 'ray\[data\]"), ray_cluster(job, text, "local"):
        pass
