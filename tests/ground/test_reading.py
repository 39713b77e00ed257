"""Files in untrusted folders: links, special files and large files are rejected."""

import os

import pytest

from bitext.reading import read_at_most, refuse_unsafe
from translucid.ground.errors import UserError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("12345")
    return folder


def test_files_and_missing_files_are_accepted(folder):
    refuse_unsafe(folder / "file", folder, 5)
    refuse_unsafe(folder / "missing", folder, 5)


def test_links_within_the_folder_and_to_the_folder_are_accepted(folder, tmp_path):
    (folder / "link").symlink_to("file")
    (tmp_path / "alias").symlink_to(folder)
    refuse_unsafe(folder / "link", folder)
    refuse_unsafe(tmp_path / "alias" / "link", tmp_path / "alias")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: file.symlink_to("../secret"), "leads out of its folder"),
        (lambda file: file.symlink_to("/dev/zero"), "leads out of its folder"),
        (lambda file: file.symlink_to(file.name), "can't be read"),
        (os.mkfifo, "is not a file"),
        (os.mkdir, "is not a file"),
        (lambda file: file.write_bytes(b"123456"), "has 6 bytes, more than 5"),
    ],
)
def test_other_paths_are_refused_without_opening_them(folder, make, message):
    make(folder / "strange")
    with pytest.raises(UserError, match=f"strange: .*{message}"):
        refuse_unsafe(folder / "strange", folder, 5)


def test_no_more_is_read_than_allowed(folder):
    assert read_at_most(folder / "file", 5) == b"12345"
    with pytest.raises(UserError, match="more than 4 bytes"):
        read_at_most(folder / "file", 4)
