"""Cached folders."""

import os

import pytest

from translucid.ground.cache import find_kept, keep


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / name)


def fill(folder):
    folder.mkdir()
    (folder / "a").write_text("a")
    (folder / ".lock").write_text("")


def test_what_was_kept_is_found_until_it_is_damaged():
    assert find_kept("thing", "ab") is None
    folder = keep("thing", "ab", fill, 3)
    (folder / "more").write_text("added later")
    assert find_kept("thing", "ab") == folder
    (folder / "a").write_text("b")
    assert find_kept("thing", "ab") is None
    assert find_kept("thing", keep("thing", "ab", fill, 3).name) == folder


@pytest.mark.parametrize("sums", ["", "[]", '{"a": 1}', '{"gone": "00"}'])
def test_sums_that_are_none_are_no_error(sums):
    (keep("thing", "ab", fill, 3) / "sha256.json").write_text(sums)
    assert find_kept("thing", "ab") is None


def test_those_used_last_stay():
    for i, name in enumerate("abc"):
        os.utime(keep("thing", name, fill, 3), (i, i))
    assert find_kept("thing", "a")
    keep("thing", "d", fill, 3)
    assert [name for name in "abcd" if find_kept("thing", name)] == ["a", "c", "d"]


def test_what_can_not_be_made_leaves_nothing():
    def fill_and_fail(folder):
        fill(folder)
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        keep("thing", "ab", fill_and_fail, 3)
    assert find_kept("thing", "ab") is None
    assert [*keep("thing", "cd", fill, 3).parent.iterdir()] == [find_kept("thing", "cd")]
