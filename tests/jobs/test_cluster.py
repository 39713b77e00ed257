"""The same job on Ray: here, on two CPUs."""

import io
import sys

import pytest

from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.errors import UserError
from translucid.jobs.cluster import ray_cluster
from translucid.jobs.job import Job, alone
from translucid.jobs.output import FileOutput
from translucid.jobs.running import run
from translucid.jobs.windows import Reader

from .conftest import WINDOW


@pytest.fixture(scope="module")
def environment():
    """What is set here is unset in the end."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def ray(environment):
    try:
        import ray
        import ray.data
    except ImportError as error:
        pytest.skip(f"RAY IS NOT TESTED: {error}. Install the extra `cluster`.")
    environment.setenv("RAY_worker_niceness", "0")  # else every other process goes before its workers
    ray.init("local", num_cpus=2, object_store_memory=80_000_000, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_ray_writes_what_one_process_writes_and_goes_on_where_that_stopped(ray, small_run, text, tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.jobs.job.WINDOW", WINDOW)
    job = Job(small_run, DecodingOptions(beam=1, max_length_ratio=0), "cpu")
    said = []

    def stopping(lines):
        if lines:
            raise KeyboardInterrupt

    with text.open("rb") as stream:
        assert run(job, stream, FileOutput(tmp_path / "one"), alone(job), say=said.append) == 1
    with text.open("rb") as stream, pytest.raises(KeyboardInterrupt):
        run(job, stream, FileOutput(tmp_path / "out"), alone(job), say=said.append, advance=stopping)
    summary = said[1]
    assert (
        summary.startswith("warning: ")
        and "of 1,250 lines look wrong" in summary
        and "too long for the model: line" in summary
    )
    said.clear()
    with text.open("rb") as stream:
        way = ray_cluster(job, text, "auto", workers=1)
        assert run(job, stream, FileOutput(tmp_path / "out"), way, say=said.append) == 1
    assert said[:2] == ["continued after line 256 of an earlier, interrupted run", "line 1102: not UTF-8"]
    assert said[2:] == [summary]
    assert (tmp_path / "out").read_bytes() == (tmp_path / "one").read_bytes()


def test_an_input_that_changes_meanwhile_is_noticed(ray, small_run, tmp_path):
    job = Job(small_run, DecodingOptions(beam=1), "cpu")
    text = tmp_path / "in.txt"
    text.write_text("another\n")
    windows = Reader(io.BytesIO(b"one\n")).windows()  # as it was when it was read for its places
    with (
        ray_cluster(job, text, "auto", workers=1) as on_ray,
        pytest.raises(UserError, match="the input has changed while it was translated"),
    ):
        list(on_ray(windows))


def test_without_ray_the_user_is_told_what_to_install(small_run, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    job = Job(small_run, DecodingOptions())
    with pytest.raises(UserError, match=r"pip install 'ray\[data\]"), ray_cluster(job, text, "local"):
        pass
