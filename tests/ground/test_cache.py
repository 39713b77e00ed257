"""Cached folders."""

import os

import pytest

from translucid.ground.cache import add_to_cache, find_cached


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / name)


def fill(folder):
    folder.mkdir()
    (folder / "a").write_text("a")
    (folder / ".lock").write_text("")


def test_cached_folders_are_found_until_they_are_damaged():
    assert find_cached("thing", "ab") is None
    folder = add_to_cache("thing", "ab", fill, 3)
    (folder / "more").write_text("added later")
    assert find_cached("thing", "ab") == folder
    (folder / "a").write_text("b")
    assert find_cached("thing", "ab") is None
    assert find_cached("thing", add_to_cache("thing", "ab", fill, 3).name) == folder


@pytest.mark.parametrize("sums", ["", "[]", '{"a": 1}', '{"gone": "00"}'])
def test_invalid_checksums_are_no_error(sums):
    (add_to_cache("thing", "ab", fill, 3) / "sha256.json").write_text(sums)
    assert find_cached("thing", "ab") is None


def test_the_most_recently_used_folders_stay():
    for i, name in enumerate("abc"):
        os.utime(add_to_cache("thing", name, fill, 3), (i, i))
    assert find_cached("thing", "a")
    add_to_cache("thing", "d", fill, 3)
    assert [name for name in "abcd" if find_cached("thing", name)] == ["a", "c", "d"]


def test_a_failed_folder_leaves_nothing():
    def fill_and_fail(folder):
        fill(folder)
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        add_to_cache("thing", "ab", fill_and_fail, 3)
    assert find_cached("thing", "ab") is None
    assert [*add_to_cache("thing", "cd", fill, 3).parent.iterdir()] == [find_cached("thing", "cd")]
