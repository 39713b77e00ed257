"""The documentation site builds without a warning, has no dead link, and fetches nothing from other hosts.

To save time, these tests build it without the pages on modules and source files; `make docs` builds all of it.
"""

import re
import sys
from functools import cache
from pathlib import Path

import furo
import pytest
from sphinx.search.en import SearchEnglish

from translucid.cli.main import tree
from translucid.runs.configuration import resolve
from translucid.runs.keys import keys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import build  # noqa: E402
import commands  # noqa: E402
import links  # noqa: E402

MENUS = ("index", "tutorial", "commands/train")
"""Pages that get a menu of all pages. The menus of the others have the same links and take half of the time."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    menu = furo._compute_navigation_tree

    def menu_of_some(context):
        return menu(context) if context["pagename"] in MENUS else ""

    folder = tmp_path_factory.mktemp("docs") / "site"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(furo, "_compute_navigation_tree", menu_of_some)
        patched.setattr(SearchEnglish, "stem", cache(SearchEnglish.stem))  # most words are on many pages
        assert build.build(folder, described=False, runs=folder.parent / "none") == 0
    return folder


def test_the_site_has_every_page_and_every_command(site):
    for page in (ROOT / "docs").rglob("*.md"):
        if "site" not in page.relative_to(ROOT / "docs").parts:
            assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file()
    for path, command in commands.leaves(tree()):
        html = (site / "commands" / f"{'-'.join(path)}.html").read_text()
        assert all(option in html for parameter in command.params for option in parameter.opts if option[:2] == "--")
    settings = (site / "settings.html").read_text()
    assert all(key.name in settings for key in keys())


def test_the_site_has_lessons_and_search(site):
    assert (site / "lessons" / "masks.html").is_file()
    assert "beam" in (site / "searchindex.js").read_text()


def test_the_first_page_embeds_the_demo_only_if_it_was_trained(site, tmp_path):
    assert "<iframe" not in (site / "index.html").read_text()
    build.stage(tmp_path / "pages", described=False, demo=True)
    frame = re.search(r'<iframe [^>]*src="([^"#]*)#text=[^"]+" title="', (tmp_path / "pages" / "index.md").read_text())
    assert frame[1] == build.TRANSLATOR
    (tmp_path / "index.html").write_text(frame[0])
    assert len(links.dead(tmp_path)) == 1


def test_dead_links_are_detected(tmp_path):
    (tmp_path / "b.html").write_text('<p id="there">')
    page = tmp_path / "a.html"
    for working in (
        "b.html",
        "b.html#there",
        "#",
        "https://example.org",
        "mailto:x@example.org",
        "b.html?q=1",
        "b.html#text=a+b",
    ):
        page.write_text(f'<a class="x" href="{working}">')
        assert links.dead(tmp_path) == []
    for broken in ("c.html", "b.html#nowhere", "../a.html", "#nowhere"):
        page.write_text(f'<a class="x" href="{broken}">')
        assert links.dead(tmp_path) == [f"a.html: {broken}"]
    for fetched in ('<script src="https://x.example/a.js">', '<link rel="stylesheet" href="//x.example/a.css">'):
        page.write_text(fetched)
        assert "fetched from elsewhere" in links.dead(tmp_path)[0]


def rows():
    lines = (ROOT / "docs" / "concepts.md").read_text().splitlines()
    return [cells(line) for line in lines if line.startswith("| ")][2:]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_every_concept_links_to_its_equation_code_picture_and_settings():
    names = {"model.kind", *(key.name for key in keys())}
    assert len(rows()) >= 12
    for concept, equation, code, picture, knob in rows():
        assert "$" in equation, concept
        (file,) = re.findall(r"\]\((\.\./src/[^)]*\.py)\)", code)
        imported = re.findall(r"\w+", code.split("]")[0])
        source = (ROOT / "docs" / file).read_text()
        assert file.endswith(f"{imported[0]}.py") or all(
            re.search(rf"(def|class) {name}\b", source) for name in imported
        )
        assert "](" in picture
        settings = re.findall(r"\b((?:model|training|decoding)\.\w+)=(\S+?)[`\s]", knob)
        assert settings or "`" in knob
        assert {name for name, _ in settings} <= names
        assignments = [f"{name}={value}" for name, value in settings]
        kind = "" if any("model.kind" in assignment for assignment in assignments) else KINDS.get(concept, "")
        resolve(None, kind or None, assignments, {})


KINDS = {
    "Scores": "rnn-luong-dot",
    "Bottleneck": "rnn-luong-dot",
    "Bahdanau's decoder": "rnn-luong-dot",
    "Luong's decoder": "rnn-luong-dot",
    "Local attention": "rnn-luong-dot",
}
"""The presets that the settings of a concept are for, unless that is a Transformer."""
