"""Output folders are replaced atomically: the old folder stays until the new one is complete."""

import shutil

import pytest

from translucid.ground.atomic import atomic_folder
from translucid.ground.errors import UserError


@pytest.fixture
def old_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    return tmp_path / "out"


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def test_the_new_folder_replaces_the_old_one(old_folder, tmp_path):
    with atomic_folder(old_folder) as partial:
        (partial / "new.txt").write_text("new")
        assert (old_folder / "old.txt").exists()
    assert names(tmp_path) == ["out", "out/new.txt"]


@pytest.mark.parametrize("error", [UserError("no"), OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_folder_and_no_part_of_the_new_one(old_folder, tmp_path, error):
    def write_and_fail():
        with atomic_folder(old_folder) as partial:
            (partial / "new.txt").write_text("new")
            raise error

    with pytest.raises((UserError, KeyboardInterrupt)):
        write_and_fail()
    assert names(tmp_path) == ["out", "out/old.txt"]


def test_a_link_to_a_folder_stays_one(old_folder, tmp_path):
    (tmp_path / "link").symlink_to(old_folder)
    with atomic_folder(tmp_path / "link") as partial:
        (partial / "new.txt").write_text("new")
    assert (tmp_path / "link").is_symlink() and names(old_folder) == ["new.txt"]


def test_the_old_folder_is_restored_if_the_replacement_fails(old_folder, tmp_path):
    with pytest.raises(UserError, match="can't be written"), atomic_folder(old_folder) as partial:
        partial.rmdir()
    assert names(tmp_path) == ["out", "out/old.txt"]


def test_the_old_folder_is_restored_after_a_kill_between_the_renames(old_folder, tmp_path):
    old_folder.rename(tmp_path / ".out.old")
    shutil.copytree(tmp_path / ".out.old", tmp_path / ".out.tmp")
    with pytest.raises(UserError), atomic_folder(old_folder):
        raise UserError("no")
    assert names(tmp_path) == ["out", "out/old.txt"]
