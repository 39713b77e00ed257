"""Killed within and between stages, a distillation goes on, and comes to the same pairs."""

import os
import signal
import time

import pytest

from tests.distillation.conftest import STUDENT
from tests.probes.forked import _die, forked

REPLACED = {"translucid.distillation.teacher.TeacherJob.window": 16}
PLACES = {
    "in the middle of translating": "translucid.distillation.teacher.TeacherWorker.work",
    "before the record of a stage": "translucid.distillation.stages.digest",
    "between the files of a stage": "translucid.distillation.distilling.by_scores",
    "while links are written": "translucid.distillation.aligning.statistical_links",
    "before the old run is removed": "translucid.distillation.distilling.discard",
    "before the training": "translucid.distillation.student.prepared",
    "before the first update": "translucid.training.trainer.Trainer._update",
    "after the training": "translucid.distillation.student.measure_trained",
}


@pytest.fixture
def command(files, teacher, reverse_run, tmp_path):
    """Return the words of the command, given the folder of the student."""

    def words(out):
        given = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--reverse", reverse_run]
        return ["distill", teacher, *given, "--out", out, "--nbest", "3", "--no-report", "--set", *STUDENT]

    return words


@pytest.fixture(scope="module")
def whole(files, teacher, reverse_run, tmp_path_factory):
    """The pairs of a distillation that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "student"
    given = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--reverse", reverse_run, "--out", out]
    process = forked("distill", teacher, *given, "--nbest", "3", "--no-report", "--set", *STUDENT)
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    return pairs_of(out)


def pairs_of(out):
    return [(out / "distillation" / name).read_bytes() for name in ("distilled.tsv", "references.tsv", "valid.tsv")]


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_command_goes_on(command, tmp_path, whole, place):
    out = tmp_path / "student"
    process = forked(*command(out), replaced={PLACES[place]: _die})
    process.communicate(100)
    assert process.returncode == 9
    process = forked(*command(out))
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    assert pairs_of(out) == whole and (out / "model.safetensors").exists()


def test_ctrl_c_and_a_kill_in_a_window(command, tmp_path, whole):
    out = tmp_path / "student"
    part = out / "distillation" / ".decoded.tsv.part.json"
    for number in (signal.SIGINT, signal.SIGKILL):
        process = forked(*command(out), replaced=REPLACED)
        until = time.monotonic() + 60
        while not part.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        os.kill(process.pid, number)
        process.communicate(100)
    process = forked(*command(out), replaced=REPLACED)
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    assert pairs_of(out)[0] == whole[0]


def test_a_full_disk_is_one_line(command, tmp_path, whole):
    out = tmp_path / "student"
    process = forked(*command(out), file_size=3000)
    output, _ = process.communicate(100)
    assert process.returncode == 2 and "can't be written" in output and "Traceback" not in output
    process = forked(*command(out))
    assert process.wait(100) == 0 and pairs_of(out) == whole
