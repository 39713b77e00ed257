"""Output folders are replaced atomically: the old folder stays until the new one is complete."""

import shutil

import pytest

from translucid.ground.atomic import whole_folder
from translucid.ground.errors import UserError


@pytest.fixture
def old_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    return tmp_path / "out"


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def test_it_takes_the_place_of_what_was_there(old_folder, tmp_path):
    with whole_folder(old_folder) as partial:
        (partial / "new.txt").write_text("new")
        assert (old_folder / "old.txt").exists()
    assert names(tmp_path) == ["out", "out/new.txt"]


@pytest.mark.parametrize("error", [UserError("no"), OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_is_raised_leaves_what_was_there_and_no_half_of_the_new(old_folder, tmp_path, error):
    def write_and_fail():
        with whole_folder(old_folder) as partial:
            (partial / "new.txt").write_text("new")
            raise error

    with pytest.raises((UserError, KeyboardInterrupt)):
        write_and_fail()
    assert names(tmp_path) == ["out", "out/old.txt"]


def test_a_link_to_a_folder_stays_one(old_folder, tmp_path):
    (tmp_path / "link").symlink_to(old_folder)
    with whole_folder(tmp_path / "link") as partial:
        (partial / "new.txt").write_text("new")
    assert (tmp_path / "link").is_symlink() and names(old_folder) == ["new.txt"]


def test_where_the_new_one_can_not_be_put_there_the_old_one_comes_back(old_folder, tmp_path):
    with pytest.raises(UserError, match="can't be written"), whole_folder(old_folder) as partial:
        partial.rmdir()
    assert names(tmp_path) == ["out", "out/old.txt"]


def test_what_was_there_is_found_again_after_a_kill_between_the_renamings(old_folder, tmp_path):
    old_folder.rename(tmp_path / ".out.old")
    shutil.copytree(tmp_path / ".out.old", tmp_path / ".out.tmp")
    with pytest.raises(UserError), whole_folder(old_folder):
        raise UserError("no")
    assert names(tmp_path) == ["out", "out/old.txt"]
