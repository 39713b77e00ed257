"""Each stage runs once, even if the command is interrupted, and changed inputs are rejected."""

import json

import pytest

from translucid.distillation.stages import Stage, Stages
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.lock import locked_folder

FIRST = Stage("first", "doing the first", ("first.txt",))
SECOND = Stage("second", "doing the second", ("second.txt",))
AGAIN = Stage("again", "measuring", ("trial",), repeatable=True)


@pytest.fixture
def stages(tmp_path):
    """Return a function that makes new stages of the same folder: stages(overwrite=True)."""

    def new_stages(**options):
        new_stages = Stages(tmp_path / "out" / "distillation", [FIRST, SECOND, AGAIN], Console(quiet=True), **options)
        new_stages.folder.mkdir(parents=True, exist_ok=True)
        return new_stages

    return new_stages


def writing(stages, name, text="done"):
    """Return the work of a stage and a list with an entry for each time it runs."""
    runs = []

    def work():
        runs.append(name)
        (stages.folder / name).write_text(text)
        return {"text": text}

    return work, runs


def test_a_finished_stage_is_not_repeated(stages):
    work, runs = writing(stages(), "first.txt")
    assert stages().run(FIRST, {"a": 1}, work) == stages().run(FIRST, {"a": 1}, work) == {"text": "done"}
    assert runs == ["first.txt"]
    assert stages().results(FIRST) == {"text": "done"}
    assert stages().label(SECOND) == "2 of 3: doing the second"


def test_an_interrupted_stage_is_started_again(stages):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stages().run(FIRST, {}, interrupt)
    assert stages().begun(FIRST) and not stages().begun(SECOND)
    work, runs = writing(stages(), "first.txt")
    stages().run(FIRST, {}, work)
    assert runs == ["first.txt"]


def test_a_stage_whose_file_is_gone_is_repeated(stages):
    work, runs = writing(stages(), "first.txt")
    stages().run(FIRST, {}, work)
    (stages().folder / "first.txt").unlink()
    stages().run(FIRST, {}, work)
    assert len(runs) == 2


def test_a_stage_of_a_version_that_named_flags_is_complete(stages):
    work, runs = writing(stages(), "first.txt")
    stages().run(FIRST, {"--format": "text", "--mbr": 0, "the run of --rerank-with": None}, work)
    current = {"`form`": "text", "`risk_candidates`": 0, "the run of `ranking`": None}
    stages().run(FIRST, current, work)
    assert len(runs) == 1
    with pytest.raises(UserError, match=r"`form` was text and is jsonl"):
        stages().run(FIRST, {**current, "`form`": "jsonl"}, work)


def test_other_inputs_are_refused_or_the_stages_from_there_on_are_repeated(stages):
    first, first_runs = writing(stages(), "first.txt")
    second, second_runs = writing(stages(), "second.txt")
    stages().run(FIRST, {"the model": "a" * 64}, first)
    stages().run(SECOND, {"beam": 5, "bounds": (1, None)}, second)
    stages().run(SECOND, {"beam": 5, "bounds": (1, None)}, second)
    with pytest.raises(UserError, match=r"stage 2 of 3: .* beam was 5 and is 1\. .*`overwrite=True`"):
        stages().run(SECOND, {"beam": 1, "bounds": (1, None)}, second)
    with pytest.raises(UserError, match="the model has changed"):
        stages().run(FIRST, {"the model": "b" * 64}, first)
    assert (stages().folder / "second.txt").exists()
    stages(overwrite=True).run(FIRST, {"the model": "b" * 64}, first)
    assert not (stages().folder / "second.txt").exists() and not stages().begun(SECOND)
    assert len(first_runs) == 2 and len(second_runs) == 1
    stages(overwrite=True).run(FIRST, {"the model": "b" * 64}, first)  # nothing has changed
    assert len(first_runs) == 2


def test_a_stage_that_takes_little_time_is_repeated_without_asking(stages):
    runs = []
    for number in (1, 1, 2):
        stages().run(AGAIN, {"number": number}, lambda: runs.append(1) or {})
        if number == 1:
            (stages().folder / "trial").mkdir(exist_ok=True)
    assert len(runs) == 2 and not (stages().folder / "trial").exists()


def test_a_damaged_record_and_a_second_process_are_reported(stages):
    folder = stages().folder
    with (
        locked_folder(folder, "distillation"),
        pytest.raises(UserError, match="another distillation is at work"),
        locked_folder(folder, "distillation"),
    ):
        pass
    (stages().folder / "first.json").write_text(json.dumps({"identity": 3}))
    with pytest.raises(UserError, match="can't be read as the record of a stage"):
        stages().run(FIRST, {}, dict)
