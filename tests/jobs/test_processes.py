"""Jobs that are killed, interrupted, or run out of disk space or workers, in one process and in several."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.probes import killed_jobs
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.errors import UserError
from translucid.jobs.job import TranslationJob, in_this_process
from translucid.jobs.processes import processes
from translucid.jobs.windows import Place, Window
from translucid.kernels.devices import device_of_worker

from .conftest import QUICK, WINDOW


def wait_for(file, process, seconds=240):
    end = time.monotonic() + seconds
    while not file.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    assert file.exists(), process.communicate()


@pytest.fixture
def brief_run(small_run, tmp_path):
    """A model with short outputs, so that jobs finish quickly."""
    folder = tmp_path / "brief"
    shutil.copytree(small_run, folder)
    settings = (folder / "config.yaml").read_text()
    assert "max_length_extra: 4" in settings
    (folder / "config.yaml").write_text(settings.replace("max_length_extra: 4", "max_length_extra: 3"))
    return folder


@pytest.mark.parametrize(("make_input", "lines"), [(killed_jobs.texts, 320), (killed_jobs.document, 120)])
def test_jobs_killed_at_random_moments_lose_nothing(brief_run, tmp_path, make_input, lines):
    work_folder = tmp_path / "work"
    work_folder.mkdir()
    options = {"options": QUICK[:4], "window": lines // 4}
    counts = killed_jobs.run(work_folder, brief_run, kills=1, lines=lines, seed=2, make_job=make_input, **options)
    assert counts["kills"] >= 1 and counts["jobs"] > 0  # the moments of the kills depend on the machine
    assert {name: counts[name] for name in killed_jobs.WRONG} == dict.fromkeys(killed_jobs.WRONG, 0)


def test_the_probe_detects_wrong_outputs():
    def lines(*numbers):
        return "".join(f'{{"source": "{i} x"}}\n' for i in numbers).encode()

    complete = lines(0, 1, 2, 3)
    assert set(killed_jobs.compared(complete, complete, 4).values()) == {0}
    counts = {"lost": 0, "duplicated": 0, "out_of_order": 0, "different": 1}
    assert killed_jobs.compared(lines(0, 1, 3), complete, 4) == {**counts, "lost": 1}
    assert killed_jobs.compared(lines(0, 1, 1, 2, 3), complete, 4) == {**counts, "duplicated": 1}
    assert killed_jobs.compared(lines(0, 2, 1, 3), complete, 4) == {**counts, "out_of_order": 1}
    assert killed_jobs.compared(complete.replace(b"x", b"y"), complete, 4) == counts
    messages = b"".join(b'msgid "%d x"\nmsgstr "y"\n' % i for i in range(3))
    assert set(killed_jobs.compared(messages, messages, 3).values()) == {0}
    assert killed_jobs.compared(messages.replace(b"y", b"", 1), messages, 3) == {**counts, "lost": 1}


def test_a_killed_worker_is_one_clear_line_and_the_job_resumes(start, uninterrupted_output, tmp_path):
    process = start("--workers", 2)
    wait_for(tmp_path / ".out.txt.part.json", process)
    first, *others = killed_jobs.workers_of(process.pid)
    os.kill(first, signal.SIGKILL)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 2
    assert stderr.count("\n") == 1 and "a worker process was killed (SIGKILL)" in stderr and "--workers" in stderr
    assert others and not killed_jobs.still_there(others)
    process = start()
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 2 and stderr.count("\n") == 4
    assert "continued after line" in stderr
    assert "line 1102: not UTF-8" in stderr and "1 lines are not UTF-8" in stderr
    assert "1 text is too long for the model: line 1,250." in stderr
    assert (tmp_path / "out.txt").read_bytes() == uninterrupted_output  # the output of a single process
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out.txt"]


def test_ctrl_c_ends_all_processes_and_keeps_finished_lines(start, tmp_path):
    process = start("--workers", 2, own_group=True)
    wait_for(tmp_path / ".out.txt.part.json", process)
    workers = killed_jobs.workers_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the group gets the signal
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr and "the same command continues from there" in stderr
    assert len(workers) == 2 and not killed_jobs.still_there(workers)
    assert (tmp_path / ".out.txt.part").exists() and (tmp_path / ".out.txt.part.json").exists()


def test_a_full_disk_is_one_clear_line_and_the_job_resumes(start, uninterrupted_output, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    size_limit = len(b"\n".join(uninterrupted_output.split(b"\n")[: WINDOW + 60]))
    tmpfs = ["mount", "-t", "tmpfs", "-o", f"size={size_limit // 1024 + 8}k", "tmpfs", disk]
    mounted = os.geteuid() == 0 and subprocess.run(tmpfs, capture_output=True).returncode == 0
    limited = {} if mounted else {"file_size": size_limit}
    try:
        process = start(out=disk / "out.txt", **limited)
        _, stderr = process.communicate(timeout=240)
        assert process.returncode == 2
        assert stderr.count("\n") == 1 and "The first 256 lines are kept: make room" in stderr
        assert ("No space left on device" if mounted else "File too large") in stderr
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        _, stderr = start(out=disk / "out.txt").communicate(timeout=240)
        assert "continued after line 256 of an earlier, interrupted run" in stderr
        assert (disk / "out.txt").read_bytes() == uninterrupted_output
    finally:
        if mounted:
            subprocess.run(["umount", "-l", disk], check=True)


def test_results_come_in_order_and_few_windows_are_read_ahead(small_run, forked_workers):
    """Also for sampling, whose random numbers depend on a line's position in its window, and for bad lines."""
    job = TranslationJob(
        small_run, DecodingOptions(sample=True, top_k=3, max_length_ratio=0, max_length_extra=6), device="cpu"
    )
    texts = [Window([b"I like soccer"] * (i + 1), Place(i), Place(i + 1), True) for i in range(9)]
    texts[3].lines[1], texts[4].lines[2] = b"ca\xf1a", b"I like soccer " * 150
    windows_read = []

    def read_windows():
        for window in texts:
            windows_read.append(window)
            yield window

    with in_this_process(job) as run_alone:
        expected = list(run_alone(texts))
    assert expected[3][1].bad and expected[4][1].warnings
    with processes(job, 2) as executor:
        assert executor.device == "cpu"
        for i, (window, result) in enumerate(executor(read_windows())):
            assert (window, result) == expected[i]
            assert len(windows_read) - i <= 4
    assert len(set(expected[-1][1].text.split(b"\n"))) > 5


def test_errors_of_workers_are_raised_in_the_main_process(tmp_path, small_run, forked_workers):
    with pytest.raises(UserError) as error, processes(TranslationJob(tmp_path, DecodingOptions()), 1):
        pass
    assert (
        str(error.value)
        == f"{tmp_path}: is not a run folder: it has no config.yaml. Give the folder given to `train(out)`."
    )


def test_gpus_are_distributed_over_workers(monkeypatch):
    assert [device_of_worker("cpu", i) for i in range(2)] == ["cpu", "cpu"]
    monkeypatch.setattr("translucid.kernels.devices._no_gpu", lambda: False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert [device_of_worker("auto", i) for i in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [device_of_worker("cuda:1", i) for i in range(2)] == ["cuda:1", "cuda:1"]
