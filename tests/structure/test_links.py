"""Every path that a file of the project names exists, and every link leads to a heading that GitHub also knows."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "translucid"
TEXTS = {".md", ".py", ".yaml", ".yml", ".toml", ".ipynb", ".js", ".css", ".html", ""}
PATH = re.compile(
    r"(?<![\w/.*<>{}$:-])((?:[\w.-]+/)+[\w.-]*\w\.(?:md|py|ya?ml|json|ipynb|toml|js|css|html))(?!\w)(#[\w-]+)?"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PLACEHOLDERS = ("cli/NAME.py", "layers/NAME.py", "tests/layers/test_NAME.py")


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is not a clone")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def roots():
    """Return the folders that the first part of a path may be in: that of the project, and that of the package."""
    folders = {}
    for parent in (PACKAGE, ROOT):
        for folder in parent.iterdir():
            if folder.is_dir() and folder.name not in ("runs", "build", "dist", "lessons"):
                folders[folder.name] = parent
    return folders


@cache
def anchors(page):
    """Return the anchors that GitHub gives the headings of a page, and those that the page defines itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    names, counts = set(re.findall(r'<a id="([\w-]+)"', text)), {}
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        count = counts[name] = counts.get(name, -1) + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def is_right(target, anchor):
    return target.exists() and (not anchor or target.suffix != ".md" or anchor in anchors(target))


def test_every_path_that_a_file_names_exists():
    known, wrong, checked = roots(), [], 0
    for file in tracked():
        in_tests = file.is_relative_to(ROOT / "tests")
        if file.suffix not in TEXTS or in_tests or file.name in ("CHANGELOG.md", "mutation.json", "mutation.md"):
            continue
        for path, anchor in PATH.findall(file.read_text(encoding="utf-8", errors="ignore")):
            parent = known.get(path.split("/")[0])
            if parent is None or path in PLACEHOLDERS:
                continue
            checked += 1
            # A page also links from its own folder.
            candidates = [place / path for place in (ROOT, PACKAGE, ROOT / "tests", file.parent)]
            if not any(is_right(candidate, anchor.removeprefix("#")) for candidate in candidates):
                wrong.append(f"{file.relative_to(ROOT)}: {path}{anchor}")
    assert wrong == [] and checked > 300


def test_every_link_of_a_page_leads_to_an_anchor_that_github_knows():
    wrong, checked = [], 0
    for page in tracked():
        if page.suffix != ".md" or page.is_relative_to(ROOT / "docs" / "site"):
            continue
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            if re.match("[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            checked += 1
            if not is_right(page.parent / path if path else page, anchor):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == [] and checked > 300
