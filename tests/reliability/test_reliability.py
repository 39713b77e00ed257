"""The short form of `make reliability`: each trial, a few times.

Other tests resume trainings of each kind: tests/training/test_starts.py and test_running_text.py, and
tests/cli/test_classify.py.
"""

import pytest

from tests.probes import killed_jobs, outputs, refusals, training
from tests.probes.common import Start, output_of, train
from tests.probes.kinds import IMAGES, LABELS, LANGUAGE


@pytest.fixture(autouse=True)
def _forked(monkeypatch):
    monkeypatch.setattr(Start, "fork", True)


def check(finding):
    if "skipped" in finding.figures:
        pytest.skip(str(finding.figures["skipped"]))
    assert not finding.failures
    return finding.figures


def test_a_training_killed_at_random_moments_gives_the_same_run(tmp_path):
    assert check(training.kills(tmp_path, 2, 12, latest=0.7))["kills"] >= 1


def test_a_full_disk_is_reported_and_the_training_resumes(tmp_path):
    assert check(training.full_disk(tmp_path, sizes=[0.7]))["disks that are too small"] == 1


def test_a_read_only_folder_is_refused_for_training_and_good_for_translating(tmp_path):
    check(training.read_only(tmp_path))


def test_a_second_training_in_one_folder_is_refused_and_ctrl_c_ends_the_first(tmp_path):
    assert check(training.two_at_once(tmp_path))["rejected"] == 1


def test_a_process_that_is_killed_is_started_again_by_torchrun(tmp_path):
    assert check(training.lost_workers(tmp_path, 1, 16))["processes killed"] == 1


def test_a_refused_command_changes_nothing(tmp_path):
    assert check(refusals.nothing_changes(tmp_path))["refused commands"] > 24


def test_only_files_are_replaced(tmp_path):
    assert check(outputs.nothing_else_is_replaced(tmp_path, 1))["written to"] >= 3


def test_damaged_files_are_detected_or_repaired(tmp_path):
    check(training.damages(tmp_path, 9, seed=2))


def test_a_captioner_killed_at_random_moments_gives_the_same_run(tmp_path):
    figures = check(training.kills(tmp_path, 1, 6, IMAGES, latest=1))
    assert figures["kills"] >= 1 and figures["while reading the corpus"] >= 1


@pytest.mark.parametrize("kind", [LANGUAGE, LABELS, IMAGES], ids=lambda kind: kind.name)
def test_damaged_files_of_other_kinds_are_detected_or_repaired(tmp_path, kind):
    """First the files that only this kind stores."""
    check(training.damages(tmp_path, 2, kind, seed=2))


def test_a_caption_job_that_is_killed_loses_nothing(tmp_path):
    run, work = tmp_path / "run", tmp_path / "work"
    output_of(train(run, IMAGES.write(tmp_path / "corpus", IMAGES.few), 2, IMAGES))
    work.mkdir()
    counts = killed_jobs.run(work, run, kills=1, lines=300, make_job=killed_jobs.pictures, window=64)
    assert counts["kills"] >= 1 and counts["jobs"] > 0
    assert {name: counts[name] for name in killed_jobs.WRONG} == dict.fromkeys(killed_jobs.WRONG, 0)
