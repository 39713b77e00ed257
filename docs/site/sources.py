"""Project files that pages link to, as pages of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".py": "python", ".js": "javascript", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
"""Files in the root folder that become pages unchanged."""


def write(staged: Path, described: bool) -> None:
    """Point the links to files outside docs/ at pages of the site, and write those pages.

    Unless they are `described`, the pages have a heading each and no source.
    """
    linked: set[Path] = set()
    places = {staged / page: ROOT / name for name, page in PAGES.items()}
    for page in sorted(staged.rglob("*.md")):
        at = places.get(page, ROOT / "docs" / page.relative_to(staged))
        page.write_text(_linked(page.read_text(encoding="utf-8"), at, page.parent, linked), encoding="utf-8")
    pages = [_write(file, staged, described) for file in sorted(linked)]
    # A list and not a toctree, which would put all of them into the menu of every page.
    listed = [f"- [{page.removeprefix('source/')}]({page}.md)" for page in pages]
    text = ["# Sources", "", "Files that the pages link to.", "", *listed, ""]
    (staged / "source.md").write_text("\n".join(text), encoding="utf-8")


def _linked(text: str, at: Path, generated: Path, linked: set[Path]) -> str:
    """Return the text of a page that stands at `at`, its links outwards turned; what they mean is put into `linked`.

    `generated` is the folder that the page is in now, where pages that are generated are, too. `lessons.md#masks` is
    the page of that lesson.
    """

    def turned(found: re.Match[str]) -> str:
        target, _, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        file = Path(os.path.normpath(at.parent / target))
        if not file.exists() and not (generated / target).exists():
            raise SystemExit(f"{at}: a dead link: {found[2]}")
        name = file.relative_to(ROOT).as_posix()
        if name.startswith("docs/"):
            page = name.removeprefix("docs/")
        elif name == "README.md":
            page = "index.md"
        elif name in PAGES:
            page = PAGES[name]
        else:
            linked.add(file)
            page, anchor = f"source/{name}.md", ""
        return f"{found[1]}({_up(at)}{page}{'#' if anchor else ''}{anchor})"

    def played(found: re.Match[str]) -> str:
        return f'<a href="{_up(at)}lessons/{found[2]}.html">{found[1]}</a>'

    text = re.sub(r"\[([^\]]*)\]\(lessons\.md#(\w+)\)", played, text)
    blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        block if block.startswith("```") else re.sub(r"(\])\(([^)\s]+)\)", turned, block) for block in blocks
    )


def _up(at: Path) -> str:
    """Return the relative path from a page to the root of the pages."""
    return "" if at.parent == ROOT else "../" * len(at.parent.relative_to(ROOT / "docs").parts)


def _write(file: Path, staged: Path, described: bool) -> str:
    """Write the page of a file or of a folder; return its name."""
    name = file.relative_to(ROOT)
    page = staged / "source" / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    lines = ["---", "orphan: true", "---", "", f"# {name}", ""]  # in no toctree, which Sphinx would warn of
    if described:
        lines += _content(file, page)
    page.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return f"source/{name}"


def _content(file: Path, page: Path) -> list[str]:
    """Return the Markdown that shows a file or what a folder holds."""
    if file.is_dir():
        return ["```text", *sorted(inner.name for inner in file.iterdir() if inner.name != "__pycache__"), "```"]
    language = LANGUAGES.get(file.suffix, "text")
    included = os.path.relpath(file, page.parent)
    return [f"```{{literalinclude}} {included}", f":language: {language}", ":linenos:", "```"]
