"""Which tests `make mutation` runs on a changed file."""

import subprocess

import pytest

from benchmarks.mutation import selection
from benchmarks.mutation.selection import LEFT_OUT, ROOT, TESTS, changed_lines, nearest_tests


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("bitext/documents/tag_projection.py", "tests/documents/test_tag_projection.py"),
        ("bitext/documents/strings/table.py", "tests/documents/test_strings.py"),  # named after the folder
        ("data/cleaning.py", "tests/data/test_cleaning.py"),
        ("data/readers/texts.py", "tests/data/test_texts.py"),
        ("serving/live_sessions.py", "tests/serving/test_documented_limits.py"),  # imports it, from the package
    ],
)
def test_the_nearest_tests(changed, test):
    nearest = nearest_tests(changed, selection.tests_of(selection.place_of(changed)))
    assert test in nearest and len(nearest) < 8


def test_an_import_counts_only_as_a_whole_name(tmp_path):
    files = {"one": "from translucid.data import sampler", "two": "import translucid.data.sampler_of", "three": ""}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    tests = [str(tmp_path / name) for name in files]
    assert nearest_tests("data/sampler.py", tests) == tests[:1]


@pytest.mark.parametrize("place", TESTS)
def test_tests_of_the_page_are_left_out_and_all_others_exist(place):
    tests = selection.tests_of(place)
    assert tests and all((ROOT / test).is_file() for test in tests)
    assert not any("serving/test_page" in test for test in tests)
    assert LEFT_OUT.get(place) not in tests
    for name in TESTS[place].split():
        assert any(test.startswith(f"tests/{name}") for test in tests), f"no test in tests/{name}"


def test_every_package_has_tests():
    packages = [folder.name for folder in (ROOT / "src/translucid").iterdir() if (folder / "__init__.py").exists()]
    assert {*packages, "bitext"} <= set(TESTS)


def test_lines_that_changed_since_a_commit(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "src"
    package.mkdir()
    for name in ("changed", "same", "removed"):
        (package / f"{name}.py").write_text("a\nb\nc\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    (package / "changed.py").write_text("a\nB\nc\nd\ne\n")
    (package / "removed.py").unlink()
    (package / "new.py").write_text("x\n")
    git("add", ".")
    assert changed_lines("HEAD", package) == {"changed.py": {2, 4, 5}, "new.py": {1}}
