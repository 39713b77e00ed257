"""Each stage is done once, whatever stops the command, and not with other inputs than before."""

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
    """Return new stages of the same folder: stages(overwrite=True)."""

    def made(**options):
        made = Stages(tmp_path / "out" / "distillation", [FIRST, SECOND, AGAIN], Console(quiet=True), **options)
        made.folder.mkdir(parents=True, exist_ok=True)
        return made

    return made


def writing(stages, name, text="done"):
    """Return the work of a stage, and a list that shows how often it was done."""
    done = []

    def work():
        done.append(name)
        (stages.folder / name).write_text(text)
        return {"text": text}

    return work, done


def test_a_finished_stage_is_not_repeated(stages):
    work, done = writing(stages(), "first.txt")
    assert stages().run(FIRST, {"a": 1}, work) == stages().run(FIRST, {"a": 1}, work) == {"text": "done"}
    assert done == ["first.txt"]
    assert stages().results(FIRST) == {"text": "done"}
    assert stages().label(SECOND) == "2 of 3: doing the second"


def test_an_interrupted_stage_is_started_again(stages):
    def dying():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stages().run(FIRST, {}, dying)
    assert stages().begun(FIRST) and not stages().begun(SECOND)
    work, done = writing(stages(), "first.txt")
    stages().run(FIRST, {}, work)
    assert done == ["first.txt"]


def test_a_stage_whose_file_is_gone_is_repeated(stages):
    work, done = writing(stages(), "first.txt")
    stages().run(FIRST, {}, work)
    (stages().folder / "first.txt").unlink()
    stages().run(FIRST, {}, work)
    assert len(done) == 2


def test_other_inputs_are_refused_or_the_stages_from_there_on_are_repeated(stages):
    first, done_first = writing(stages(), "first.txt")
    second, done_second = writing(stages(), "second.txt")
    stages().run(FIRST, {"the model": "a" * 64}, first)
    stages().run(SECOND, {"beam": 5, "bounds": (1, None)}, second)
    stages().run(SECOND, {"beam": 5, "bounds": (1, None)}, second)
    with pytest.raises(UserError, match=r"stage 2 of 3: .* beam was 5 and is 1\. .*--overwrite"):
        stages().run(SECOND, {"beam": 1, "bounds": (1, None)}, second)
    with pytest.raises(UserError, match="the model has changed"):
        stages().run(FIRST, {"the model": "b" * 64}, first)
    assert (stages().folder / "second.txt").exists()
    stages(overwrite=True).run(FIRST, {"the model": "b" * 64}, first)
    assert not (stages().folder / "second.txt").exists() and not stages().begun(SECOND)
    assert len(done_first) == 2 and len(done_second) == 1
    stages(overwrite=True).run(FIRST, {"the model": "b" * 64}, first)  # nothing has changed
    assert len(done_first) == 2


def test_a_stage_that_takes_little_time_is_repeated_without_asking(stages):
    done = []
    for number in (1, 1, 2):
        stages().run(AGAIN, {"number": number}, lambda: done.append(1) or {})
        if number == 1:
            (stages().folder / "trial").mkdir(exist_ok=True)
    assert len(done) == 2 and not (stages().folder / "trial").exists()


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
