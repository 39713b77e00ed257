"""A distillation that is killed within or between stages resumes and gives the same pairs."""

import os
import signal
import time

import pytest

from tests.distillation.conftest import STUDENT
from tests.probes.forked import _die, forked

REPLACED = {"translucid.distillation.training_pairs.TeacherJob.window": 16}
PLACES = {
    "in the middle of translating": "translucid.distillation.training_pairs.TeacherJob.work",
    "before the record of a stage": "translucid.distillation.stages.digest",
    "between the files of a stage": "translucid.distillation.distilling.filter_by_scores",
    "before the old run is removed": "translucid.distillation.distilling.discard",
    "before the first update": "translucid.training.trainer.Trainer._update",
    "after the training": "translucid.distillation.student.measure_trained",
}


@pytest.fixture
def command(files, teacher, reverse_run, tmp_path):
    """Return a function for the arguments of the command, given the folder of the student."""

    def arguments(out):
        files_given = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--reverse", reverse_run]
        options = ["--out", out, "--choose", "nearest:3", "--skip", "report"]
        return ["distill", teacher, *files_given, *options, "--set", *STUDENT]

    return arguments


@pytest.fixture(scope="module")
def expected_pairs(files, teacher, reverse_run, tmp_path_factory):
    """Return the pairs of an uninterrupted distillation."""
    out = tmp_path_factory.mktemp("whole") / "student"
    arguments = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--reverse", reverse_run, "--out", out]
    process = forked("distill", teacher, *arguments, "--choose", "nearest:3", "--skip", "report", "--set", *STUDENT)
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    return pairs_of(out)


def pairs_of(out):
    return [(out / "distillation" / name).read_bytes() for name in ("distilled.tsv", "references.tsv", "valid.tsv")]


def test_a_command_killed_at_each_moment_resumes(command, tmp_path, expected_pairs):
    """Each command resumes the one before, and is killed at the next moment."""
    out = tmp_path / "student"
    for moment, place in PLACES.items():
        process = forked(*command(out), replaced={place: _die})
        output, _ = process.communicate(100)
        assert process.returncode == 9, (moment, output)
    process = forked(*command(out))
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    assert pairs_of(out) == expected_pairs and (out / "model.safetensors").exists()


def test_ctrl_c_and_a_kill_in_a_window(command, tmp_path, expected_pairs):
    out = tmp_path / "student"
    part = out / "distillation" / ".decoded.tsv.part.json"
    for signal_number in (signal.SIGINT, signal.SIGKILL):
        process = forked(*command(out), replaced=REPLACED)
        deadline = time.monotonic() + 60
        while not part.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(process.pid, signal_number)
        process.communicate(100)
    process = forked(*command(out), replaced=REPLACED)
    output, _ = process.communicate(100)
    assert process.returncode == 0, output
    assert pairs_of(out)[0] == expected_pairs[0]


def test_a_full_disk_is_one_line(command, tmp_path):
    out = tmp_path / "student"
    process = forked(*command(out), file_size=3000)
    output, _ = process.communicate(100)
    assert process.returncode == 2 and "can't be written" in output and "Traceback" not in output
